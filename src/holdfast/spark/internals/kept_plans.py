"""Epochs whose plans are made once for an attempt, and run again over other rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession

from holdfast.spark.internals.kept_plan import KeptPlan
from holdfast.spark.internals.planned_rows import PlannedRows, RowShape, executed_plan, with_settings
from holdfast.spark.internals.repeated_plan import RepeatedPlan
from holdfast.spark.level_frames import EXCHANGE, PLAN_SETTINGS, LevelFrames
from holdfast.spark.partial_aggregation import CombinedColumns
from holdfast.spark.session_settings import changed_settings
from holdfast.spark.slices import DataFrameSlice

#: Of what is read, whatever it is: its group, what its rows are like, and their columns if Spark has combined them.
_Kind = tuple[int, RowShape, CombinedColumns | None]

#: For rows of few numbers. A limit in bytes would be looked at for each row, which takes Spark a fifth of its time
#: for such rows; as many as these are not large anyway.
LARGE_BATCHES = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    # The one value that stands for none.
    "spark.sql.execution.arrow.maxBytesPerBatch": f"{(1 << 31) - 1}b",
}


class KeptPlans:
    """Plans that are kept for an attempt, in the place of ``FreshPlans``. Rows of slices come as RDDs."""

    def __init__(self, session: SparkSession, frames: LevelFrames) -> None:
        self._session = session
        self._frames = frames
        #: Of the levels, by how many slices are read.
        self._levels: dict[int, RepeatedPlan] = {}
        #: Of the tasks that read slices.
        self._readers: dict[_Kind, KeptPlan] = {}

    def run(self, slices: Sequence[DataFrameSlice]) -> list[bytes]:
        """All messages of the epoch's tasks."""
        return self._levels_for(len(slices)).run([self._sent(each) for each in slices])

    def _levels_for(self, slices: int) -> RepeatedPlan:
        """The plan of the levels, with nothing in the place of what the tasks send that read slices."""
        if slices not in self._levels:
            empty = RowShape(EXCHANGE.json())
            messages = self._frames.messages([empty.empty(self._session) for _ in range(slices)])
            with changed_settings(self._session, PLAN_SETTINGS):
                plan = executed_plan(messages)
            self._frames.check(plan.toString(), slices)
            self._levels[slices] = RepeatedPlan(self._session, messages, plan)
        return self._levels[slices]

    def _sent(self, part: DataFrameSlice) -> Any:
        """An RDD with what the tasks send that read a slice."""
        assert isinstance(part.rows, PlannedRows)
        shape = part.rows.shape
        kind = part.group, shape, part.columns
        if kind not in self._readers:
            sent = self._frames.reading(part, shape.empty(self._session))
            self._readers[kind] = KeptPlan(self._session, executed_plan(sent))
        rdd = self._readers[kind].over([part.rows.rdd]).execute()
        return with_settings(self._session, rdd, LARGE_BATCHES) if shape.few_numbers else rdd
