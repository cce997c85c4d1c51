"""Count, sum, minimum and maximum of the readings of each sensor in each minute."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from benchmarks.jobs.holdfast.inputs import Inputs
from benchmarks.oracle import MINUTE_MS
from holdfast.common import Row, Time, Types
from holdfast.datastream import AggregateFunction, DataStream, ProcessWindowFunction
from holdfast.datastream.aggregates import Count, Max, Min, Sum
from holdfast.datastream.window import TimeWindow, TumblingEventTimeWindows

KEPT = Types.TUPLE([Types.LONG()] * 4)
FIGURES = Types.TUPLE([Types.LONG()] * 6)
WINDOWS = TumblingEventTimeWindows.of(Time.milliseconds(MINUTE_MS))

Kept = tuple[int, int, int, int]
Figures = tuple[int, int, int, int, int, int]


class Totals(AggregateFunction):
    def create_accumulator(self) -> Kept:
        return 0, 0, 1 << 62, -(1 << 62)

    def add(self, value: Row, accumulator: Kept) -> Kept:
        count, total, least, most = accumulator
        number = value[1]
        return count + 1, total + number, min(least, number), max(most, number)

    def get_result(self, accumulator: Kept) -> Kept:
        return accumulator

    def merge(self, acc_a: Kept, acc_b: Kept) -> Kept:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1], min(acc_a[2], acc_b[2]), max(acc_a[3], acc_b[3])


class OfMinute(ProcessWindowFunction[Kept, Figures, int, TimeWindow]):
    def process(
        self, key: int, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[Kept]
    ) -> Iterator[Figures]:
        for kept in elements:
            yield key, *kept, context.window().end


def minutes(inputs: Inputs) -> DataStream:
    windows = inputs.table("readings").key_by("key").window(WINDOWS)
    return windows.aggregate(Totals(), OfMinute(), KEPT, FIGURES).filter(lambda row: row[0] >= 0)


def minutes_by_column(inputs: Inputs) -> DataStream:
    """Known aggregates, which are combined before the exchange."""
    return known_minutes(inputs.table("readings", by_column=True))


def minutes_by_spark(inputs: Inputs) -> DataStream:
    """Minutes of rows that Spark reads, and combines in the JVM."""
    return known_minutes(inputs.stream("readings"))


def known_minutes(readings: DataStream) -> DataStream:
    windows = readings.key_by("key").window(WINDOWS)
    figures = windows.aggregate(count=Count(), sum=Sum("value"), min=Min("value"), max=Max("value"))
    return figures.filter(lambda row: row[0] >= 0).map(lambda row: (row[0], *row[3:], row[2]), FIGURES)
