"""Options of high availability, with Flink's keys."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from holdfast.common.option_types import BOOLEAN, DURATION, TEXT, Option, choice

_PREFIX = "high-availability."
_ZOOKEEPER = _PREFIX + "zookeeper."
_CLIENT = _ZOOKEEPER + "client."
_SASL = "zookeeper.sasl."
_OWN = "holdfast.zookeeper."


class HighAvailabilityType(StrEnum):
    NONE = "NONE"
    ZOOKEEPER = "zookeeper"


class AccessList(StrEnum):
    OPEN = "open"
    CREATOR = "creator"


class SaslMechanism(StrEnum):
    NONE = "NONE"
    GSSAPI = "GSSAPI"
    DIGEST_MD5 = "DIGEST-MD5"


TYPE: Option[HighAvailabilityType] = Option(
    _PREFIX + "type",
    choice({kind.value: kind for kind in HighAvailabilityType}),
    HighAvailabilityType.NONE,
    "`zookeeper`: any number of drivers of the same program wait for the leadership of the job, and the next one goes "
    "on when the leader is lost. `NONE`: one driver, which the lock of the checkpoint directory keeps alone. Needs "
    "`holdfast.job-id`, a checkpoint directory and the extra `zookeeper`.",
    older=("high-availability",),
)
QUORUM: Option[str | None] = Option(
    _ZOOKEEPER + "quorum", TEXT, None, "The servers of ZooKeeper: `host:port,host:port,...`."
)
ROOT: Option[str] = Option(
    _ZOOKEEPER + "path.root", TEXT, "/holdfast", "The node of ZooKeeper below which everything is."
)
CLUSTER_ID: Option[str] = Option(
    _PREFIX + "cluster-id", TEXT, "/default", "The node below the root in which jobs are, each under its job id."
)
STORAGE_DIRECTORY: Option[str | None] = Option(
    _PREFIX + "storagedir",
    TEXT,
    None,
    "Directory of checkpoints where `execution.checkpointing.dir` is not set. ZooKeeper itself holds no state, only "
    "which checkpoints count.",
)
SESSION_TIMEOUT: Option[int] = Option(
    _CLIENT + "session-timeout",
    DURATION,
    60_000,
    "A leader that ZooKeeper has not heard of for so long is replaced, and a leader that cannot reach ZooKeeper for so "
    "long ends its attempt. ZooKeeper's own limits hold too.",
    least=100,
)
CONNECTION_TIMEOUT: Option[int] = Option(
    _CLIENT + "connection-timeout",
    DURATION,
    15_000,
    "Longest time for one try to connect, at most a third of a session. After this time a driver that starts says in "
    "its log that there is no connection, and goes on trying; a client that looks for the leader gives up.",
    least=1,
)
RETRY_WAIT: Option[int] = Option(
    _CLIENT + "retry-wait", DURATION, 5_000, "Longest pause between two tries to connect.", least=1
)
ACCESS_LIST: Option[AccessList] = Option(
    _CLIENT + "acl",
    choice({kind.value: kind for kind in AccessList}),
    AccessList.OPEN,
    "Who may read and change the nodes of a job: everybody who reaches ZooKeeper (`open`), or whoever shows the "
    "credentials of the driver that made them (`creator`), by one of the options below.",
)
AUTHORIZATION: Option[str | None] = Option(
    _CLIENT + "authorization",
    TEXT,
    None,
    "What drivers and the command line show ZooKeeper, `scheme:credential`, such as `digest:user:password`. Keep the "
    "file that it is in to yourself.",
)
SASL_DISABLE: Option[bool] = Option(_SASL + "disable", BOOLEAN, False, "Never use SASL, whatever the mechanism says.")
SASL_SERVICE: Option[str] = Option(
    _SASL + "service-name", TEXT, "zookeeper", "The service of ZooKeeper's principal, for GSSAPI."
)
SASL_MECHANISM: Option[SaslMechanism] = Option(
    _OWN + "sasl-mechanism",
    choice({kind.value: kind for kind in SaslMechanism}),
    SaslMechanism.NONE,
    "Show who one is by SASL: `GSSAPI` (a Kerberos ticket of the process; needs the package `kerberos` or `winkerberos`"
    "), or `DIGEST-MD5` (user and password below).",
)
SASL_USER: Option[str | None] = Option(_OWN + "sasl-username", TEXT, None, "The user of `DIGEST-MD5`.")
SASL_PASSWORD: Option[str | None] = Option(_OWN + "sasl-password", TEXT, None, "The password of `DIGEST-MD5`.")
TLS: Option[bool] = Option(
    _OWN + "tls", BOOLEAN, False, "Speak TLS with ZooKeeper, at its secure port. Names of servers are checked."
)
TLS_AUTHORITY: Option[str | None] = Option(
    _OWN + "tls-ca",
    TEXT,
    None,
    "File with the certificates (PEM) that vouch for the servers.",
    default_text="what the system trusts",
)
TLS_CERTIFICATE: Option[str | None] = Option(
    _OWN + "tls-certificate", TEXT, None, "File with the certificate (PEM) that this client shows, if servers want one."
)
TLS_KEY: Option[str | None] = Option(_OWN + "tls-key", TEXT, None, "File with the key (PEM) of that certificate.")

HIGH_AVAILABILITY: tuple[Option[Any], ...] = tuple(
    value for value in list(globals().values()) if isinstance(value, Option)
)

HIGH_AVAILABILITY_WITHOUT_EFFECT: dict[str, str] = {
    _SASL + "login-context-name": "there is no JAAS configuration; see `holdfast.zookeeper.sasl-mechanism`",
    _CLIENT + "max-retry-attempts": "a leader tries until its session is lost, a standby for as long as it waits",
    _CLIENT + "tolerate-suspended-connections": "always so: checkpoints wait until the session is lost or back",
    _PREFIX + "jobmanager.port": "drivers talk to each other through ZooKeeper only",
}
