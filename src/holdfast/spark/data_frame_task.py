"""Level 0 of a DataFrame: its partitions, as Spark made them, are split into envelopes. It holds no state."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import msgspec
import pyarrow as pa
from pyspark import TaskContext
from pyspark.core.broadcast import Broadcast

from holdfast.runtime.batch import Batch
from holdfast.runtime.envelope import GROUP_SIZE, Barrier, Header, pack
from holdfast.runtime.epoch import Acknowledgement, EpochSpec, OperatorProgress
from holdfast.runtime.operator import MAX_WATERMARK
from holdfast.runtime.plan import JobPlan
from holdfast.runtime.router import Outbox, Router
from holdfast.spark.epoch_property import announced_epoch
from holdfast.spark.failures import reporting_failures
from holdfast.spark.job import DataFrameInput
from holdfast.spark.level_task import ArrowFunction, AttemptIdentity, envelope_batches, plan_of
from holdfast.types.arrow import row_reader, schema_of


def data_frame_function(
    plan: Broadcast[bytes],
    identity: AttemptIdentity,
    source: DataFrameInput,
    first_partition: int,
    values: list[int],
) -> ArrowFunction:
    """``first_partition`` is where the DataFrame's partitions begin in the union that makes up level 0."""
    group, operator_id, name, edge_ids = source.group, source.operator_id, source.name, source.edge_ids

    def run_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        with reporting_failures():
            job, spec = plan_of(plan, identity), announced_epoch(context)
            index = context.partitionId() - first_partition
            partition = _Partition(job, group, index, spec, operator_id, f"source '{name}'", edge_ids)
            yield from partition.run(batches, values)

    return run_partition


class _Partition:
    """One execution of one partition."""

    def __init__(
        self,
        plan: JobPlan,
        group: int,
        index: int,
        spec: EpochSpec,
        operator_id: str,
        where: str,
        edge_ids: tuple[int, ...],
    ) -> None:
        self._group = group
        self._index = index
        self._spec = spec
        self._operator_id = operator_id
        self._nonce = uuid.uuid4().hex[:16]
        self._outbox = Outbox(group * GROUP_SIZE + index, plan.slots)
        edges = [edge for edge in plan.edges if edge.edge_id in edge_ids]
        self._type = edges[0].type_info
        self._routers = [Router(edge, index, index, where, plan.options) for edge in edges]
        for router in self._routers:
            router.begin_epoch(self._outbox)

    def run(self, batches: Iterator[pa.RecordBatch], values: list[int]) -> Iterator[pa.RecordBatch]:
        read_rows, schema = row_reader(self._type), schema_of(self._type)
        rows = 0
        for arrow in batches:
            rows += arrow.num_rows
            columns = [column.cast(field.type) for column, field in zip(arrow.columns, schema, strict=True)]
            batch = Batch.of_arrow(pa.RecordBatch.from_arrays(columns, schema=schema), read_rows)
            for router in self._routers:
                router.collect(batch)
            yield from envelope_batches(iter(self._outbox.take()), values)
        for router in self._routers:
            router.flush()  # the driver says when a DataFrame has ended
        self._outbox.to_coordinator(0, pack(Header(), msgspec.msgpack.encode(self._acknowledgement(rows))))
        checkpoint = self._spec.checkpoint
        barrier = Barrier(
            self._spec.attempt,
            self._spec.epoch,
            checkpoint.checkpoint_id if checkpoint else None,
            checkpoint.checkpoint_type if checkpoint else None,
            self._nonce,
            0,
        )
        yield from envelope_batches(iter(self._outbox.close(barrier)), values)

    def _acknowledgement(self, rows: int) -> Acknowledgement:
        progress = OperatorProgress(self._operator_id, 0, rows, rows, MAX_WATERMARK, True)
        return Acknowledgement(self._group, 0, self._index, self._spec.epoch, self._nonce, {}, (progress,), ended=True)
