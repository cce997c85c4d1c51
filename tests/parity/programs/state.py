"""Keyed state of each kind, broadcast state, timers."""

from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    AggregateFunction,
    BroadcastProcessFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ReduceFunction,
    RuntimeContext,
)
from pyflink.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)

from tests.parity.case import Order, program

PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])
PAIRS = [(f"key {n % 3}", n) for n in range(12)]


def keyed(env):
    return env.from_collection(PAIRS, PAIR).key_by(lambda pair: pair[0], key_type=Types.STRING())


class Totals(KeyedProcessFunction):
    """A value state that is cleared when it passes ten."""

    def open(self, runtime_context: RuntimeContext):
        descriptor = ValueStateDescriptor("total", Types.LONG())
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).cleanup_full_snapshot().build())
        self.total = runtime_context.get_state(descriptor)

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        before = self.total.value()
        total = (before or 0) + value[1]
        if total > 10:
            self.total.clear()
        else:
            self.total.update(total)
        yield ctx.get_current_key(), before, total, self.total.value()


@program(order=Order.ALONE)
def value_state(env, out):
    return keyed(env).process(Totals())


class Lists(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.LONG()))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        before = list(self.seen.get())
        self.seen.add(value[1])
        if value[1] % 4 == 0:
            self.seen.add_all([-1, -2])
        if value[1] == 5:
            self.seen.update([50, 51])
        if value[1] == 9:
            self.seen.clear()
        yield value[0], value[1], before, list(self.seen)


@program(order=Order.ALONE)
def list_state(env, out):
    return keyed(env).process(Lists())


class Maps(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.map = runtime_context.get_map_state(MapStateDescriptor("map", Types.LONG(), Types.STRING()))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        number = value[1]
        facts = [self.map.is_empty(), self.map.contains(number - 3), self.map.get(number - 3), number in self.map]
        self.map.put(number, f"<{number}>")
        if number == 4:
            self.map.put_all({100: "a", 101: "b"}.items())
        if number == 7:
            self.map.remove(100)
        if number == 8:
            self.map[8] = "changed"
            del self.map[2]
        if number == 9:
            self.map.clear()
        yield value[0], facts, sorted(self.map.items()), sorted(self.map.keys()), sorted(self.map.values())
        yield value[0], sorted(self.map), self.map[number] if self.map.contains(number) else None


@program(order=Order.ALONE)
def map_state(env, out):
    return keyed(env).process(Maps())


class Average(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Longest(ReduceFunction):
    def reduce(self, value1, value2):
        return max(value1, value2)


class Merging(KeyedProcessFunction):
    """A reducing state and an aggregating one."""

    def open(self, runtime_context: RuntimeContext):
        self.longest = runtime_context.get_reducing_state(ReducingStateDescriptor("longest", Longest(), Types.LONG()))
        self.sum = runtime_context.get_reducing_state(
            ReducingStateDescriptor("sum", lambda one, other: one + other, Types.LONG())
        )
        self.average = runtime_context.get_aggregating_state(
            AggregatingStateDescriptor("average", Average(), Types.TUPLE([Types.LONG(), Types.LONG()]))
        )

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        before = self.sum.get()
        for state in (self.longest, self.sum, self.average):
            state.add(value[1])
        yield value[0], before, self.longest.get(), self.sum.get(), self.average.get()
        if value[1] == 6:
            self.sum.clear()


@program(order=Order.ALONE)
def merging_states(env, out):
    return keyed(env).process(Merging())


class CountEach(FlatMapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def flat_map(self, value):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield from [(value[0], count)] * (count % 3)


class Number(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def map(self, value):
        self.count.update((self.count.value() or 0) + 1)
        return value[0], self.count.value()


class Second(FilterFunction):
    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def filter(self, value):
        self.count.update((self.count.value() or 0) + 1)
        return self.count.value() == 2


@program()
def state_of_keyed_functions(env, out):
    """In flat maps, maps and filters of keyed streams."""
    kind = Types.TUPLE([Types.STRING(), Types.INT()])
    mapped = keyed(env).map(Number(), output_type=kind)
    filtered = keyed(env).filter(Second()).map(lambda pair: (pair[0], int(pair[1])), output_type=kind)
    return keyed(env).flat_map(CountEach(), output_type=kind).union(mapped, filtered)


class Pairing(KeyedCoProcessFunction):
    """A join: the rows of each input wait for those of the other."""

    def open(self, runtime_context: RuntimeContext):
        self.left = runtime_context.get_list_state(ListStateDescriptor("left", Types.LONG()))
        self.right = runtime_context.get_list_state(ListStateDescriptor("right", Types.STRING()))

    def process_element1(self, value, ctx: KeyedCoProcessFunction.Context):
        self.left.add(value[1])
        for other in self.right.get():
            yield ctx.get_current_key(), value[1], other

    def process_element2(self, value, ctx: KeyedCoProcessFunction.Context):
        self.right.add(value[1])
        for other in self.left.get():
            yield ctx.get_current_key(), other, value[1]


@program()
def join_by_connect(env, out):
    names = env.from_collection(
        [("key 0", "zero"), ("key 1", "one"), ("key 1", "uno"), ("key 9", "nine")],
        Types.TUPLE([Types.STRING(), Types.STRING()]),
    )
    connected = env.from_collection(PAIRS, PAIR).connect(names)
    return connected.key_by(lambda pair: pair[0], lambda name: name[0], key_type=Types.STRING()).process(
        Pairing(), Types.TUPLE([Types.STRING(), Types.LONG(), Types.STRING()])
    )


RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())


class Above(BroadcastProcessFunction):
    """Both sides show what they know; the rows wait in no state, so nothing of their order is seen."""

    def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
        state = ctx.get_broadcast_state(RULES)
        state.put(value[0], value[1])
        if value[0] == "gone":
            state.remove("gone")
        yield "rules", sorted(state.items())

    def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
        yield "row", value


@program(parallelisms=(1,), modes=("STREAMING",))
def broadcast_state(env, out):
    rules = env.from_collection([("limit", 6), ("gone", 1), ("other", 2)], PAIR).broadcast(RULES)
    return env.from_collection(PAIRS, PAIR).connect(rules).process(Above())


class Rules(KeyedBroadcastProcessFunction):
    """Rows wait for their rule, so that their order does not matter."""

    def open(self, runtime_context: RuntimeContext):
        self.waiting = runtime_context.get_list_state(ListStateDescriptor("waiting", Types.LONG()))

    def process_broadcast_element(self, value, ctx: KeyedBroadcastProcessFunction.Context):
        ctx.get_broadcast_state(RULES)[value[0]] = value[1]

    def process_element(self, value, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext):
        self.waiting.add(value[1])
        ctx.timer_service().register_event_time_timer(1_000)

    def on_timer(self, timestamp, ctx: KeyedBroadcastProcessFunction.OnTimerContext):
        factor = ctx.get_broadcast_state(RULES).get(ctx.get_current_key())
        for value in self.waiting.get():
            yield ctx.get_current_key(), value * (factor or 1)


@program(modes=("STREAMING",))
def keyed_broadcast_state(env, out):
    """As a batch PyFlink 2.3.0 gives rows of one key for another: its timers do not see the key that they are of."""
    factors = env.from_collection([("key 0", 100), ("key 2", 10)], PAIR).broadcast(RULES)
    return keyed(env).connect(factors).process(Rules(), PAIR)


class Seconds(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1] * 1_000


def timed(env, lateness=0):
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(lateness))
    rows = env.from_collection(PAIRS, PAIR).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(Seconds())
    )
    return rows.key_by(lambda pair: pair[0], key_type=Types.STRING())


class Timers(KeyedProcessFunction):
    """A timer for every row; those of even ones are deleted."""

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        timers = ctx.timer_service()
        timers.register_event_time_timer(ctx.timestamp() + 10_000)
        if value[1] % 2 == 0:
            timers.delete_event_time_timer(ctx.timestamp() + 10_000)
        yield "row", ctx.get_current_key(), ctx.timestamp()

    def on_timer(self, timestamp, ctx: KeyedProcessFunction.OnTimerContext):
        yield "timer", ctx.get_current_key(), timestamp, str(ctx.time_domain())


@program()
def event_time_timers(env, out):
    return timed(env).process(Timers())


class Chained(KeyedProcessFunction):
    """A timer sets the next one, twice."""

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        ctx.timer_service().register_event_time_timer(value[1])

    def on_timer(self, timestamp, ctx: KeyedProcessFunction.OnTimerContext):
        yield ctx.get_current_key(), timestamp
        if timestamp < 200:
            ctx.timer_service().register_event_time_timer(timestamp + 100)


@program(modes=("STREAMING",))
def timers_that_set_timers(env, out):
    return timed(env).process(Chained())


@program(modes=("BATCH",))
def timers_that_set_timers_in_a_batch(env, out):
    return timed(env).process(Chained())


class AtTheEnd(KeyedProcessFunction):
    """A timer in processing time that is due in years, which a stream that ends drops."""

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        ctx.timer_service().register_processing_time_timer(4_000_000_000_000)
        yield value[0], ctx.timer_service().current_processing_time() > 0

    def on_timer(self, timestamp, ctx: KeyedProcessFunction.OnTimerContext):
        yield "timer", True


@program(modes=("STREAMING",))
def processing_time_timers_at_the_end(env, out):
    """A batch fires them; PyFlink loses those of its last key, which its workers set too late."""
    return keyed(env).process(AtTheEnd(), Types.TUPLE([Types.STRING(), Types.BOOLEAN()]))


class Watermarks(ProcessFunction):
    def process_element(self, value, ctx: ProcessFunction.Context):
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark() <= value[1] * 1_000


@program()
def timestamps_of_rows(env, out):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Seconds())
    return env.from_collection(PAIRS, PAIR).assign_timestamps_and_watermarks(strategy).process(Watermarks())
