"""Count, sum, minimum and maximum of the values of each key: after every row, or, by columns, once in an epoch."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.jobs.holdfast.inputs import Inputs
from holdfast.common import Row, Types
from holdfast.datastream import DataStream, KeyedBatchContext, KeyedBatchFunction, RuntimeContext
from holdfast.datastream.aggregates import Count, Max, Min, Sum
from holdfast.datastream.state import ValueStateDescriptor

TOTALS = Types.TUPLE([Types.LONG()] * 5)
NAMED_TOTALS = Types.ROW_NAMED(["key", "count", "sum", "min", "max"], [Types.LONG()] * 5)
Totals = tuple[int, int, int, int, int]


def first(event: Row) -> Totals:
    key, value = event
    return key, 1, value, value, value


def add(one: Totals, other: Totals) -> Totals:
    return one[0], one[1] + other[1], one[2] + other[2], min(one[3], other[3]), max(one[4], other[4])


def key_of(totals: Totals) -> int:
    return totals[0]


def totals(inputs: Inputs) -> DataStream:
    return inputs.table("events").map(first, TOTALS).key_by(key_of, Types.LONG()).reduce(add)


def aggregated(inputs: Inputs) -> DataStream:
    """Known aggregates, which are combined before the exchange."""
    return known_totals(inputs.table("events"))


def aggregated_by_spark(inputs: Inputs) -> DataStream:
    """Totals of rows that Spark reads, and combines in the JVM."""
    return known_totals(inputs.stream("events"))


def known_totals(events: DataStream) -> DataStream:
    return events.key_by("key").aggregate(count=Count(), sum=Sum("value"), min=Min("value"), max=Max("value"))


class BatchTotals(KeyedBatchFunction):
    """Totals by a function of one's own, which gets all rows."""

    def open(self, runtime_context: RuntimeContext) -> None:
        kept = Types.TUPLE([Types.LONG()] * 4)
        self.totals = runtime_context.get_state(ValueStateDescriptor("totals", kept))

    def process_batch(self, keys: pa.Array, batch: pa.RecordBatch, ctx: KeyedBatchContext) -> pa.RecordBatch:
        rows = pa.table({"key": keys, "value": batch.column("value")})
        wanted = [("value", name) for name in ("count", "sum", "min", "max")]
        grouped = rows.group_by("key", use_threads=False).aggregate(wanted).combine_chunks()
        key, count, total, least, most = (
            grouped.column(name).chunk(0) for name in ("key", "value_count", "value_sum", "value_min", "value_max")
        )
        kept = self.totals.get_many(key)
        old_count, old_total, old_least, old_most = kept.flatten()
        now = [
            pc.add(pc.fill_null(old_count, 0), count),
            pc.add(pc.fill_null(old_total, 0), total),
            pc.min_element_wise(old_least, least),
            pc.max_element_wise(old_most, most),
        ]
        self.totals.put_many(key, pa.StructArray.from_arrays(now, fields=list(kept.type)))
        return pa.record_batch([key, *now], names=["key", "count", "sum", "min", "max"])


def by_batch(inputs: Inputs) -> DataStream:
    return inputs.table("events").key_by("key").process(BatchTotals(), NAMED_TOTALS)
