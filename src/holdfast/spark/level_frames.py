"""The levels of an epoch as one DataFrame: each level over the exchange of the one before, on the slots' executors."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from functools import reduce

import msgspec
from pyspark import Broadcast
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from holdfast.errors import EpochError
from holdfast.job.engine import AttemptIdentity
from holdfast.runtime.envelope import EXCHANGE_SCHEMA
from holdfast.runtime.epoch import RestoredJob
from holdfast.runtime.plan import JobPlan
from holdfast.spark.anchor import Anchor
from holdfast.spark.data_frame_task import data_frame_function
from holdfast.spark.envelope_rows import ArrowFunction
from holdfast.spark.level_task import level_function
from holdfast.spark.plan_tree import nodes_of, without
from holdfast.spark.queries import queried
from holdfast.spark.query_task import rows_function
from holdfast.spark.slices import DataFrameSlice
from holdfast.spark.view_columns import ViewColumns

logger = logging.getLogger(__name__)

_UNWANTED = ("BroadcastHashJoin", "SortMergeJoin", "AdaptiveSparkPlan", "ReusedExchange")
#: Where those parts of a plan begin that read what queries join with.
_OF_TABLES = frozenset({"BroadcastExchange", "Subquery"})
_REUSED_TABLE = re.compile(r"ReusedExchange .*\bBroadcastExchange\b")
_PAYLOAD = "payload"

#: Under which levels are planned. An exchange has few rows, large ones: to write a program for them takes longer than
#: to do without.
PLAN_SETTINGS = {"spark.sql.codegen.wholeStage": "false"}

#: As Spark has it: what the tasks of a level send.
EXCHANGE = StructType(
    [StructField(field.name, BinaryType() if field.name == _PAYLOAD else IntegerType()) for field in EXCHANGE_SCHEMA]
)


class LevelFrames:
    """The DataFrames of the levels of one attempt. Functions travel once, in a broadcast."""

    def __init__(
        self, anchor: Anchor, plan: JobPlan, packed_plan: bytes, identity: AttemptIdentity, restored: RestoredJob | None
    ) -> None:
        broadcast = anchor.session.sparkContext.broadcast
        self._anchor = anchor
        self._plan = plan
        self._identity = identity
        self._packed_plan: Broadcast[bytes] = broadcast(packed_plan)
        self._restored = None if restored is None else broadcast(msgspec.msgpack.encode(restored))

    def reading(self, part: DataFrameSlice, rows: DataFrame) -> DataFrame:
        """What the tasks send that read rows like those of a slice."""
        function = data_frame_function(self._packed_plan, self._identity, part, self._anchor.values)
        return rows.mapInArrow(function, EXCHANGE)

    def messages(self, sent: Sequence[DataFrame]) -> DataFrame:
        """What leaves the last level, which is for the coordinator. ``sent`` comes from the tasks that read slices."""
        anchor, levels = self._anchor, self._plan.levels
        sending = list(sent)
        if 0 in levels:
            sending.insert(0, anchor.table.mapInArrow(self._function(0), EXCHANGE))
        for level in range(1, levels.stop):
            rows = self._exchange(reduce(DataFrame.union, sending)) if sending else anchor.table
            rows = self._queried(rows, level)
            sending = [rows.mapInArrow(self._function(level), EXCHANGE)]
        return sending[0].select(_PAYLOAD)

    def _exchange(self, rows: DataFrame) -> DataFrame:
        """Move envelopes to their slots, each slot to the executor that caches its anchor row, in one order."""
        moved = rows.repartition(self._anchor.partitions, "slot").join(self._anchor.table.hint("shuffle_hash"), "slot")
        return moved.sortWithinPartitions("edge", "channel", "number")

    def _queried(self, rows: DataFrame, level: int) -> DataFrame:
        """Envelopes, or what comes of a query over the rows in them: in the same task, without an exchange."""
        queried_chain = self._plan.queried_at(level)
        if queried_chain is None or queried_chain.query is None:
            return rows
        query = queried_chain.query
        function = rows_function(self._packed_plan, self._identity, level, self._anchor.values)
        return queried(query, rows.mapInArrow(function, ViewColumns(query.view).spark))

    def _function(self, level: int) -> ArrowFunction:
        return level_function(self._packed_plan, self._restored, self._identity, level, self._anchor.values)

    def check(self, text: str, slices: int) -> None:
        """``text`` is Spark's plan. It must have one exchange between each two levels, each with as many partitions as
        the anchor, and none on the anchor.
        """
        partitions, levels = self._anchor.partitions, self._plan.levels.stop
        first_level = 0 if slices else self._plan.levels[0]
        if self._plan.queries:
            # What a query reads of tables is planned once, and sent to all tasks; those of another query too.
            nodes = [node for node in without(nodes_of(text), _OF_TABLES) if not _REUSED_TABLE.match(node.text)]
            own = "\n".join(node.text for node in nodes).replace("BroadcastHashJoin", "")
        else:
            own = text
        exchanges = [line for line in own.splitlines() if "Exchange hashpartitioning(slot#" in line]
        # The cached anchor shows the exchange that it was made with, once wherever it is used.
        expected = levels - 1 - first_level + own.count("InMemoryRelation")
        misplaced = [line for line in exchanges if f", {partitions})" not in line]
        unwanted = [name for name in _UNWANTED if name in own]
        if len(exchanges) != expected or misplaced or unwanted:
            raise EpochError(
                f"Spark planned the epoch in a way that does not keep slots on their executors: {len(exchanges)} "
                f"exchanges where {expected} are expected (levels {first_level} to {levels - 1}, of {partitions} "
                f"partitions), unwanted: {unwanted or misplaced or 'none'}. Check spark.sql.adaptive.enabled and join "
                f"hints.\n{text}"
            )
        logger.debug("Epoch plan:\n%s", text)

    def close(self) -> None:
        self._packed_plan.unpersist(blocking=False)
        if self._restored is not None:
            self._restored.unpersist(blocking=False)
