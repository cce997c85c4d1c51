"""The settings of a job as plain values, for every layer. ``holdfast.common.settings_parser`` makes them from options.

All times are milliseconds and all sizes are bytes. Defaults are those of the options.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar


class CheckpointMode(StrEnum):
    """When sinks publish: with a checkpoint, or at the end of an epoch. State is exact in both."""

    EXACTLY_ONCE = "EXACTLY_ONCE"
    AT_LEAST_ONCE = "AT_LEAST_ONCE"


class ExecutionMode(StrEnum):
    """How a program runs: as a stream, with every result; as a batch, with the last ones; or as a batch where all
    sources are bounded.
    """

    STREAMING = "STREAMING"
    BATCH = "BATCH"
    AUTOMATIC = "AUTOMATIC"


class TextForm(StrEnum):
    """How rows of a declared type are written as text."""

    FLINK = "FLINK"
    PYTHON = "PYTHON"


class Retention(StrEnum):
    """What a job leaves behind of its checkpoints when it ends."""

    NO_EXTERNALIZED_CHECKPOINTS = "NO_EXTERNALIZED_CHECKPOINTS"
    DELETE_ON_CANCELLATION = "DELETE_ON_CANCELLATION"
    RETAIN_ON_CANCELLATION = "RETAIN_ON_CANCELLATION"


class ClaimMode(StrEnum):
    """Who owns the snapshot that a job starts from. No checkpoint of a job ever needs files of another's snapshot, so
    that LEGACY, which left that open, is the same as NO_CLAIM.
    """

    NO_CLAIM = "NO_CLAIM"
    CLAIM = "CLAIM"
    LEGACY = "LEGACY"


class StorageKind(StrEnum):
    """Where checkpoints are kept."""

    JOBMANAGER = "jobmanager"
    FILESYSTEM = "filesystem"


class RestartKind(StrEnum):
    NONE = "none"
    FIXED_DELAY = "fixed-delay"
    FAILURE_RATE = "failure-rate"
    EXPONENTIAL_DELAY = "exponential-delay"


@dataclass(frozen=True)
class SparkSettings:
    """How a job uses Spark. ``conf`` has the ``spark.*`` keys of the configuration."""

    conf: Mapping[str, str] = field(default_factory=dict)
    #: Whether accelerations may reach behind Spark's public API.
    internals: bool = True
    #: Names of accelerations that are left out.
    without: frozenset[str] = frozenset()
    #: How long an attempt waits for executors in the place of lost ones.
    executor_wait_ms: int = 5_000


@dataclass(frozen=True)
class ProgramSettings:
    """What a program is held to, and what its functions are given."""

    #: None: every row moves the watermark. 0: there is only the one at the end of the input.
    watermark_interval_ms: int | None = None
    #: Operators without a uid get an id by their place.
    auto_uids: bool = True
    #: What has no declared type is pickled.
    generic_types: bool = True
    #: What functions find by ``get_job_parameter``.
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LeaseSettings:
    """How often a driver renews its lease on a job, and how long one that is not renewed keeps others away."""

    interval_ms: int = 5_000
    timeout_ms: int = 15_000


@dataclass(frozen=True)
class CheckpointSettings:
    """``interval_ms`` None: no periodic checkpoints. ``directory`` None: they are kept in the driver's memory."""

    interval_ms: int | None = None
    mode: CheckpointMode = CheckpointMode.EXACTLY_ONCE
    timeout_ms: int = 600_000
    min_pause_ms: int = 0
    max_concurrent: int = 1
    tolerable_failures: int = 0
    retention: Retention = Retention.NO_EXTERNALIZED_CHECKPOINTS
    num_retained: int = 1
    directory: str | None = None
    savepoint_directory: str | None = None
    incremental: bool = True
    inline_threshold: int = 20 << 10
    upload_wait_ms: int = 100
    heartbeat_timeout_ms: int = 10_000
    lease: LeaseSettings = LeaseSettings()

    @property
    def publishes(self) -> bool:
        """Whether sinks publish with checkpoints."""
        return self.interval_ms is not None and self.mode is CheckpointMode.EXACTLY_ONCE

    @property
    def enabled(self) -> bool:
        return self.interval_ms is not None

    @property
    def storage(self) -> StorageKind:
        return StorageKind.JOBMANAGER if self.directory is None else StorageKind.FILESYSTEM


class RestartSettings:
    """What follows a failure: one of the four classes below."""

    kind: ClassVar[RestartKind]


@dataclass(frozen=True)
class NoRestartSettings(RestartSettings):
    kind: ClassVar[RestartKind] = RestartKind.NONE


@dataclass(frozen=True)
class FixedDelaySettings(RestartSettings):
    attempts: int = 1
    delay_ms: int = 1_000
    kind: ClassVar[RestartKind] = RestartKind.FIXED_DELAY


@dataclass(frozen=True)
class FailureRateSettings(RestartSettings):
    max_failures: int = 1
    interval_ms: int = 60_000
    delay_ms: int = 1_000
    kind: ClassVar[RestartKind] = RestartKind.FAILURE_RATE


@dataclass(frozen=True)
class ExponentialDelaySettings(RestartSettings):
    """``attempts`` None: no limit."""

    initial_ms: int = 1_000
    max_ms: int = 60_000
    multiplier: float = 1.5
    reset_threshold_ms: int = 3_600_000
    jitter: float = 0.1
    attempts: int | None = None
    kind: ClassVar[RestartKind] = RestartKind.EXPONENTIAL_DELAY


@dataclass(frozen=True)
class FailureSettings:
    """Which failures end a job whatever its restart strategy says, and how failures are told."""

    #: So often the program may fail in the same way without a completed checkpoint in between; None: without end.
    same_failures: int | None = None
    full_traces: bool = False


@dataclass(frozen=True)
class BackendSettings:
    """``name`` is that of an entry point; ``options`` are the keys under ``state.`` and ``holdfast.state.`` that are
    set."""

    name: str = "lmdb"
    options: Mapping[str, Any] = field(default_factory=dict)
    #: None: a directory of this user in the host's directory for temporary files.
    local_dir: str | None = None


@dataclass(frozen=True)
class EpochSettings:
    """How a stream is cut into epochs, and the limits of the tasks that run them."""

    max_rows: int = 500_000
    max_time_ms: int = 2_000
    #: The least time from the begin of an epoch to that of the next; None: as the target latency wants it.
    min_interval_ms: int | None = None
    target_latency_ms: int = 200
    idle_wait_ms: int = 500
    max_idle_wait_ms: int = 10_000
    envelope_bytes: int = 2 << 20
    max_row_bytes: int = 64 << 20
    #: Of the query that reads Spark's streams.
    stream_interval_ms: int = 0
    stream_available_now: bool = False
    #: Of one operator's subtask.
    max_metrics: int = 200


@dataclass(frozen=True)
class RecoverySettings:
    """``path`` None: the job starts without a snapshot."""

    path: str | None = None
    ignore_unclaimed: bool = False
    accept_repeated_output: bool = False
    change_max_parallelism: bool = False
    #: Whether the snapshot at ``path`` may be unpickled.
    allow_pickle: bool = False
    claim: ClaimMode = ClaimMode.NO_CLAIM
    from_local: bool = True


@dataclass(frozen=True)
class ZooKeeperTls:
    """PEM files: what vouches for the servers (else what the system trusts), and what this client shows them."""

    authority: str | None = None
    certificate: str | None = None
    key: str | None = None


@dataclass(frozen=True)
class ZooKeeperAccess:
    """Who a client of ZooKeeper is, and who may use the nodes that it makes."""

    #: ``scheme:credential``.
    authorization: str | None = field(default=None, repr=False)
    #: Nodes are for whoever shows the same credentials; otherwise for everybody.
    creator_only: bool = False
    #: As kazoo takes them; empty without SASL.
    sasl: Mapping[str, str] = field(default_factory=dict, repr=False)
    tls: ZooKeeperTls | None = None


@dataclass(frozen=True)
class ZooKeeperSettings:
    """``quorum`` is a list of ``host:port`` with commas between; a job's nodes are below ``<root>/<cluster id>``."""

    quorum: str
    root: str = "/holdfast"
    cluster_id: str = "/default"
    session_timeout_ms: int = 60_000
    connection_timeout_ms: int = 15_000
    retry_wait_ms: int = 5_000
    access: ZooKeeperAccess = ZooKeeperAccess()
