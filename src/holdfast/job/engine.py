"""The port between a job and what runs its tasks.

Everything that controls a job (attempts, checkpoints, transactions, restarts) is written against these protocols and
knows nothing else of what is behind them. ``holdfast.spark`` implements them with Spark; ``holdfast.testing`` has a
second implementation, for tests, which runs all tasks in one process.

An ``Engine`` is the application. It is opened for a job once by each driver that leads the job; attempts of the job
follow each other in that ``EngineSession``, and each of them has ``Inputs`` and an ``EpochRunner`` of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from holdfast.errors import HoldfastError
from holdfast.job.control import JobControl
from holdfast.job.job import Job
from holdfast.job.restore_point import RestorePoint
from holdfast.runtime.data_frame_input import DataFrameInput
from holdfast.runtime.epoch import Acknowledgement, EpochSpec
from holdfast.runtime.query import Query, Transformation, View
from holdfast.runtime.upload import UploadResult
from holdfast.state.handles import OperatorRecord
from holdfast.state.snapshot_io import SnapshotReader, SnapshotWriter

#: Job id, number of the attempt, and a mark of the driver's own: attempts of two drivers may share the other two.
AttemptIdentity = tuple[str, int, str]


class InputSlice(Protocol):
    """What one epoch reads of a DataFrame, or of streams: all of it, or a micro-batch."""

    @property
    def group(self) -> int: ...

    @property
    def partitions(self) -> int:
        """How many tasks of level 0 read it. Each of them acknowledges the epoch."""


@dataclass(frozen=True)
class TakenInputs:
    """``over`` are the operator ids of the DataFrames that have ended when the epoch has read its slices."""

    slices: tuple[InputSlice, ...] = ()
    over: frozenset[str] = frozenset()


class Inputs(Protocol):
    """What the engine itself reads for a job, epoch by epoch: bounded DataFrames and streams. The job's own sources are
    operators, and none of its business.

    One thread calls ``take``, then ``accept`` if the epoch counts, then ``release``.
    """

    @property
    def alone(self) -> bool:
        """Whether there is nothing to read as long as no stream has something."""

    @property
    def ended(self) -> bool:
        """Whether everything was read, and accepted."""

    @property
    def want_checkpoint(self) -> bool:
        """Whether the next epoch should carry a checkpoint although none is due."""

    def start(self) -> None: ...

    def waiting(self) -> bool:
        """Whether ``take`` would give something, or tell of an end."""

    def take(self, read: bool, drain: bool) -> TakenInputs:
        """What an epoch reads: nothing without ``read``. With ``drain`` all inputs count as ended."""

    def accept(self, taken: TakenInputs, epoch: int) -> None:
        """The epoch that read them counts."""

    def release(self, durable_epoch: int) -> None:
        """An epoch is over, and a checkpoint holds everything up to ``durable_epoch``."""

    def store(self, writer: SnapshotWriter, attempt: int) -> UploadResult:
        """Store where everything stands, behind the last epoch that was accepted."""

    def close(self) -> None: ...


class EpochRunner(Protocol):
    """The tasks of one attempt, placed on executors for as long as it lasts."""

    @property
    def watched(self) -> bool:
        """Whether it can be known which executors hold slots."""

    def holders(self) -> frozenset[str]:
        """Executors that hold slots, by the ids of ``EngineSession.executors``. Known while an epoch runs."""

    def run(self, spec: EpochSpec, slices: Sequence[InputSlice]) -> list[Acknowledgement]:
        """Run all tasks of an epoch; what they acknowledge. Raises when a task failed or was interrupted."""

    def interrupt(self) -> None:
        """Let the epoch fail that runs. Any thread may call."""

    def close(self) -> None: ...


class EngineSession(Protocol):
    """An engine that is open for one job."""

    def executors(self) -> frozenset[str]:
        """The ids of the executors that are there now."""

    def await_executors(self, before: int) -> int:
        """Wait until an attempt can begin; how many executors there are then. ``before`` is how many the attempt
        before had, 0 at the first. JobCancelled when the job is cancelled meanwhile.
        """

    @property
    def is_gone(self) -> bool:
        """Whether the application has ended under us: no attempt can run in it."""

    def inputs(self, point: RestorePoint | None) -> Inputs:
        """Inputs of an attempt that starts from ``point``. When a stream has something the job is woken."""

    def begin_attempt(self, identity: AttemptIdentity, point: RestorePoint | None) -> EpochRunner: ...


class Engine(Protocol):
    """An application that runs jobs."""

    @property
    def application_id(self) -> str: ...

    @property
    def driver_host(self) -> str | None:
        """The name or address by which executors find the driver, where one is known."""

    @property
    def default_parallelism(self) -> int: ...

    def clock(self) -> int:
        """Processing time in the driver, in milliseconds since 1970."""

    def analyse(self, text: str, views: Sequence[View], transformation: Transformation | None = None) -> Query:
        """What a query on streams, each a view, reads and gives. ProgramError where it cannot be run on each epoch's
        rows. With ``transformation``, which is for a DataFrame of the one view, the text is for messages alone.
        """

    def data_frame(self, view: View) -> Any:
        """A DataFrame with the columns of a view and without rows."""

    def open(self, job: Job, control: JobControl) -> AbstractContextManager[EngineSession]: ...

    def failure_of(self, error: BaseException) -> HoldfastError:
        """What an error that came out of the engine means to a job."""

    def refuse_position(self, source: DataFrameInput, record: OperatorRecord, reader: SnapshotReader) -> str | None:
        """Why a stream cannot go on from what is stored under its id."""
