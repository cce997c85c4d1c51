"""One epoch as one Spark job: levels over the anchor, run by a single action."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import reduce
from typing import Any, cast

import msgspec
from py4j.protocol import Py4JError
from pyspark.core.broadcast import Broadcast
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from holdfast.errors import EpochError
from holdfast.runtime.envelope import EXCHANGE_DDL
from holdfast.runtime.epoch import Acknowledgement, EpochSpec, RestoredJob
from holdfast.runtime.plan import JobPlan
from holdfast.runtime.task import read_acknowledgement
from holdfast.spark.anchor import Anchor
from holdfast.spark.combining import explained_overflows
from holdfast.spark.epoch_property import announce_epoch
from holdfast.spark.level_task import ArrowFunction, AttemptIdentity, level_function
from holdfast.spark.planned_rows import RowShape
from holdfast.spark.repeated_plan import RepeatedPlan
from holdfast.spark.session import changed_settings
from holdfast.spark.slice_tasks import SliceTasks
from holdfast.spark.slices import DataFrameSlice

logger = logging.getLogger(__name__)

#: A single slot has all rows in one partition. Spark would spread over many what it takes to be large: the rows of any
#: RDD, and what has come through many joins.
_SINGLE_SLOT = {
    "spark.sql.maxSinglePartitionBytes": f"{(1 << 63) - 1}b",
    "spark.sql.defaultSizeInBytes": "1b",
}
#: An exchange has few rows, large ones: to write a program for them in every epoch takes longer than to do without.
_FEW_ROWS = {"spark.sql.codegen.wholeStage": "false"}
_UNWANTED = ("BroadcastHashJoin", "SortMergeJoin", "AdaptiveSparkPlan", "ReusedExchange")
_PAYLOAD = "payload"


class EpochRunner:
    """Runs the epochs of one attempt. Functions travel once, in a broadcast; each epoch ships only its small spec,
    beside the plan, which is made once for all epochs that read as many DataFrames.
    """

    def __init__(
        self, anchor: Anchor, plan: JobPlan, packed_plan: bytes, identity: AttemptIdentity, restored: RestoredJob | None
    ) -> None:
        self._context = anchor.session.sparkContext
        broadcast = self._context.broadcast
        #: By which the Spark job of an epoch that may be interrupted is found.
        self._tag = f"holdfast-{identity[1]}-{identity[2]}"
        self._anchor = anchor
        self._plan = plan
        self._identity = identity
        self._packed_plan: Broadcast[bytes] = broadcast(packed_plan)
        self._restored = None if restored is None else broadcast(msgspec.msgpack.encode(restored))
        #: Parsed once, not for each level of an epoch.
        self._schema = cast("StructType", StructType.fromDDL(EXCHANGE_DDL))
        self._slice_tasks = SliceTasks(anchor, self._packed_plan, identity, self._schema)
        #: By how many slices of DataFrames are read.
        self._plans: dict[int, RepeatedPlan] = {}

    def run(self, spec: EpochSpec, slices: Sequence[DataFrameSlice]) -> list[Acknowledgement]:
        """All acknowledgements of the epoch."""
        announce_epoch(self._anchor.session, spec)
        plan, sent = self._plan_for(len(slices)), [self._slice_tasks.sent(each) for each in slices]
        combined_for = [each.aggregation for each in slices if each.aggregation is not None]
        with self._tagged() if not spec.read_sources else nullcontext(), explained_overflows(combined_for):
            payloads = plan.run(sent)
        return [read_acknowledgement(payload) for payload in payloads]

    @contextmanager
    def _tagged(self) -> Iterator[None]:
        """Spark jobs of this thread can be interrupted."""
        self._context.addJobTag(self._tag)
        self._context.setInterruptOnCancel(True)
        try:
            yield
        finally:
            with suppress(Py4JError, OSError):
                self._context.removeJobTag(self._tag)
                self._context.setInterruptOnCancel(False)

    def interrupt(self) -> None:
        """Let the epoch fail that runs, if it reads no sources. Any thread may call; a worker whose task does not end
        is killed by Spark.
        """
        with suppress(Py4JError, OSError):
            self._context.cancelJobsWithTag(self._tag)

    def _plan_for(self, slices: int) -> RepeatedPlan:
        if slices not in self._plans:
            # Only messages for the coordinator leave the last level.
            messages = self._build(slices).select(_PAYLOAD)
            with changed_settings(self._anchor.session, _FEW_ROWS):
                plan = self._checked_plan(messages, first_level=0 if slices else self._plan.levels[0])
            self._plans[slices] = RepeatedPlan(self._anchor.session, messages, plan)
        return self._plans[slices]

    def _build(self, slices: int) -> DataFrame:
        """All levels, with nothing in the place of what the tasks send that read slices."""
        anchor, levels = self._anchor, self._plan.levels
        sent: list[DataFrame] = []
        if 0 in levels:
            sent.append(anchor.table.mapInArrow(self._function(0), self._schema))
        sent += [RowShape(self._schema.json()).empty(anchor.session) for _ in range(slices)]
        for level in range(1, levels.stop):
            rows = self._exchange(reduce(DataFrame.union, sent)) if sent else anchor.table
            sent = [rows.mapInArrow(self._function(level), self._schema)]
        return sent[0]

    def _exchange(self, rows: DataFrame) -> DataFrame:
        """Move envelopes to their slots, each slot to the executor that caches its anchor row, in one order."""
        slots = self._plan.slots
        moved = rows.repartition(slots, "slot").join(self._anchor.table.hint("shuffle_hash"), "slot")
        return moved.sortWithinPartitions("edge", "channel", "number")

    def _function(self, level: int) -> ArrowFunction:
        return level_function(self._packed_plan, self._restored, self._identity, level, self._anchor.values)

    def _checked_plan(self, messages: DataFrame, first_level: int) -> Any:
        """Spark's plan. It must have one exchange between each two levels, each with as many partitions as slots, and
        none on the anchor.
        """
        with changed_settings(self._anchor.session, _SINGLE_SLOT) if self._plan.slots == 1 else nullcontext():
            plan = messages._jdf.queryExecution().executedPlan()
        text: str = plan.toString()
        slots, levels = self._plan.slots, self._plan.levels.stop
        # With one slot there is nothing to hash by, and Spark says so in other words.
        wanted = "Exchange hashpartitioning(slot#" if slots > 1 else "Exchange SinglePartition"
        exchanges = [line for line in text.splitlines() if wanted in line]
        # The cached anchor shows the exchange that it was made with, once wherever it is used.
        expected = levels - 1 - first_level + text.count("InMemoryRelation")
        misplaced = [line for line in exchanges if slots > 1 and f", {slots})" not in line]
        unwanted = [name for name in _UNWANTED if name in text]
        if len(exchanges) != expected or misplaced or unwanted:
            raise EpochError(
                f"Spark planned the epoch in a way that does not keep slots on their executors: {len(exchanges)} "
                f"exchanges where {expected} are expected (levels {first_level} to {levels - 1}, {slots} slots), "
                f"unwanted: {unwanted or misplaced or 'none'}. Check spark.sql.adaptive.enabled and join hints.\n{text}"
            )
        logger.debug("Epoch plan:\n%s", text)
        return plan

    def close(self) -> None:
        with suppress(Py4JError, OSError):  # a JVM that is gone holds nothing
            announce_epoch(self._anchor.session, None)
            self._packed_plan.unpersist(blocking=False)
            if self._restored is not None:
                self._restored.unpersist(blocking=False)
