"""Functions on connected streams, and models of what they must give."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from holdfast.common import TimestampAssigner, Types
from holdfast.datastream import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    OutputTag,
    RuntimeContext,
)
from holdfast.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from tests.integration.programs import PAIR

Pair = tuple[int, int]

#: Orders (key, amount) and rates (key, rate) of every epoch.
ORDERS: list[list[Pair]] = [[(n % 7, n) for n in range(first, first + 9)] for first in range(0, 63, 9)]
RATES: list[list[Pair]] = [[(n * 3 % 7, n) for n in range(first, first + 2)] for first in range(0, 14, 2)]

UNPRICED = OutputTag("unpriced", PAIR)


class Price(KeyedCoProcessFunction):
    """Orders times the newest rate of their key. One that comes before its first rate waits, and is told of aside."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.rate = runtime_context.get_state(ValueStateDescriptor("rate", Types.LONG()))
        self.waiting = runtime_context.get_list_state(ListStateDescriptor("waiting", PAIR))

    def process_element1(self, value: Pair, ctx: KeyedCoProcessFunction.Context) -> Iterable[Any]:
        assert ctx.get_current_key() == value[0]
        rate = self.rate.value()
        if rate is None:
            self.waiting.add(value)
            yield UNPRICED, value
        else:
            yield value[0], value[1] * rate

    def process_element2(self, value: Pair, ctx: KeyedCoProcessFunction.Context) -> Iterable[Any]:
        self.rate.update(value[1])
        for key, amount in self.waiting.get():
            yield key, amount * value[1]
        self.waiting.clear()


class PriceModel:
    """What ``Price`` must give, an epoch after the other: its orders come before its rates."""

    def __init__(self) -> None:
        self.rates: dict[int, int] = {}
        self.waiting: dict[int, list[int]] = defaultdict(list)
        self.priced: list[Pair] = []
        self.unpriced: list[Pair] = []

    def run(self, orders: list[list[Pair]], rates: list[list[Pair]]) -> PriceModel:
        for new_orders, new_rates in zip(orders, rates, strict=True):
            for key, amount in new_orders:
                if key in self.rates:
                    self.priced.append((key, amount * self.rates[key]))
                else:
                    self.waiting[key].append(amount)
                    self.unpriced.append((key, amount))
            for key, rate in new_rates:
                self.rates[key] = rate
                self.priced += [(key, amount * rate) for amount in self.waiting.pop(key, [])]
        return self


class ByValue(TimestampAssigner):
    def extract_timestamp(self, value: Pair, record_timestamp: int) -> int:
        return value[1]


SPAN = 10


class SumOfSpan(KeyedCoProcessFunction):
    """Rows of both streams of a key in every span of event time, given once all of them have come."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_map_state(MapStateDescriptor("seen", Types.LONG(), Types.LONG()))

    def process_element1(self, value: Pair, ctx: KeyedCoProcessFunction.Context) -> None:
        self._add(1, ctx)

    def process_element2(self, value: Pair, ctx: KeyedCoProcessFunction.Context) -> None:
        self._add(1_000, ctx)

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Iterable[tuple[int, int, int]]:
        assert ctx.timer_service().current_watermark() >= timestamp
        yield ctx.get_current_key(), timestamp, self.seen.get(timestamp) or 0
        self.seen.remove(timestamp)

    def _add(self, amount: int, ctx: KeyedCoProcessFunction.Context) -> None:
        timestamp = ctx.timestamp()
        assert timestamp is not None
        end = timestamp - timestamp % SPAN + SPAN
        self.seen.put(end, (self.seen.get(end) or 0) + amount)
        ctx.timer_service().register_event_time_timer(end)


def sums_of_spans(first: list[list[Pair]], second: list[list[Pair]]) -> list[tuple[int, int, int]]:
    sums: dict[tuple[int, int], int] = defaultdict(int)
    for amount, epochs in ((1, first), (1_000, second)):
        for key, time in (row for rows in epochs for row in rows):
            sums[key, time - time % SPAN + SPAN] += amount
    return sorted((key, end, total) for (key, end), total in sums.items())


class Signs(CoMapFunction):
    """The first as they are, the second negated; None where the value is a multiple of 5."""

    def map1(self, value: Pair) -> Pair | None:
        return None if value[1] % 5 == 0 else value

    def map2(self, value: Pair) -> Pair | None:
        return None if value[1] % 5 == 0 else (value[0], -value[1])


class SignsTwice(CoFlatMapFunction):
    def flat_map1(self, value: Pair) -> Iterable[Pair]:
        yield value
        yield value

    def flat_map2(self, value: Pair) -> Iterable[Pair] | None:
        return None if value[1] % 5 == 0 else [(value[0], -value[1])]


class SignsAside(CoProcessFunction):
    """The second stream goes aside."""

    ASIDE = OutputTag("aside", PAIR)

    def process_element1(self, value: Pair, ctx: CoProcessFunction.Context) -> Iterable[Any]:
        yield value

    def process_element2(self, value: Pair, ctx: CoProcessFunction.Context) -> Iterable[Any]:
        yield self.ASIDE, (value[0], -value[1])


class CountBoth(CoMapFunction):
    """Gives how many rows of both streams there were before, per key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def map1(self, value: Pair) -> Pair:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        return value[0], count

    map2 = map1
