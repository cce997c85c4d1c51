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
from holdfast.spark.repeated_plan import RepeatedPlan
from holdfast.spark.session import changed_settings
from holdfast.spark.stream_plan import rows_of_stream

logger = logging.getLogger(__name__)

#: A single slot has all rows in one partition. Spark would spread over many what it takes to be large: the rows of any
#: RDD, and what has come through many joins. Not for the user's own plans, which sizes matter for.
_SINGLE_SLOT = {
    "spark.sql.maxSinglePartitionBytes": f"{(1 << 63) - 1}b",
    "spark.sql.defaultSizeInBytes": "1b",
}
#: An exchange has few rows, large ones: to write a program for them in every epoch takes longer than to do without.
#: Not for epochs with DataFrames, which are planned in the user's session.
_FEW_ROWS = {"spark.sql.codegen.wholeStage": "false"}
_UNWANTED = ("BroadcastHashJoin", "SortMergeJoin", "AdaptiveSparkPlan", "ReusedExchange")
_PAYLOAD = "payload"


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
        self._own_sources: RepeatedPlan | None = None

    def run(
        self, spec: EpochSpec, slices: tuple[DataFrameSlice, ...]
    ) -> tuple[list[Acknowledgement], Mapping[int, int]]:
        """All acknowledgements of the epoch, and by group the partitions of each DataFrame that it read."""
        announce_epoch(self._anchor.session, spec)
        inputs = [self._planned(each) for each in slices]
        with self._tagged() if not spec.read_sources else nullcontext():
            payloads = self._with_data_frames(inputs) if inputs else self._repeated().run()
        partitions = {each.part.group: each.planned.partitions for each in inputs}
        return [read_acknowledgement(payload) for payload in payloads], partitions

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

    def _repeated(self) -> RepeatedPlan:
        """The levels of an epoch that reads no DataFrame: the same in every epoch."""
        if self._own_sources is None:
            messages = self._messages(())
            with changed_settings(self._anchor.session, _FEW_ROWS):
                plan = self._checked_plan(messages)
            self._own_sources = RepeatedPlan(self._anchor.session, messages, plan)
        return self._own_sources

    def _with_data_frames(self, inputs: Sequence[_Input]) -> list[bytes]:
        """The epoch as a query of its own, since its rows are those of one."""
        messages = self._messages(inputs)
        self._checked_plan(messages)
        with explained_overflows(each.combined for each in inputs if each.combined is not None):
            payloads: list[bytes] = messages.toArrow().column(_PAYLOAD).to_pylist()
        return payloads

    def _messages(self, inputs: Sequence[_Input]) -> DataFrame:
        """Only messages for the coordinator leave the last level."""
        return self._build(inputs).select(_PAYLOAD)

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

    def _checked_plan(self, messages: DataFrame) -> Any:
        """Spark's plan, made here and kept by ``messages`` for when it is run. It must have one exchange per level,
        each with as many partitions as slots, and none on the anchor.
        """
        with changed_settings(self._anchor.session, _SINGLE_SLOT) if self._plan.slots == 1 else nullcontext():
            plan = messages._jdf.queryExecution().executedPlan()
        text: str = plan.toString()
        slots, levels = self._plan.slots, self._plan.levels
        # With one slot there is nothing to hash by, and Spark says so in other words.
        wanted = "Exchange hashpartitioning(slot#" if slots > 1 else "Exchange SinglePartition"
        exchanges = [line for line in text.splitlines() if wanted in line]
        # The cached anchor shows the exchange that it was made with, once wherever it is used.
        expected = levels - 1 + text.count("InMemoryRelation")
        misplaced = [line for line in exchanges if slots > 1 and f", {slots})" not in line]
        unwanted = [name for name in _UNWANTED if name in text]
        if len(exchanges) != expected or misplaced or unwanted:
            raise EpochError(
                f"Spark planned the epoch in a way that does not keep slots on their executors: {len(exchanges)} "
                f"exchanges where {expected} are expected "
                f"({levels} levels, {slots} slots), unwanted: {unwanted or misplaced or 'none'}. Check "
                f"spark.sql.adaptive.enabled and join hints.\n{text}"
            )
        logger.debug("Epoch plan:\n%s", text)
        return plan

    def close(self) -> None:
        with suppress(Py4JError, OSError):  # a JVM that is gone holds nothing
            announce_epoch(self._anchor.session, None)
            self._packed_plan.unpersist(blocking=False)
            if self._restored is not None:
                self._restored.unpersist(blocking=False)
