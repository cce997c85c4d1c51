"""What one epoch reads of DataFrames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame

from holdfast.runtime.aggregates import Aggregation
from holdfast.runtime.data_frame_input import DataFrameInput
from holdfast.runtime.local_aggregation import Combination
from holdfast.runtime.plan import JobPlan
from holdfast.spark.accelerations import Acceleration, Accelerations
from holdfast.spark.internals.kept_plan import KeptPlan
from holdfast.spark.internals.planned_rows import PlannedRows, RowShape, rows_of_query, with_settings
from holdfast.spark.partial_aggregation import CombinedColumns, plan_to_combine


class SliceRows(Protocol):
    """Rows whose partitions are fixed, whatever is planned around them."""

    @property
    def partitions(self) -> int: ...

    @property
    def exchanged(self) -> bool:
        """Whether Spark has to shuffle for them, while the epoch runs."""


@dataclass(frozen=True)
class FrameRows:
    """Rows of a DataFrame that is read as a part of the epoch's own plan, through Spark's public API."""

    frame: DataFrame
    partitions: int
    #: Whatever they need is planned with the epoch.
    exchanged: bool = True

    @classmethod
    def of(cls, frame: DataFrame) -> FrameRows:
        """All rows of a DataFrame. Cut off from its own plan: planned as a part of an epoch, it could get other
        partitions than were counted, or share an exchange with the rest of its level.
        """
        return cls.of_micro_batch(frame.select("*").localCheckpoint(eager=False))

    @classmethod
    def of_micro_batch(cls, frame: DataFrame) -> FrameRows:
        """What a query hands over is cut off from its plan already."""
        return cls(frame, frame.rdd.getNumPartitions())


@dataclass(frozen=True)
class DataFrameSlice:
    """All of a DataFrame, or a micro-batch of streams. Of several, the rows of the input at place ``i`` have the tag
    ``i``.
    """

    group: int
    inputs: tuple[DataFrameInput, ...]
    rows: SliceRows
    streaming: bool = False
    #: What Spark combines its rows for, if it does, and where the columns are then.
    aggregation: Aggregation | None = None
    columns: CombinedColumns | None = None

    @property
    def partitions(self) -> int:
        return self.rows.partitions

    @property
    def tagged(self) -> bool:
        return len(self.inputs) > 1


class SlicePlanner:
    """Plans the slices of one attempt. Micro-batches are planned by one thread, and whatever else by another one."""

    def __init__(self, plan: JobPlan, accelerations: Accelerations) -> None:
        self._edges = plan.edges
        self._as_rdds = accelerations.has(Acceleration.KEPT_PLANS)
        self._halves = self._as_rdds and accelerations.has(Acceleration.HALF_AGGREGATIONS)
        self._micro_batches: _MicroBatches | None = None

    def whole(self, source: DataFrameInput) -> DataFrameSlice:
        """All rows of a bounded DataFrame."""
        frame, combination = source.data_frame, self._only_combination((source,))
        if not self._as_rdds:
            return DataFrameSlice(source.group, (source,), FrameRows.of(frame))
        combining = None if combination is None else plan_to_combine(frame, combination, source.event_time)
        if combining is None or combination is None:
            return DataFrameSlice(source.group, (source,), PlannedRows.of(frame))
        # What the program has computed is computed with its settings, whoever reads it.
        rdd = with_settings(frame.sparkSession, combining.plan.execute(), {})
        rows = PlannedRows.of_rdd(rdd, combining.shape)
        aggregation, columns = combination.aggregation, combining.columns
        return DataFrameSlice(source.group, (source,), rows, aggregation=aggregation, columns=columns)

    def micro_batch(self, streams: tuple[DataFrameInput, ...], frame: DataFrame) -> DataFrameSlice:
        """``frame`` has the rows of all streams in one, as a query gives them."""
        if not self._as_rdds:
            return DataFrameSlice(streams[0].group, streams, FrameRows.of_micro_batch(frame), streaming=True)
        if self._micro_batches is None:
            self._micro_batches = _MicroBatches(streams, frame, self._only_combination(streams))
        return self._micro_batches.slice(frame)

    def _only_combination(self, inputs: Sequence[DataFrameInput]) -> Combination | None:
        """What Spark can combine all rows for. Rows for anybody else would have to be read once more."""
        edge_ids = [edge_id for each in inputs for edge_id in each.edge_ids]
        edges = [edge for edge in self._edges if edge.edge_id in edge_ids]
        return edges[0].combine if self._halves and len(inputs) == len(edges) == 1 else None


class _MicroBatches:
    """What is the same for all micro-batches of a query. Their rows come as RDDs, so that the plan which combines rows
    is kept as well.
    """

    def __init__(
        self, streams: tuple[DataFrameInput, ...], first: DataFrame, combination: Combination | None
    ) -> None:
        self._streams = streams
        self._shape = RowShape(first.schema.json())
        self._aggregation: Aggregation | None = None
        self._columns: CombinedColumns | None = None
        self._combine: KeptPlan | None = None
        if combination is None:
            return
        empty = self._shape.empty(first.sparkSession)
        combining = plan_to_combine(empty, combination, streams[0].event_time)
        if combining is not None:
            self._aggregation, self._columns = combination.aggregation, combining.columns
            self._combine, self._shape = KeptPlan(first.sparkSession, combining.plan), combining.shape

    def slice(self, frame: DataFrame) -> DataFrameSlice:
        rdd = rows_of_query(frame)
        if self._combine is not None:
            rdd = self._combine.over([rdd]).execute()
        return DataFrameSlice(
            self._streams[0].group,
            self._streams,
            PlannedRows.of_rdd(rdd, self._shape),
            streaming=True,
            aggregation=self._aggregation,
            columns=self._columns,
        )
