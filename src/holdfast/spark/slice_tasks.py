"""The tasks that read DataFrames: their partitions as rows of the exchange, under plans that are made once."""

from __future__ import annotations

from typing import Any

from pyspark.core.broadcast import Broadcast
from pyspark.sql.types import StructType

from holdfast.spark.anchor import Anchor
from holdfast.spark.combining import CombinedColumns
from holdfast.spark.data_frame_task import data_frame_function
from holdfast.spark.kept_plan import KeptPlan
from holdfast.spark.level_task import AttemptIdentity
from holdfast.spark.planned_rows import RowShape, with_settings
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


class SliceTasks:
    """Of one attempt."""

    def __init__(self, anchor: Anchor, plan: Broadcast[bytes], identity: AttemptIdentity, exchange: StructType) -> None:
        self._session = anchor.session
        self._values = anchor.values
        self._plan = plan
        self._identity = identity
        self._exchange = exchange
        self._kept: dict[_Kind, KeptPlan] = {}

    def sent(self, part: DataFrameSlice) -> Any:
        """An RDD with what the tasks send that read a slice."""
        shape = part.rows.shape
        kind = part.group, shape, part.columns
        if kind not in self._kept:
            function = data_frame_function(self._plan, self._identity, part, self._values)
            sent = shape.empty(self._session).mapInArrow(function, self._exchange)
            self._kept[kind] = KeptPlan(self._session, sent._jdf.queryExecution().executedPlan())
        rdd = self._kept[kind].over([part.rows.rdd]).execute()
        return with_settings(self._session, rdd, LARGE_BATCHES) if shape.few_numbers else rdd
