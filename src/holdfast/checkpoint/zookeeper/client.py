"""Clients of ZooKeeper that show who they are."""

from __future__ import annotations

from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, InvalidACLError, NoAuthError
from kazoo.security import CREATOR_ALL_ACL

from holdfast.errors import ConfigurationError
from holdfast.types.settings import ZooKeeperAccess, ZooKeeperSettings

#: What ZooKeeper answers to somebody who may not do what was asked for. Asking again changes nothing.
REFUSED = (NoAuthError, AuthFailedError, InvalidACLError)


def new_client(settings: ZooKeeperSettings, **others: Any) -> KazooClient:
    """Not started. ``others`` are options of kazoo's."""
    return KazooClient(
        hosts=settings.quorum, timeout=settings.session_timeout_ms / 1000, **_shown_by(settings.access), **others
    )


def refusal(settings: ZooKeeperSettings, error: Exception) -> ConfigurationError:
    return ConfigurationError(
        f"ZooKeeper at {settings.quorum} refuses access below {settings.root}: {type(error).__name__}. Give all "
        "drivers of a job, and the command line, the credentials by which its nodes were made "
        "(high-availability.zookeeper.client.authorization, holdfast.zookeeper.sasl-mechanism); "
        "high-availability.zookeeper.client.acl: creator needs one of them"
    )


def _shown_by(access: ZooKeeperAccess) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if access.authorization is not None:
        scheme, _, credential = access.authorization.partition(":")
        options["auth_data"] = [(scheme, credential)]
    if access.creator_only:
        options["default_acl"] = CREATOR_ALL_ACL
    if access.sasl:
        options["sasl_options"] = dict(access.sasl)
    if access.tls is not None:
        tls = access.tls
        options |= {"use_ssl": True, "verify_certs": True, "check_hostname": True}
        options |= {"ca": tls.authority, "certfile": tls.certificate, "keyfile": tls.key}
    return options
