"""An engine for tests: whole programs, with checkpoints, failures and restores, in one process and without a JVM.

Everything but Spark is real: job master, attempts, coordinator, stores, tasks and sinks. An epoch runs all its tasks in
the thread that drives the job, one after the other, and one executor has all slots.

It is a test tool. A program of its own accord always runs on Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import cloudpickle

from holdfast.datastream.engines import engines_from
from holdfast.errors import EpochError, FunctionError, HoldfastError, ProgramError
from holdfast.graph.job_graph import JobSettings
from holdfast.graph.stream_graph import StreamGraph
from holdfast.job.control import JobControl
from holdfast.job.engine import AttemptIdentity, InputSlice, TakenInputs
from holdfast.job.job import Job
from holdfast.job.restore_point import RestorePoint
from holdfast.runtime.data_frame_input import DataFrameInput
from holdfast.runtime.epoch import Acknowledgement, EpochSpec, RestoredJob
from holdfast.runtime.failure_report import FailureReport, with_report
from holdfast.runtime.live_task import forget_live_tasks
from holdfast.runtime.local_files import prepare_attempt
from holdfast.runtime.packed_plan import load_plan, pack_plan
from holdfast.runtime.plan import JobPlan
from holdfast.runtime.query import Query, Transformation, View
from holdfast.runtime.task_files import undone_search_path
from holdfast.runtime.upload import UploadResult
from holdfast.state.handles import OperatorRecord
from holdfast.state.snapshot_io import SnapshotReader, SnapshotWriter
from holdfast.testing.sent_files import local_files
from holdfast.testing.tasks import run_tasks
from holdfast.types.dependencies import DependencySettings

EpochHook = Callable[[EpochSpec], None]


@dataclass
class InProcessEngine:
    """Runs the programs that are executed inside of ``with engine.installed():``.

    A hook that raises lets the epoch fail, and with it the attempt: ``before_epoch`` as a task that fails would,
    ``after_epoch`` as a driver that never hears of what the tasks have done.
    """

    before_epoch: EpochHook = lambda spec: None
    after_epoch: EpochHook = lambda spec: None
    #: Tasks (level, slot) that run twice in an epoch; the second execution counts.
    repeated: Callable[[EpochSpec], Collection[tuple[int, int]]] = lambda spec: ()
    executors: frozenset[str] = frozenset({"0"})
    #: From this epoch on time stands still, so that no later one has a checkpoint.
    last_checkpoint: int | None = None
    #: Every look at the clock costs a second: a checkpoint with a shorter interval is due in every epoch.
    step: int = 1_000
    now: int = 1_000_000
    application_id: str = "local-in-process"
    driver_host: str | None = None
    default_parallelism: int = 2
    #: (attempt, epoch) of all epochs that ran to their end.
    epochs: list[tuple[int, int]] = field(default_factory=list)
    #: Of the job that was opened last: ``control.cancel()`` in a hook cancels it there.
    control: JobControl = field(default_factory=JobControl)
    #: What the program that was executed last brings with it.
    dependencies: DependencySettings = field(default_factory=DependencySettings)

    @contextmanager
    def installed(self) -> Iterator[InProcessEngine]:
        """While the block runs, programs of this process are run by this engine instead of Spark."""
        with engines_from(self._for):
            yield self

    def _for(self, graph: StreamGraph, settings: JobSettings) -> InProcessEngine:
        self.dependencies = settings.dependencies
        return self

    def clock(self) -> int:
        self.now += self.step
        return self.now

    def data_frame(self, view: View) -> Query:
        return self.analyse("to_data_frame()", [view])

    def analyse(self, text: str, views: Sequence[View], transformation: Transformation | None = None) -> Query:
        raise ProgramError(
            f"The program has the query {text!r}, and the engine of this test has no Spark to run SQL with. Test the "
            "functions in front of it and behind it by themselves, or run the program with the fixture holdfast_env."
        )

    @contextmanager
    def open(self, job: Job, control: JobControl) -> Iterator[InProcessSession]:
        if job.data_frames:
            names = ", ".join(f"'{each.name}'" for each in job.data_frames)
            raise ProgramError(
                f"The program reads DataFrames ({names}), and the engine of this test has no Spark to read them with. "
                "Give the test another source, such as TestSource, or run it with the fixture holdfast_env."
            )
        for query in job.plan.queries:
            self.analyse(query.text, [query.view])
        self.control = control
        with TemporaryDirectory(prefix="holdfast-files-") as folder, undone_search_path():
            try:
                yield InProcessSession(self, job, folder)
            finally:
                # Processes of Spark's workers end. This one goes on, and would keep the stores of a job that failed
                # open.
                forget_live_tasks(job.plan.job_id)

    def failure_of(self, error: BaseException) -> HoldfastError:
        """As it would have come through Spark: our own errors are themselves, all others have failed the epoch."""
        if isinstance(error, HoldfastError):
            return error
        failed = EpochError(f"The epoch failed: {type(error).__name__}: {error}")
        failed.__cause__ = error
        return with_report(failed, FailureReport(type(failed).__name__, str(failed)))

    def refuse_position(self, source: DataFrameInput, record: OperatorRecord, reader: SnapshotReader) -> str | None:
        return f"the engine of this test has no Spark to read the stream '{source.name}' with"


class InProcessSession:
    """The engine, open for one job."""

    is_gone = False

    def __init__(self, engine: InProcessEngine, job: Job, folder: str) -> None:
        self._engine = engine
        self._folder = folder
        files = local_files(engine.dependencies, Path(folder))
        self._packed_plan = pack_plan(job.plan, cloudpickle.dumps(job.plan), files)

    def executors(self) -> frozenset[str]:
        return self._engine.executors

    def await_executors(self, before: int) -> int:
        return len(self._engine.executors)

    def inputs(self, point: RestorePoint | None) -> NoInputs:
        return NoInputs()

    def begin_attempt(self, identity: AttemptIdentity, point: RestorePoint | None) -> InProcessRunner:
        restored = point.restored_job() if point is not None else None
        return InProcessRunner(self._engine, load_plan(self._packed_plan, self._folder), identity, restored)


class NoInputs:
    """The inputs of a job that reads no DataFrame."""

    alone = False
    ended = True
    want_checkpoint = False

    def start(self) -> None: ...

    def waiting(self) -> bool:
        return False

    def take(self, read: bool, drain: bool) -> TakenInputs:
        return TakenInputs()

    def accept(self, taken: TakenInputs, epoch: int) -> None: ...

    def release(self, durable_epoch: int) -> None: ...

    def store(self, writer: SnapshotWriter, attempt: int) -> UploadResult:
        return UploadResult()

    def close(self) -> None: ...


class InProcessRunner:
    """The tasks of one attempt."""

    watched = False

    def __init__(
        self, engine: InProcessEngine, plan: JobPlan, identity: AttemptIdentity, restored: RestoredJob | None
    ) -> None:
        self._engine = engine
        self._plan = plan
        self._restored = restored
        forget_live_tasks(identity[0], before_attempt=identity[1])
        prepare_attempt(plan, identity[1])

    def run(self, spec: EpochSpec, slices: Sequence[InputSlice]) -> list[Acknowledgement]:
        engine = self._engine
        if engine.last_checkpoint is not None and spec.epoch >= engine.last_checkpoint:
            engine.step = 0
        engine.before_epoch(spec)
        repeated = engine.repeated(spec)
        try:
            with self._plan.files.entered():
                acknowledgements = run_tasks(self._plan, spec, self._restored, engine.clock, repeated=repeated)
        except FunctionError as error:
            # Ctrl-C is for the process of the test, not for the function that it met.
            if isinstance(error.__cause__, KeyboardInterrupt):
                error.__cause__.add_note(str(error))
                raise error.__cause__ from None
            raise
        engine.epochs.append((spec.attempt, spec.epoch))
        engine.after_epoch(spec)
        return acknowledgements

    def holders(self) -> frozenset[str]:
        return self._engine.executors

    def interrupt(self) -> None:
        """Tasks run in the thread that waits for them: nothing can be done."""

    def close(self) -> None:
        """Live tasks are forgotten when the next attempt begins."""
