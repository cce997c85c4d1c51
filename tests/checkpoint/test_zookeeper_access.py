"""A ZooKeeper that wants to know who asks: TLS, digest and SASL, and nodes that belong to who made them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from holdfast.checkpoint.job_end import JobEnd
from holdfast.checkpoint.job_home import JobHome
from holdfast.checkpoint.zookeeper.address import leader_address, leader_addresses
from holdfast.checkpoint.zookeeper.client import new_client
from holdfast.checkpoint.zookeeper.nodes import JobNodes
from holdfast.common import Configuration
from holdfast.common.settings_parser import zookeeper_settings
from holdfast.errors import ConfigurationError, StorageError
from holdfast.types.settings import CheckpointSettings, ZooKeeperAccess, ZooKeeperSettings
from tests.checkpoint.homes import address_at
from tests.kit.zookeeper import PASSWORD, USER, ZooKeeperServer

ADDRESS = "http://127.0.0.1:8081"
CREDENTIALS = {
    "digest": {"high-availability.zookeeper.client.authorization": "digest:holdfast:secret:with:colons"},
    "sasl": {
        "holdfast.zookeeper.sasl-mechanism": "DIGEST-MD5",
        "holdfast.zookeeper.sasl-username": USER,
        "holdfast.zookeeper.sasl-password": PASSWORD,
    },
}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer(tmp_path_factory.mktemp("secured"), secured=True) as server:
        yield server


def configured(quorum: str, credentials: dict[str, str]) -> ZooKeeperSettings:
    """As somebody configures them, with a root of their own."""
    given = {
        "high-availability.type": "zookeeper",
        "high-availability.zookeeper.quorum": quorum,
        "high-availability.zookeeper.path.root": f"/{uuid4().hex}",
        "high-availability.zookeeper.client.session-timeout": "2 s",
        "high-availability.zookeeper.client.connection-timeout": "5 s",
        "high-availability.zookeeper.client.retry-wait": "100 ms",
        "high-availability.zookeeper.client.acl": "creator",
        **credentials,
    }
    found = zookeeper_settings(Configuration.from_dict(given))
    assert found is not None
    return found


@pytest.fixture(params=["digest", "sasl", "certificate"])
def settings(secured: ZooKeeperServer, request: pytest.FixtureRequest) -> ZooKeeperSettings:
    """Settings of somebody who shows credentials. A certificate that a server asks for over TLS is one of them."""
    if request.param != "certificate":
        return configured(secured.quorum, CREDENTIALS[request.param])
    return over_tls(secured)


def over_tls(secured: ZooKeeperServer) -> ZooKeeperSettings:
    files = {
        "holdfast.zookeeper.tls": "true",
        "holdfast.zookeeper.tls-ca": str(secured.certificate),
        "holdfast.zookeeper.tls-certificate": str(secured.certificate),
        "holdfast.zookeeper.tls-key": str(secured.key),
    }
    return configured(secured.secure_quorum, files)


def driver(settings: ZooKeeperSettings, tmp_path: Path) -> JobHome:
    return JobHome.of("job", CheckpointSettings(directory=str(tmp_path)), settings)


def test_drivers_that_show_the_same_credentials_follow_one_another(settings: ZooKeeperSettings, tmp_path: Path) -> None:
    first = driver(settings, tmp_path)
    first.leadership.acquire(time.sleep)
    assert first.leadership.next_attempt() == 1
    first.leadership.publish_address(address_at(ADDRESS))
    assert leader_address(settings, "job") == ADDRESS
    assert leader_addresses(settings) == {"job": ADDRESS}
    assert first.services().ids.next() == 1
    assert first.directory is not None
    first.directory.record_end(JobEnd.now("FINISHED"))
    nodes = JobNodes.of(settings, "job")
    client = new_client(settings)
    client.start(10)
    try:
        for node in (nodes.root, nodes.leader, nodes.address, nodes.last_id, nodes.ended, nodes.ballots):
            (entry,) = client.get_acls(node)[0]
            assert entry.id.scheme in ("digest", "sasl", "x509"), node
    finally:
        client.stop()
        client.close()
    first.leadership.release()
    second = driver(settings, tmp_path)
    second.leadership.acquire(time.sleep)
    assert second.leadership.next_attempt() == 2
    assert second.directory is not None and second.directory.read_end() is not None
    second.leadership.release()


def test_others_are_refused_and_told_why(
    settings: ZooKeeperSettings, secured: ZooKeeperServer, tmp_path: Path
) -> None:
    first = driver(settings, tmp_path)
    first.leadership.acquire(time.sleep)
    first.leadership.publish_address(address_at(ADDRESS))
    for credentials in (None, "digest:holdfast:wrong"):
        access = replace(settings.access, authorization=credentials, sasl={}, tls=None)
        other = replace(settings, quorum=secured.quorum, access=access)
        with pytest.raises(ConfigurationError, match=r"refuses access below /.*client\.authorization"):
            leader_address(other, "job")
        with pytest.raises(ConfigurationError, match="refuses access"):
            driver(other, tmp_path).leadership.acquire(time.sleep)
    first.leadership.check()
    first.leadership.release()


def test_nodes_that_belong_to_nobody_cannot_be_made(secured: ZooKeeperServer, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"acl: creator needs one of them"):
        driver(configured(secured.quorum, {}), tmp_path).leadership.acquire(time.sleep)


def test_a_driver_with_a_wrong_password_says_so_each_time_that_it_tries(
    secured: ZooKeeperServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that is just starting looks the same, so that it goes on trying."""
    wrong = {**CREDENTIALS["sasl"], "holdfast.zookeeper.sasl-password": "wrong"}
    waiting = driver(configured(secured.quorum, wrong), tmp_path)
    until = time.monotonic() + 20

    def pause(seconds: float) -> None:
        time.sleep(seconds)
        if caplog.text.count("has not accepted the credentials") >= 2 or time.monotonic() > until:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        waiting.leadership.acquire(pause)
    assert caplog.text.count("has not accepted the credentials") >= 2


def test_a_server_that_nobody_vouches_for_is_not_talked_to(secured: ZooKeeperServer) -> None:
    settings = over_tls(secured)
    tls = settings.access.tls
    assert tls is not None
    access = replace(settings.access, tls=replace(tls, authority=None))
    with pytest.raises(StorageError, match="cannot tell where the leader of job job is"):
        leader_address(replace(settings, access=access, connection_timeout_ms=1_000), "job")


def test_without_anything_it_is_open() -> None:
    given = {"high-availability.type": "zookeeper", "high-availability.zookeeper.quorum": "a:1"}
    found = zookeeper_settings(Configuration.from_dict(given))
    assert found is not None and found.access == ZooKeeperAccess()
    disabled = {**given, **CREDENTIALS["sasl"], "zookeeper.sasl.disable": "true"}
    found = zookeeper_settings(Configuration.from_dict(disabled))
    assert found is not None and not found.access.sasl
    kerberos = {**given, "holdfast.zookeeper.sasl-mechanism": "GSSAPI", "zookeeper.sasl.service-name": "zk"}
    found = zookeeper_settings(Configuration.from_dict(kerberos))
    assert found is not None and found.access.sasl == {"mechanism": "GSSAPI", "service": "zk"}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"high-availability.zookeeper.client.authorization": "digest"}, "expected 'scheme:credential'"),
        ({"high-availability.zookeeper.client.acl": "nobody"}, "open"),
        ({"holdfast.zookeeper.sasl-mechanism": "DIGEST-MD5"}, r"needs 'holdfast\.zookeeper\.sasl-username'"),
    ],
)
def test_what_does_not_fit_is_told(changes: dict[str, str], told: str) -> None:
    given = {"high-availability.type": "zookeeper", "high-availability.zookeeper.quorum": "a:1", **changes}
    with pytest.raises(ConfigurationError, match=told):
        zookeeper_settings(Configuration.from_dict(given))


def test_passwords_are_not_shown() -> None:
    access = ZooKeeperAccess("digest:user:hunter2", sasl={"password": "hunter2"})
    assert "hunter2" not in repr(ZooKeeperSettings("a:1", access=access))
