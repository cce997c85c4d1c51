"""One epoch as one Spark job: levels over the anchor, run by a single action."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol, cast

from pyspark.errors import PySparkException

from holdfast.job.engine import AttemptIdentity, InputSlice
from holdfast.runtime.epoch import Acknowledgement, EpochSpec, RestoredJob
from holdfast.runtime.plan import JobPlan
from holdfast.runtime.task import read_acknowledgement
from holdfast.spark.accelerations import Acceleration, Accelerations
from holdfast.spark.anchor import Anchor
from holdfast.spark.epoch_property import announce_epoch
from holdfast.spark.executors import is_local
from holdfast.spark.failures import raise_failure
from holdfast.spark.fresh_plans import FreshPlans
from holdfast.spark.internals.executor_ids import holders_of
from holdfast.spark.internals.jvm import JVM_ERRORS
from holdfast.spark.internals.kept_plans import KeptPlans
from holdfast.spark.level_frames import LevelFrames
from holdfast.spark.lost_tasks import failure_with_task
from holdfast.spark.partial_aggregation import explained_overflows
from holdfast.spark.slices import DataFrameSlice


class EpochPlans(Protocol):
    """How the Spark job of an epoch is made and run."""

    def run(self, slices: Sequence[DataFrameSlice]) -> list[bytes]:
        """All messages of the epoch's tasks."""


class SparkEpochRunner:
    """Runs the epochs of one attempt. What changes from one to the next is a small spec, a property of the job."""

    def __init__(
        self,
        anchor: Anchor,
        plan: JobPlan,
        packed_plan: bytes,
        identity: AttemptIdentity,
        restored: RestoredJob | None,
        accelerations: Accelerations,
    ) -> None:
        self._context = anchor.session.sparkContext
        #: By which the Spark job of an epoch is found that is to be interrupted.
        self._tag = f"holdfast-{identity[1]}-{identity[2]}"
        self._anchor = anchor
        self._plan = plan
        self.watched = accelerations.has(Acceleration.EXECUTOR_IDS) and not is_local(anchor.session)
        self._frames = LevelFrames(anchor, plan, packed_plan, identity, restored)
        make = KeptPlans if accelerations.has(Acceleration.KEPT_PLANS) else FreshPlans
        self._plans: EpochPlans = make(anchor.session, self._frames)

    def holders(self) -> frozenset[str]:
        """Spark knows where the anchor is cached from the first job on that reads it."""
        return holders_of(self._anchor.table)

    def run(self, spec: EpochSpec, slices: Sequence[InputSlice]) -> list[Acknowledgement]:
        """All acknowledgements of the epoch. Slices are those of ``SparkInputs``."""
        announce_epoch(self._anchor.session, spec)
        parts = cast("Sequence[DataFrameSlice]", slices)
        combined_for = [each.aggregation for each in parts if each.aggregation is not None]
        try:
            with self._tagged(), explained_overflows(combined_for):
                payloads = self._plans.run(parts)
        except (*JVM_ERRORS, PySparkException) as error:
            raise failure_with_task(error, self._plan, self._context) from None
        raise_failure(payloads)
        return [read_acknowledgement(payload) for payload in payloads]

    @contextmanager
    def _tagged(self) -> Iterator[None]:
        """Spark jobs of this thread can be interrupted."""
        self._context.addJobTag(self._tag)
        self._context.setInterruptOnCancel(True)
        try:
            yield
        finally:
            with suppress(*JVM_ERRORS):
                self._context.removeJobTag(self._tag)
                self._context.setInterruptOnCancel(False)

    def interrupt(self) -> None:
        """Let the epoch fail that runs. Any thread may call; a worker whose task does not end is killed by Spark."""
        with suppress(*JVM_ERRORS):
            self._context.cancelJobsWithTag(self._tag)

    def close(self) -> None:
        with suppress(*JVM_ERRORS):
            announce_epoch(self._anchor.session, None)
            self._frames.close()
        self._anchor.release()
