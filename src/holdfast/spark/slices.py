"""What one epoch reads of DataFrames, planned by Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from holdfast.runtime.aggregates import Aggregation
from holdfast.runtime.plan import JobPlan
from holdfast.spark.combining import combined_by_spark
from holdfast.spark.job import DataFrameInput
from holdfast.spark.planned_rows import PlannedRows


@dataclass(frozen=True)
class DataFrameSlice:
    """All of a DataFrame, or a micro-batch of streams. Of several, the rows of the input at place ``i`` have the tag
    ``i``.
    """

    group: int
    inputs: tuple[DataFrameInput, ...]
    rows: PlannedRows
    streaming: bool = False
    #: What Spark combines its rows for, if it does.
    combined: Aggregation | None = None

    @property
    def tagged(self) -> bool:
        return len(self.inputs) > 1


class SlicePlanner:
    """Any thread may call."""

    def __init__(self, plan: JobPlan) -> None:
        self._edges = plan.edges

    def whole(self, source: DataFrameInput) -> DataFrameSlice:
        """All rows of a bounded DataFrame."""
        return self._slice((source,), source.data_frame, streaming=False)

    def micro_batch(self, streams: Sequence[DataFrameInput], rows: DataFrame) -> DataFrameSlice:
        """``rows`` of all streams in one, as Spark gives them."""
        return self._slice(tuple(streams), rows, streaming=True)

    def _slice(self, inputs: tuple[DataFrameInput, ...], frame: DataFrame, streaming: bool) -> DataFrameSlice:
        group, aggregation = inputs[0].group, self._only_aggregation(inputs)
        if aggregation is not None:
            combined = combined_by_spark(frame, aggregation)
            if combined is not None:
                return DataFrameSlice(group, inputs, combined, streaming, aggregation)
        return DataFrameSlice(group, inputs, PlannedRows.of(frame), streaming)

    def _only_aggregation(self, inputs: Sequence[DataFrameInput]) -> Aggregation | None:
        """The aggregation that all rows are for. Rows for anybody else would have to be read once more."""
        edge_ids = [edge_id for each in inputs for edge_id in each.edge_ids]
        edges = [edge for edge in self._edges if edge.edge_id in edge_ids]
        return edges[0].combine if len(inputs) == len(edges) == 1 else None
