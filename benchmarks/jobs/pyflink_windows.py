"""The windowed jobs on PyFlink: the programs that Holdfast runs, with its names.

Marks are taken where rows enter the program, before they are in their windows: rows that are on the way when the last
one enters count as done, which is in PyFlink's favour. There is one file, because rows of several would come in any
order and be late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pyflink.common import Row, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import DataStream
from pyflink.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    MapFunction,
    ProcessWindowFunction,
    RuntimeContext,
)
from pyflink.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

from benchmarks.jobs.protocol import JobArguments, Marks
from benchmarks.oracle import SLIDE_MS, WINDOW_MS

TRIPLE = Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()])
WINDOW, SLIDE = Time.milliseconds(WINDOW_MS), Time.milliseconds(SLIDE_MS)
Triple = tuple[int, int, int]


class Entering(MapFunction):
    """Rows as tuples, with marks."""

    def __init__(self, arguments: JobArguments) -> None:
        self._arguments = arguments

    def open(self, runtime_context: RuntimeContext) -> None:
        every = self._arguments.epoch_rows // 16
        self.marks = Marks(self._arguments.scratch, runtime_context.get_index_of_this_subtask(), every)

    def map(self, value: Row) -> tuple[int, ...]:
        self.marks.row()
        return tuple(value)

    def close(self) -> None:
        self.marks.write()


class LastColumn(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        time: int = value[-1]
        return time


def timed(rows: DataStream, columns: int, arguments: JobArguments) -> DataStream:
    entering = rows.map(Entering(arguments), output_type=Types.TUPLE([Types.LONG()] * columns))
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(LastColumn())
    return entering.assign_timestamps_and_watermarks(strategy)


class Count(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class Length(ProcessWindowFunction):
    def process(self, key: int, context: Any, elements: Iterable[int]) -> Iterator[Triple]:
        window = context.window()
        for count in elements:
            yield key, window.end - window.start, count


class BidsOfWindow(ProcessWindowFunction):
    def process(self, key: int, context: Any, elements: Iterable[int]) -> Iterator[Triple]:
        for count in elements:
            yield key, count, context.window().end


class WithEnd(AllWindowFunction):
    def apply(self, window: Any, inputs: Iterable[Any]) -> Iterator[Triple]:
        for bid in inputs:
            yield bid[0], bid[2], window.end


def sessions(clicks: DataStream, arguments: JobArguments) -> DataStream:
    return (
        timed(clicks, 2, arguments)
        .key_by(lambda click: click[0], key_type=Types.LONG())
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(arguments.gap_ms)))
        .aggregate(Count(), Length(), Types.LONG(), TRIPLE)
        .filter(lambda session: session[0] >= 0)
    )


def hot_items(bids: DataStream, arguments: JobArguments) -> DataStream:
    counts = (
        timed(bids, 4, arguments)
        .key_by(lambda bid: bid[0], key_type=Types.LONG())
        .window(SlidingEventTimeWindows.of(WINDOW, SLIDE))
        .aggregate(Count(), BidsOfWindow(), Types.LONG(), TRIPLE)
    )
    return (
        counts.key_by(lambda item: item[2], key_type=Types.LONG())
        .window(TumblingEventTimeWindows.of(SLIDE))
        .reduce(lambda one, other: max(one, other, key=lambda item: (item[1], -item[0])))
        .filter(lambda item: item[0] >= 0)
    )


def highest_bid(bids: DataStream, arguments: JobArguments) -> DataStream:
    return (
        timed(bids, 4, arguments)
        .window_all(TumblingEventTimeWindows.of(WINDOW))
        .reduce(lambda one, other: one if one[2] >= other[2] else other, WithEnd(), TRIPLE)
        .filter(lambda bid: bid[0] >= 0)
    )


#: By job: its table, and the program over it.
PROGRAMS: dict[str, tuple[str, Callable[[DataStream, JobArguments], DataStream]]] = {
    "sessions": ("clicks", sessions),
    "q5": ("bids", hot_items),
    "q7": ("bids", highest_bid),
}
