"""Options of high availability, with Flink's keys."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from holdfast.common.option_types import DURATION, TEXT, Option, choice

_PREFIX = "high-availability."
_ZOOKEEPER = _PREFIX + "zookeeper."
_CLIENT = _ZOOKEEPER + "client."


class HighAvailabilityType(StrEnum):
    NONE = "NONE"
    ZOOKEEPER = "zookeeper"


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

HIGH_AVAILABILITY: tuple[Option[Any], ...] = (
    TYPE,
    QUORUM,
    ROOT,
    CLUSTER_ID,
    STORAGE_DIRECTORY,
    SESSION_TIMEOUT,
    CONNECTION_TIMEOUT,
    RETRY_WAIT,
)

HIGH_AVAILABILITY_WITHOUT_EFFECT: dict[str, str] = {
    _CLIENT + "max-retry-attempts": "a leader tries until its session is lost, a standby for as long as it waits",
    _CLIENT + "tolerate-suspended-connections": "always so: checkpoints wait until the session is lost or back",
    _PREFIX + "jobmanager.port": "drivers talk to each other through ZooKeeper only",
}
