"""A job with every kind of state, for snapshots that another version of Holdfast has written.

It uses what programs use and nothing else, so that it runs on that version too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.common import Duration, JobClient, Row, Time, Types, WatermarkStrategy
from holdfast.common.watermark_strategy import TimestampAssigner
from holdfast.connectors.sequence import NumberSequenceSource
from holdfast.datastream import (
    AggregateFunction,
    CheckpointedFunction,
    DataStream,
    FlatMapFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessWindowFunction,
    RichFlatMapFunction,
    RuntimeContext,
    StateInitializationContext,
    StateSnapshotContext,
    StreamExecutionEnvironment,
    StreamOperator,
)
from holdfast.datastream.aggregates import Average, Count, Max, Min, Sum
from holdfast.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from holdfast.datastream.window import (
    CountEvictor,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from tests.integration.programs import Scripted, environment

SALE = Types.ROW_NAMED(["shop", "price", "time"], [Types.STRING(), Types.LONG(), Types.LONG()])
LINE = Types.TUPLE([Types.STRING(), Types.STRING()])
PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
SHOPS = "abcdefg"
EPOCHS, ROWS, STEP, BEHIND = 6, 300, 25, 30
BOUND = STEP + 2 * BEHIND
SIZE, SLIDE, GAP, KEPT, COUNTED = 20, 8, 2, 2, 7
NUMBERS, NUMBERS_PER_EPOCH, REMAINDERS = 1_000, 100, 4
#: Rows with such a price, by remainder, come to functions that keep a lot for each.
SOME = 10
EVENT_DELAY = 35
#: Due when the snapshots are restored, and not before.
DUE = 500_000_000
SHORT, LONG = 100_000_000, 1_000_000_000_000
FACTORS = MapStateDescriptor("factors", Types.STRING(), Types.LONG())
#: What the program has given, in the process that runs it.
GIVEN: list[tuple[str, str]] = []


def script() -> list[list[Row]]:
    """Sales of every epoch. None is late, every shop comes early, and the first one behind the snapshots is one of
    ``SOME``, which tells the watermark that was restored.
    """
    numbers = range(EPOCHS * ROWS)
    rows = [
        Row(SHOPS[n * n % 11 % 7], (n * 37 + 9) % 101 - 50, n // ROWS * STEP + n * 29 % (STEP + BEHIND) - BEHIND)
        for n in numbers
    ]
    return [rows[first : first + ROWS] for first in numbers[::ROWS]]


@dataclass
class Seen:
    rows: int
    last: int


class MeanOf(AggregateFunction):
    """The mean of numbers, by integer division."""

    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + 1, accumulator[1] + value

    def get_result(self, accumulator: tuple[int, int]) -> int:
        return accumulator[1] // accumulator[0]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class MeanPrice(MeanOf):
    def add(self, value: Any, accumulator: tuple[int, int]) -> tuple[int, int]:
        return super().add(value[1], accumulator)


def _living(descriptor: Any, milliseconds: int) -> Any:
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.milliseconds(milliseconds)).build())
    return descriptor


class EveryKeyedState(KeyedProcessFunction):
    """Gives of every row all that it keeps of the key, and of every timer that it was due."""

    def open(self, runtime_context: RuntimeContext) -> None:
        context, long = runtime_context, Types.LONG()
        self.seen = context.get_state(ValueStateDescriptor("seen", Seen))
        self.prices = context.get_list_state(ListStateDescriptor("prices", long))
        self.times = context.get_map_state(MapStateDescriptor("times", long, Types.STRING()))
        self.greatest = context.get_reducing_state(ReducingStateDescriptor("greatest", max, long))
        self.mean = context.get_aggregating_state(AggregatingStateDescriptor("mean", MeanOf(), PAIR))
        self.short = context.get_state(_living(ValueStateDescriptor("short", long), SHORT))
        self.long = context.get_state(_living(ValueStateDescriptor("long", long), LONG))
        self.long_list = context.get_list_state(_living(ListStateDescriptor("long list", long), LONG))
        self.long_map = context.get_map_state(_living(MapStateDescriptor("long map", long, long), LONG))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[Any]:
        _, price, at = value
        seen = self.seen.value()
        if seen is None:
            seen = Seen(0, 0)
            ctx.timer_service().register_processing_time_timer(DUE)
        seen = Seen(seen.rows + 1, at)
        self.seen.update(seen)
        self.prices.add(price)
        self.times.put(at % 5, str(at))
        self.greatest.add(price)
        self.mean.add(price)
        for state in (self.short, self.long):
            state.update((state.value() or 0) + 1)
        self.long_list.add(at)
        self.long_map.put(price % 3, (self.long_map.get(price % 3) or 0) + 1)
        ctx.timer_service().register_event_time_timer(at + EVENT_DELAY)
        kept = (seen.rows, seen.last, sum(self.prices), sorted(self.times.items()), self.greatest.get())
        living = (self.short.value(), self.long.value(), sum(self.long_list), sorted(self.long_map.items()))
        yield "watermark", repr((at, ctx.timer_service().current_watermark()))
        yield "states", repr((ctx.get_current_key(), *kept, self.mean.get(), *living))

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[Any]:
        yield "timer", repr((ctx.get_current_key(), timestamp))


class SplitUpList(FlatMapFunction, CheckpointedFunction):
    """Keeps the numbers that come to its subtask, and gives them at the end."""

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        store = context.get_operator_state_store()
        self.stored = store.get_list_state(ListStateDescriptor("mine", Types.LONG()))
        self.mine = list(self.stored.get())

    def flat_map(self, value: int) -> Iterable[Any]:
        self.mine.append(value)
        return ()

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.stored.update(self.mine)

    def finish(self) -> Iterator[Any]:
        yield from (("split", repr((number,))) for number in self.mine)


class SharedList(RichFlatMapFunction, CheckpointedFunction):
    """Does the same with a union list, of which every subtask takes its share."""

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        store = context.get_operator_state_store()
        self.stored = store.get_union_list_state(ListStateDescriptor("all", Types.LONG()))
        runtime = self.get_runtime_context()
        subtask, parallelism = runtime.get_index_of_this_subtask(), runtime.get_number_of_parallel_subtasks()
        self.mine = [each for place, each in enumerate(self.stored.get()) if place % parallelism == subtask]

    def flat_map(self, value: int) -> Iterable[Any]:
        self.mine.append(value)
        return ()

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.stored.update(self.mine)

    def finish(self) -> Iterator[Any]:
        yield from (("union", repr((number,))) for number in self.mine)


class RawBytes(StreamOperator):
    """Counts rows per shop, in raw keyed state, and keeps prices in raw operator state, which it gives at the end."""

    def initialize_state(self, context: StateInitializationContext) -> None:
        self.counts: dict[int, dict[str, int]] = {}
        for provider in context.get_raw_keyed_state_inputs():
            self.counts[provider.get_key_group_id()] = json.loads(provider.get_stream().read())
        self.prices = [int(each.get_stream().read()) for each in context.get_raw_operator_state_inputs()]

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        counts = self.counts.setdefault(ctx.get_current_key_group(), {})
        counts[value[0]] = counts.get(value[0], 0) + 1
        self.prices.append(value[1])
        yield "raw", repr((value[0], counts[value[0]]))

    def snapshot_state(self, context: StateSnapshotContext) -> None:
        keyed = context.get_raw_keyed_operator_state_output()
        for group, counts in self.counts.items():
            keyed.start_new_key_group(group)
            keyed.write(json.dumps(counts).encode())
        partitions = context.get_raw_operator_state_output()
        for price in self.prices:
            partitions.start_new_partition()
            partitions.write(str(price).encode())

    def finish(self) -> Iterator[Any]:
        yield from (("raw price", repr((price,))) for price in self.prices)


class Scale(KeyedBroadcastProcessFunction):
    """Prices times the factor of their shop, which comes by broadcast; keyed state counts them."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.rows = runtime_context.get_state(ValueStateDescriptor("rows", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        self.rows.update((self.rows.value() or 0) + 1)
        yield "scaled", repr((value[0], value[1] * ctx.get_broadcast_state(FACTORS).get(value[0]), self.rows.value()))

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        ctx.get_broadcast_state(FACTORS).put(value[0], value[1])
        return ()


class Sorted(ProcessWindowFunction):
    """The rows that an evictor has left of a window."""

    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        yield key, context.window().start, [tuple(row)[1:] for row in elements]


class Named(ProcessWindowFunction):
    """The one result of a window, with its key and times."""

    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        (mean,) = elements
        yield key, context.window().start, context.window().end, mean


class TimeOf(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[2])


class Given(MapFunction):
    """Notes every result in ``GIVEN``."""

    def map(self, value: Any) -> Any:
        GIVEN.append(tuple(value))
        return value


def _lines(name: str, stream: DataStream) -> DataStream:
    return stream.uid(name).map(lambda row: (name, repr(tuple(row))), LINE).uid(f"{name}-lines")


def count(number: int, seen: int | None) -> tuple[tuple[int, int], int]:
    return (number % REMAINDERS, (seen or 0) + 1), (seen or 0) + 1


def greater(one: Any, other: Any) -> Any:
    return other if (other[1], other[2]) > (one[1], one[2]) else one


def of_windows(sales: DataStream) -> list[DataStream]:
    """Windows of every way to keep what is in them, and a running sum and aggregates without windows."""
    shops = sales.key_by("shop")
    tumbling = shops.window(TumblingEventTimeWindows.of(SIZE))
    figures = shops.window(SlidingEventTimeWindows.of(SIZE, SLIDE)).aggregate(
        rows=Count(), total=Sum("price"), least=Min("price"), most=Max("price"), mean=Average("price")
    )
    by_function = sales.key_by(lambda row: row[0], Types.STRING())
    some = by_function.filter(lambda row: row[1] % SOME == 0).key_by(lambda row: row[0], Types.STRING())
    sessions = some.window(EventTimeSessionWindows.with_gap(GAP))
    evicted = by_function.window(TumblingEventTimeWindows.of(SIZE)).evictor(CountEvictor.of(KEPT))
    named = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG(), Types.LONG()])
    listed = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LIST(PAIR)])
    return [
        _lines("greatest", tumbling.reduce(greater)),
        _lines("figures", figures),
        _lines("sessions", sessions.aggregate(MeanPrice(), Named(), PAIR, named)),
        _lines("kept", evicted.process(Sorted(), listed)),
        _lines("counted", by_function.count_window(COUNTED).reduce(greater)),
        _lines("sum", shops.sum("price")),
        _lines("totals", shops.aggregate(rows=Count(), total=Sum("price"), most=Max("price"))),
    ]


def of_functions(env: StreamExecutionEnvironment, sales: DataStream) -> list[DataStream]:
    # By one subtask, which leaves rows in their order.
    some = sales.filter(lambda row: row[1] % SOME == 0).set_parallelism(1).key_by(lambda row: row[0], Types.STRING())
    factor = Types.TUPLE([Types.STRING(), Types.LONG()])
    factors = env.from_collection([(shop, n) for n, shop in enumerate(SHOPS)], factor)
    numbers = env.from_source(NumberSequenceSource(0, NUMBERS - 1), WatermarkStrategy.no_watermarks(), "numbers")
    numbers = numbers.uid("numbers")
    counts = numbers.key_by(lambda number: number % REMAINDERS, Types.LONG()).map_with_state(count, int, PAIR)
    some_numbers = numbers.filter(lambda number: number % SOME == 0)
    return [
        some.process(EveryKeyedState(), LINE).uid("states"),
        some.connect(factors.uid("factors").broadcast(FACTORS)).process(Scale(), LINE).uid("scaled"),
        some.transform("Raw", LINE, RawBytes()).uid("raw"),
        some_numbers.flat_map(SplitUpList(), LINE).uid("split"),
        some_numbers.flat_map(SharedList(), LINE).uid("union"),
        _lines("counts", counts),
    ]


def start(directory: Path, sink: Any, parallelism: int = 2, **settings: str) -> JobClient:
    """Start the job, with a checkpoint in every epoch."""
    env = environment(
        **{
            "holdfast.job-id": "job",
            "holdfast.state.local-dir": str(directory / "local"),
            "holdfast.epoch.idle-wait": "1 ms",
            "holdfast.epoch.max-rows": str(NUMBERS_PER_EPOCH),
            "holdfast.checkpoint.upload-wait": "60 s",
            "pipeline.max-parallelism": "16",
            "execution.checkpointing.interval": "10 ms",
            "execution.checkpointing.dir": str(directory / "chk"),
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            **settings,
        }
    ).set_parallelism(parallelism)
    source = env.from_source(Scripted(script()), WatermarkStrategy.no_watermarks(), "sales", SALE).uid("sales")
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(BOUND))
    timed = source.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(TimeOf())).set_parallelism(1)
    sales = timed.uid("times")
    first, *others = of_windows(sales) + of_functions(env, sales)
    first.union(*others).map(Given(), LINE).uid("given").sink_to(sink).uid("sink")
    return env.execute_async("every state")
