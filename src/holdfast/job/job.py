"""A job as the job master gets it, and what it tells of its course."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from holdfast.checkpoint.job_facts import JobFacts
from holdfast.runtime.data_frame_input import DataFrameInput
from holdfast.runtime.plan import JobPlan
from holdfast.runtime.sink import TwoPhaseCommitSink
from holdfast.runtime.source import Source, SourceFunction
from holdfast.state.handles import StateMigrated
from holdfast.types.settings import (
    CheckpointSettings,
    EpochSettings,
    FailureSettings,
    RecoverySettings,
    RestartSettings,
    ZooKeeperSettings,
)


class JobStatus(Enum):
    """Flink's job states, as far as a job on Spark can be in them."""

    INITIALIZING = "INITIALIZING"
    CREATED = "CREATED"
    RUNNING = "RUNNING"
    FAILING = "FAILING"
    FAILED = "FAILED"
    CANCELLING = "CANCELLING"
    CANCELED = "CANCELED"
    FINISHED = "FINISHED"
    RESTARTING = "RESTARTING"
    #: Stopped in this driver; another one may go on with it.
    SUSPENDED = "SUSPENDED"


@dataclass(frozen=True)
class Job:
    """Everything that running a job needs."""

    plan: JobPlan
    #: Of operators that set none of their own.
    parallelism: int
    facts: JobFacts
    checkpoint: CheckpointSettings
    restart: RestartSettings
    epoch: EpochSettings
    recovery: RecoverySettings
    sinks: Mapping[str, TwoPhaseCommitSink]
    data_frames: tuple[DataFrameInput, ...] = ()
    #: Sources without an end, which the driver may look at.
    endless_sources: tuple[Source | SourceFunction, ...] = ()
    #: None: a job is led by the driver that holds the lock of its directory.
    zookeeper: ZooKeeperSettings | None = None
    failures: FailureSettings = field(default_factory=FailureSettings)
    #: This job with another parallelism, for operators that set none of their own. ProgramError where that cannot
    #: be.
    replan: Callable[[int], Job] | None = None


@dataclass(frozen=True)
class EpochRecord:
    """One accepted epoch. Times are seconds of the driver's clock."""

    attempt: int
    epoch: int
    rows: int
    started: float
    finished: float
    checkpoint_id: int | None = None


@dataclass(frozen=True)
class FailureRecord:
    """One failure of an attempt and what followed from it."""

    attempt: int
    timestamp: float
    error: BaseException
    restarted: bool
    reason: str


_KEPT_EPOCHS = 10_000
_KEPT_FAILURES = 100


@dataclass
class JobHistory:
    """The course of a job so far. Written by the job master, read by anybody."""

    status: JobStatus = JobStatus.CREATED
    attempt: int = 0
    restarts: int = 0
    #: The newest ones: a job may run for years.
    epochs: deque[EpochRecord] = field(default_factory=lambda: deque(maxlen=_KEPT_EPOCHS))
    #: The newest ones, each with its traces.
    failures: deque[FailureRecord] = field(default_factory=lambda: deque(maxlen=_KEPT_FAILURES))
    warnings: list[str] = field(default_factory=list)
    #: By epoch: the executor of every (level, slot).
    placement: deque[tuple[int, tuple[str, ...]]] = field(default_factory=lambda: deque(maxlen=_KEPT_EPOCHS))
    timestamps: dict[JobStatus, float] = field(default_factory=dict)
    restored_bytes: int = 0
    #: The path of the savepoint that the job ended with, stopped or cancelled.
    savepoint: str | None = None
    migrations: list[StateMigrated] = field(default_factory=list)
