"""Queries 5 (hot items), 7 (highest bid) and 8 (new users) of Nexmark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from benchmarks.jobs.holdfast.inputs import Inputs
from benchmarks.jobs.holdfast.sessions import Count
from benchmarks.oracle import SLIDE_MS, WINDOW_MS
from holdfast.common import Row, Time, Types
from holdfast.datastream import AllWindowFunction, DataStream, ProcessWindowFunction, aggregates
from holdfast.datastream.window import SlidingEventTimeWindows, TimeWindow, TumblingEventTimeWindows
from holdfast.datastream.window_functions import JoinFunction

PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
RANKED = Types.ROW_NAMED(["end", "rank"], [Types.LONG(), Types.LONG()])
TRIPLE = Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()])
WINDOW = Time.milliseconds(WINDOW_MS)
SLIDE = Time.milliseconds(SLIDE_MS)
Triple = tuple[int, int, int]


class BidsOfWindow(ProcessWindowFunction[int, Triple, int, TimeWindow]):
    def process(
        self, key: int, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[int]
    ) -> Iterator[Triple]:
        for count in elements:
            yield key, count, context.window().end


def hotter(one: Triple, other: Triple) -> Triple:
    """More bids; the lower auction of two with as many."""
    return max(one, other, key=lambda item: (item[1], -item[0]))


def hot_items(inputs: Inputs) -> DataStream:
    counts = (
        inputs.table("bids")
        .key_by("auction")
        .window(SlidingEventTimeWindows.of(WINDOW, SLIDE))
        .aggregate(Count(), BidsOfWindow(), Types.LONG(), TRIPLE)
    )
    return (
        counts.key_by(lambda item: item[2], Types.LONG())
        .window(TumblingEventTimeWindows.of(SLIDE))
        .reduce(hotter)
        .filter(lambda item: item[0] >= 0)
    )


def hot_items_by_column(inputs: Inputs) -> DataStream:
    """Hot items with known aggregates, computed by column in both windows. The count and the auction are one number, so
    that the greatest of them says which auction it was.
    """
    counts = (
        inputs.table("bids", by_column=True)
        .key_by("auction")
        .window(SlidingEventTimeWindows.of(WINDOW, SLIDE))
        .aggregate(bids=aggregates.Count())
    )
    return (
        counts.map(lambda row: Row(row[2], (row[3] << 32) - (row[0] + 1)), RANKED)
        .key_by("end")
        .window(TumblingEventTimeWindows.of(SLIDE))
        .aggregate(rank=aggregates.Max("rank"))
        .map(hottest, TRIPLE)
        .filter(lambda item: item[0] >= 0)
    )


def hottest(row: Row) -> Triple:
    end, rank = row[0], row[3]
    count = -(-rank >> 32)
    return (count << 32) - rank - 1, count, end


class WithEnd(AllWindowFunction[Row, Triple, TimeWindow]):
    def apply(self, window: TimeWindow, inputs: Iterable[Row]) -> Iterator[Triple]:
        for bid in inputs:
            yield bid[0], bid[2], window.end


def highest_bid(inputs: Inputs) -> DataStream:
    return (
        inputs.table("bids")
        .window_all(TumblingEventTimeWindows.of(WINDOW))
        .reduce(lambda one, other: one if one[2] >= other[2] else other, WithEnd(), TRIPLE)
        .filter(lambda bid: bid[0] >= 0)
    )


class Opened(JoinFunction):
    def join(self, first: Row, second: Row) -> tuple[int, int]:
        return first[0], second[0]


def new_users(inputs: Inputs) -> DataStream:
    return (
        inputs.table("persons")
        .join(inputs.table("auctions"))
        .where("person")
        .equal_to("seller")
        .window(TumblingEventTimeWindows.of(WINDOW))
        .apply(Opened(), PAIR)
        .filter(lambda pair: pair[0] >= 0)
    )
