"""Level 0 of DataFrames: their partitions, as Spark made them, are split into envelopes. It holds no state."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import Broadcast, TaskContext

from holdfast.job.engine import AttemptIdentity
from holdfast.runtime.batch import Batch
from holdfast.runtime.combining_router import router_of
from holdfast.runtime.envelope import GROUP_SIZE, ChannelStatus, Header, pack
from holdfast.runtime.epoch import Acknowledgement, EpochSpec, OperatorProgress
from holdfast.runtime.event_time_column import EventTimeColumn
from holdfast.runtime.event_times import Times
from holdfast.runtime.operator import MAX_WATERMARK, MIN_WATERMARK
from holdfast.runtime.plan import JobPlan
from holdfast.runtime.router import Outbox, Router
from holdfast.spark.envelope_rows import ArrowFunction, envelope_batches
from holdfast.spark.epoch_property import announced_epoch
from holdfast.spark.failures import sending_failures
from holdfast.spark.partial_aggregation import CombinedColumns, SparkCombined
from holdfast.spark.slices import DataFrameSlice
from holdfast.spark.task_plan import plan_of
from holdfast.types.arrow import row_reader, schema_of

#: The slot of level 1 that passes on what is for the driver.
_TO_DRIVER = 0


class _Origin(NamedTuple):
    """What a task knows of a DataFrame."""

    operator_id: str
    name: str
    edge_ids: tuple[int, ...]
    event_time: EventTimeColumn | None


def data_frame_function(
    plan: Broadcast[bytes],
    identity: AttemptIdentity,
    part: DataFrameSlice,
    values: list[int],
) -> ArrowFunction:
    """For all slices like ``part``, in every epoch of an attempt. Where Spark gives combined rows they are for its only
    edge.
    """
    group, streaming, tagged, combined = part.group, part.streaming, part.tagged, part.columns
    origins = [_Origin(each.operator_id, each.name, each.edge_ids, each.event_time) for each in part.inputs]

    def run_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        yield from sending_failures(sent(context, batches), values)

    def sent(context: TaskContext, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        job, spec = plan_of(plan, identity), announced_epoch(context)
        index = context.partitionId() - _first_partition(job, spec, group, len(values))
        partition = _Partition(job, group, index, spec, origins, combined)
        rows = _by_tag(batches) if tagged else ((0, batch) for batch in batches)
        with job.files.entered():
            yield from partition.run(rows, values, over=not streaming)

    return run_partition


def _first_partition(plan: JobPlan, spec: EpochSpec, group: int, of_level: int) -> int:
    """Where those of a group begin in the union that makes up level 0, behind the partitions of the job's own."""
    before = takewhile(lambda other: other != group, spec.partitions)
    own = of_level if 0 in plan.levels else 0
    return own + sum(spec.partitions[other] for other in before)


def _by_tag(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each stream, in its own columns. Beside the tag a row has one column for each stream."""
    for batch in batches:
        for tag in pc.unique(batch.column(0)).to_pylist():
            rows = batch.filter(pc.equal(batch.column(0), tag)).column(tag + 1)
            yield tag, pa.RecordBatch.from_struct_array(rows)


class _Output:
    """Where the rows of one DataFrame go."""

    def __init__(
        self,
        plan: JobPlan,
        origin: _Origin,
        index: int,
        outbox: Outbox,
        spec: EpochSpec,
        combined: CombinedColumns | None,
    ) -> None:
        edges = [edge for edge in plan.edges if edge.edge_id in origin.edge_ids]
        self.operator_id = origin.operator_id
        self.rows = 0
        #: What the rows say of event time.
        self.watermark = MIN_WATERMARK
        self._event_time = origin.event_time
        self._combined = combined
        received = edges[0].given_type if combined is None else edges[0].type_info
        self._schema = schema_of(received)
        self._read_rows = row_reader(received)
        # What Spark has combined is sent as it is.
        make = router_of if combined is None else Router
        self._routers = [make(edge, index, index, f"source '{origin.name}'", plan.options) for edge in edges]
        for router in self._routers:
            router.begin_epoch(outbox, spec.attempt, spec.epoch)

    def collect(self, arrow: pa.RecordBatch) -> None:
        given, event_time = self._given(arrow), self._event_time
        self.rows += given.counted
        cast = [column.cast(field.type) for column, field in zip(given.columns, self._schema, strict=True)]
        batch = Batch.of_arrow(pa.RecordBatch.from_arrays(cast, schema=self._schema), self._read_rows)
        if event_time is not None:
            newest = pc.max(given.newest).as_py()
            if newest is not None:
                self.watermark = max(self.watermark, event_time.promised(newest))
            # Event time is what rows of earlier epochs say, which whoever receives these knows.
            times = Times([None] * len(batch)) if given.times is None else Times.of_column(given.times)
            batch = batch.timed(times, np.full(len(batch), MIN_WATERMARK, dtype=np.int64))
        for router in self._routers:
            router.collect(batch)

    def _given(self, arrow: pa.RecordBatch) -> SparkCombined:
        """Rows as Spark hands them over, each standing for itself unless Spark has combined them."""
        if self._combined is not None:
            return self._combined.read(arrow)
        times = None
        if self._event_time is not None:
            times = self._event_time.milliseconds(arrow.column(self._event_time.place))
        return SparkCombined(arrow.columns, arrow.num_rows, times, times)

    def flush(self) -> None:
        for router in self._routers:
            if self.watermark == MIN_WATERMARK:
                router.flush()  # the driver says when a DataFrame has ended
            else:
                router.close_epoch(ChannelStatus(self.watermark, idle=False, ended=False))


class _Partition:
    """One execution of one partition."""

    def __init__(
        self,
        plan: JobPlan,
        group: int,
        index: int,
        spec: EpochSpec,
        origins: Sequence[_Origin],
        combined: CombinedColumns | None,
    ) -> None:
        self._group = group
        self._index = index
        self._spec = spec
        self._nonce = uuid.uuid4().hex[:16]
        self._outbox = Outbox(group * GROUP_SIZE + index)
        self._outputs = [_Output(plan, origin, index, self._outbox, spec, combined) for origin in origins]

    def run(
        self, rows: Iterator[tuple[int, pa.RecordBatch]], values: list[int], over: bool
    ) -> Iterator[pa.RecordBatch]:
        """``rows`` are batches with the place of their DataFrame; ``over`` says that no later epoch has more."""
        for place, batch in rows:
            self._outputs[place].collect(batch)
            yield from envelope_batches(iter(self._outbox.take()), values)
        for output in self._outputs:
            output.flush()
            yield from envelope_batches(iter(self._outbox.take()), values)
        self._outbox.to_coordinator(_TO_DRIVER, pack(Header(), msgspec.msgpack.encode(self._acknowledgement(over))))
        yield from envelope_batches(iter(self._outbox.close(self._spec.barrier(self._nonce))), values)

    def _acknowledgement(self, over: bool) -> Acknowledgement:
        progress = tuple(
            OperatorProgress(o.operator_id, 0, o.rows, o.rows, MAX_WATERMARK if over else o.watermark, over)
            for o in self._outputs
        )
        sent = self._outbox.sent_with_acknowledgement(_TO_DRIVER)
        task = (self._group, 0, self._index, self._spec.epoch, self._nonce)
        return Acknowledgement(*task, {}, sent, progress, ended=over)
