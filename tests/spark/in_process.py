"""Whole jobs without Spark: the real job master, attempts, coordinator and tasks, in this process.

Only what Spark does is replaced: an epoch runs all its tasks here, one after the other, and there is one executor.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import cloudpickle
import pytest

from holdfast.common import Types, WatermarkStrategy
from holdfast.common.job_client import JobClient
from holdfast.connectors.file_sink.formats import JsonSinkFormat
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.graph import submission
from holdfast.runtime.epoch import Acknowledgement, EpochSpec, RestoredJob
from holdfast.runtime.live_task import forget_live_tasks
from holdfast.runtime.local_files import prepare_attempt
from holdfast.runtime.plan import JobPlan
from holdfast.spark import attempt, checkpoints, job_master, running_checkpoints
from holdfast.spark.control import JobControl
from tests.integration.programs import PAIR, Scripted, environment
from tests.runtime.local_job import run_tasks

EpochHook = Callable[[EpochSpec], None]


@dataclass
class InProcessSpark:
    """What stands for Spark, and the faults that a test asks of it."""

    #: Called before an epoch runs, and after it ran, before the driver has what it gave.
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
    applicationId: str = "local-in-process"
    #: (attempt, epoch) of all epochs that ran to their end.
    epochs: list[tuple[int, int]] = field(default_factory=list)

    #: Of the job that started last.
    control: JobControl = field(default_factory=JobControl)

    @property
    def sparkContext(self) -> InProcessSpark:
        return self

    def new_control(self) -> JobControl:
        self.control = JobControl()
        return self.control

    def clock(self) -> int:
        self.now += self.step
        return self.now

    @contextmanager
    def session(self, *_: Any, **__: Any) -> Iterator[Any]:
        yield self

    def anchor(self, session: Any, slots: int) -> InProcessSpark:
        return self

    def release(self) -> None:
        """As an anchor: there is nothing to give back."""

    def runner(
        self,
        anchor: Any,
        plan: JobPlan,
        packed_plan: bytes,
        identity: tuple[str, int, str],
        restored: RestoredJob | None,
    ) -> InProcessRunner:
        return InProcessRunner(self, packed_plan, identity, restored)


class InProcessRunner:
    """In the place of ``EpochRunner``."""

    def __init__(
        self, spark: InProcessSpark, packed_plan: bytes, identity: tuple[str, int, str], restored: RestoredJob | None
    ) -> None:
        self._spark = spark
        self._plan: JobPlan = cloudpickle.loads(packed_plan)
        self._restored = restored
        forget_live_tasks(identity[0], before_attempt=identity[1])
        prepare_attempt(self._plan, identity[1])

    def run(self, spec: EpochSpec, data_frames: tuple[Any, ...]) -> list[Acknowledgement]:
        assert not data_frames
        if self._spark.last_checkpoint is not None and spec.epoch >= self._spark.last_checkpoint:
            self._spark.step = 0
        self._spark.before_epoch(spec)
        repeated = self._spark.repeated(spec)
        acknowledgements = run_tasks(self._plan, spec, self._restored, self._spark.clock, repeated=repeated)
        self._spark.epochs.append((spec.attempt, spec.epoch))
        self._spark.after_epoch(spec)
        return acknowledgements

    def interrupt(self) -> None:
        """Tasks run in the thread that waits for them: nothing can be done."""

    def close(self) -> None:
        """Live tasks are forgotten when the next attempt begins."""


def install(patch: pytest.MonkeyPatch) -> InProcessSpark:
    """From now on jobs of this process run without Spark."""
    spark = InProcessSpark()
    patch.setattr(submission, "obtain_session", lambda settings: spark)
    patch.setattr(job_master, "epoch_session", spark.session)
    patch.setattr(job_master, "JobControl", spark.new_control)
    patch.setattr(job_master, "application_is_gone", lambda session: False)
    patch.setattr(job_master, "first_executors", lambda *_: len(spark.executors))
    patch.setattr(job_master, "wait_for_executors", lambda *_: len(spark.executors))
    patch.setattr(attempt, "executors_of", lambda session: spark.executors)
    patch.setattr(attempt, "build_anchor", spark.anchor)
    patch.setattr(attempt, "EpochRunner", spark.runner)
    for module in (attempt, checkpoints, job_master, running_checkpoints):
        patch.setattr(module, "wall_clock", spark.clock)
    return spark


def settings(directory: Path, **changes: str) -> dict[str, str]:
    """A job with a checkpoint in every epoch, under a fixed id, that may restart."""
    return {
        "holdfast.job-id": "job",
        "holdfast.state.local-dir": str(directory / "local"),
        "holdfast.epoch.idle-wait": "1 ms",
        "execution.checkpointing.interval": "10 ms",
        # Snapshots are stored within their epoch, so that what an epoch has completed does not depend on time.
        "holdfast.checkpoint.upload-wait": "60 s",
        "execution.checkpointing.dir": str(directory / "chk"),
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "3",
        "restart-strategy.fixed-delay.delay": "1 ms",
        **changes,
    }


class WatchedSink(FileSink):
    """Publishes one transaction after the other, and calls ``before`` ahead of each, with its place in the call and
    whether it is one of a restored checkpoint."""

    before: ClassVar[Callable[[int, bool], None]] = staticmethod(lambda place, recovering: None)

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), JsonSinkFormat())

    def commit(self, handles: Sequence[bytes]) -> None:
        for place, handle in enumerate(handles):
            type(self).before(place, False)
            super().commit([handle])

    def recover_and_commit(self, handles: Sequence[bytes]) -> None:
        for place, handle in enumerate(handles):
            type(self).before(place, True)
            super().recover_and_commit([handle])


#: The level of ``counting`` whose tasks count, and write to its sinks.
SINK_LEVEL = 1


def counting(
    given: Mapping[str, str], epochs: list[list[Any]], *sinks: FileSink, ends: bool = True, parallelism: int = 2
) -> JobClient:
    """Start a job that counts the rows of each key, an epoch for every list of rows."""
    env = environment(**given).set_parallelism(parallelism)
    source = env.from_source(Scripted(epochs, ends), WatermarkStrategy.no_watermarks(), "script").uid("source")
    keyed = source.key_by(lambda row: row[0], Types.LONG())
    counts = keyed.map_with_state(count, state_type=int, output_type=PAIR).uid("count")
    for number, sink in enumerate(sinks):
        counts.sink_to(sink).uid(f"sink-{number}")
    return env.execute_async("counting")


def count(row: tuple[int, int], seen: int | None) -> tuple[tuple[int, int], int]:
    return (row[0], (seen or 0) + 1), (seen or 0) + 1


def counts_of(epochs: list[list[tuple[int, int]]]) -> list[tuple[int, int]]:
    """What ``counting`` must publish, sorted."""
    seen: dict[int, int] = {}
    out = []
    for row in (row for rows in epochs for row in rows):
        seen[row[0]] = seen.get(row[0], 0) + 1
        out.append((row[0], seen[row[0]]))
    return sorted(out)


#: Rows of three keys for six epochs.
EPOCHS = [[(row % 3, row) for row in range(first, first + 5)] for first in range(0, 30, 5)]


def staged(path: Path) -> list[Path]:
    """Files of open transactions of a file sink."""
    return [file for file in path.glob("_holdfast_staging/**/*") if file.is_file()]
