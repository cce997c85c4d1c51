"""One epoch as one Spark job: levels over the anchor, run by a single action."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, cast

import msgspec
from py4j.protocol import Py4JError
from pyspark.core.broadcast import Broadcast
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from holdfast.errors import EpochError
from holdfast.runtime.aggregates import Aggregation
from holdfast.runtime.envelope import EXCHANGE_DDL, GROUP_SIZE
from holdfast.runtime.epoch import Acknowledgement, EpochSpec, RestoredJob
from holdfast.runtime.plan import JobPlan
from holdfast.runtime.task import read_acknowledgement
from holdfast.spark.anchor import Anchor
from holdfast.spark.combining import combined_by_spark, explained_overflows
from holdfast.spark.data_frame_task import data_frame_function
from holdfast.spark.epoch_property import announce_epoch
from holdfast.spark.job import DataFrameSlice
from holdfast.spark.level_task import ArrowFunction, AttemptIdentity, level_function
from holdfast.spark.planned_rows import PlannedRows
from holdfast.spark.session import changed_settings
from holdfast.spark.stream_plan import rows_of_stream

logger = logging.getLogger(__name__)

#: A single slot has all rows in one partition. Spark would spread over many what it takes to be large: the rows of any
#: RDD, and what has come through many joins. Not for the user's own plans, which sizes matter for.
_SINGLE_SLOT = {
    "spark.sql.maxSinglePartitionBytes": f"{(1 << 63) - 1}b",
    "spark.sql.defaultSizeInBytes": "1b",
}


@dataclass(frozen=True)
class _Input:
    """What an epoch reads of a DataFrame, planned. Where Spark combines its rows, ``combined`` says what for."""

    part: DataFrameSlice
    planned: PlannedRows
    combined: Aggregation | None = None


class EpochRunner:
    """Runs the epochs of one attempt. Functions travel once, in a broadcast; each epoch ships only its small spec,
    beside the plan.
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
        self._first_level = anchor.table.mapInArrow(self._function(0, []), self._schema)
        self._levels: DataFrame | None = None

    def run(
        self, spec: EpochSpec, slices: tuple[DataFrameSlice, ...]
    ) -> tuple[list[Acknowledgement], Mapping[int, int]]:
        """All acknowledgements of the epoch, and by group the partitions of each DataFrame that it read."""
        announce_epoch(self._anchor.session, spec)
        inputs = [self._planned(each) for each in slices]
        rows = self._build(inputs) if inputs else self._own_sources()
        # Only messages for the coordinator leave the last level. The selection is made anew for each epoch: Spark
        # plans and runs all stages of it, where the same DataFrame collected twice would give the old rows again.
        messages = rows.select("payload")
        plan = self._plan_of(messages)
        if inputs:
            self._check_plan(plan)
        aggregations = [each.combined for each in inputs if each.combined is not None]
        with self._tagged() if not spec.read_sources else nullcontext(), explained_overflows(aggregations):
            payloads = messages.toArrow().column("payload")
        partitions = {each.part.group: each.planned.partitions for each in inputs}
        return [read_acknowledgement(payload.as_py()) for payload in payloads], partitions

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

    def _own_sources(self) -> DataFrame:
        """The levels of an epoch that reads no DataFrame: the same in every epoch."""
        if self._levels is None:
            self._levels = self._build(())
            self._check_plan(self._plan_of(self._levels))
        return self._levels

    def _planned(self, part: DataFrameSlice) -> _Input:
        aggregation = self._only_aggregation(part)
        if aggregation is not None:
            rows = rows_of_stream(part.data_frame, 0) if part.tagged else part.data_frame
            combined = combined_by_spark(self._anchor.session, rows, aggregation)
            if combined is not None:
                return _Input(part, combined, aggregation)
        return _Input(part, PlannedRows.of(self._anchor.session, part.data_frame))

    def _only_aggregation(self, part: DataFrameSlice) -> Aggregation | None:
        """The aggregation that all rows of it are for. Rows for anybody else would have to be read once more."""
        edge_ids = [edge_id for each in part.inputs for edge_id in each.edge_ids]
        edges = [edge for edge in self._plan.edges if edge.edge_id in edge_ids]
        return edges[0].combine if len(part.inputs) == len(edges) == 1 else None

    def _build(self, inputs: Sequence[_Input]) -> DataFrame:
        slots, values = self._plan.slots, self._anchor.values
        rows = self._first_level
        senders, first = list(range(slots)), slots
        for each in inputs:
            combined = each.combined is not None
            function = data_frame_function(self._packed_plan, self._identity, each.part, first, values, combined)
            rows = rows.union(each.planned.rows.mapInArrow(function, self._schema))
            senders += [each.part.group * GROUP_SIZE + index for index in range(each.planned.partitions)]
            first += each.planned.partitions
        for level in range(1, self._plan.levels):
            rows = self._exchange(rows).mapInArrow(self._function(level, senders), self._schema)
            senders = list(range(slots))
        return rows

    def _exchange(self, rows: DataFrame) -> DataFrame:
        """Move envelopes to their slots, each slot to the executor that caches its anchor row, in one order."""
        slots = self._plan.slots
        moved = rows.repartition(slots, "slot").join(self._anchor.table.hint("shuffle_hash"), "slot")
        return moved.sortWithinPartitions("edge", "channel", "number")

    def _function(self, level: int, senders: list[int]) -> ArrowFunction:
        return level_function(self._packed_plan, self._restored, self._identity, level, senders, self._anchor.values)

    def _plan_of(self, rows: DataFrame) -> Any:
        """Spark's plan, made here and kept by ``rows`` for when it is run."""
        with changed_settings(self._anchor.session, _SINGLE_SLOT) if self._plan.slots == 1 else nullcontext():
            return rows._jdf.queryExecution().executedPlan()

    def _check_plan(self, plan: Any) -> None:
        """It must have one exchange per level, each with as many partitions as slots, and none on the anchor."""
        text: str = plan.toString()
        slots, levels = self._plan.slots, self._plan.levels
        # With one slot there is nothing to hash by, and Spark says so in other words.
        wanted = "Exchange hashpartitioning(slot#" if slots > 1 else "Exchange SinglePartition"
        exchanges = [line for line in text.splitlines() if wanted in line]
        # The cached anchor shows the exchange that it was made with, once wherever it is used.
        expected = levels - 1 + text.count("InMemoryRelation")
        misplaced = [line for line in exchanges if slots > 1 and f", {slots})" not in line]
        unwanted = [name for name in ("BroadcastHashJoin", "SortMergeJoin", "AdaptiveSparkPlan") if name in text]
        if len(exchanges) != expected or misplaced or unwanted:
            raise EpochError(
                f"Spark planned the epoch in a way that does not keep slots on their executors: {len(exchanges)} "
                f"exchanges where {expected} are expected "
                f"({levels} levels, {slots} slots), unwanted: {unwanted or misplaced or 'none'}. Check "
                f"spark.sql.adaptive.enabled and join hints.\n{text}"
            )
        logger.debug("Epoch plan:\n%s", text)

    def close(self) -> None:
        with suppress(Py4JError, OSError):  # a JVM that is gone holds nothing
            announce_epoch(self._anchor.session, None)
            self._packed_plan.unpersist(blocking=False)
            if self._restored is not None:
                self._restored.unpersist(blocking=False)
