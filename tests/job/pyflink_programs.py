"""Programs for PyFlink. They are run with ``pyflink`` replaced by ``holdfast`` in this text, and nothing else."""

from pyflink.common import Duration, Row, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    CoFlatMapFunction,
    FlatMapFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from pyflink.datastream.state import MapStateDescriptor, ReducingStateDescriptor, ValueStateDescriptor

PAIRS = [(n % 3, n) for n in range(12)]
PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])


class AverageOfTwo(FlatMapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.sum = runtime_context.get_state(ValueStateDescriptor("average", PAIR))

    def flat_map(self, value):
        count, total = self.sum.value() or (0, 0)
        count, total = count + 1, total + value[1]
        if count < 2:
            self.sum.update((count, total))
        else:
            self.sum.clear()
            yield value[0], total // count


def keyed_state(env: StreamExecutionEnvironment):
    return env.from_collection(PAIRS, PAIR).key_by(lambda row: row[0], Types.LONG()).flat_map(AverageOfTwo(), PAIR)


odd = OutputTag("odd", Types.STRING())


class SplitOdd(ProcessFunction):
    def process_element(self, value, ctx: ProcessFunction.Context):
        if value[1] % 2 == 0:
            yield value
        else:
            yield odd, f"odd-{value[1]}"


def side_output(env: StreamExecutionEnvironment):
    main = env.from_collection(PAIRS, PAIR).process(SplitOdd(), PAIR)
    side = main.get_side_output(odd).map(lambda text: (-1, int(text.split("-")[1])), PAIR)
    return main.union(side)


class Lookup(KeyedCoProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.name = runtime_context.get_state(ValueStateDescriptor("name", Types.LONG()))
        self.waiting = runtime_context.get_map_state(MapStateDescriptor("waiting", Types.LONG(), Types.BOOLEAN()))

    def process_element1(self, value, ctx: KeyedCoProcessFunction.Context):
        name = self.name.value()
        if name is None:
            self.waiting.put(value[1], True)
        else:
            yield name, value[1]

    def process_element2(self, value, ctx: KeyedCoProcessFunction.Context):
        self.name.update(value[1])
        for waiting in list(self.waiting.keys()):
            yield value[1], waiting
        self.waiting.clear()


def connected(env: StreamExecutionEnvironment):
    rows = env.from_collection(PAIRS, PAIR)
    names = env.from_collection([(0, 100), (1, 101)], PAIR)
    return rows.connect(names).key_by(lambda row: row[0], lambda name: name[0], Types.LONG()).process(Lookup(), PAIR)


class Merge(CoFlatMapFunction):
    def flat_map1(self, value):
        yield value

    def flat_map2(self, value):
        for n in range(value):
            yield -1, n


def connected_flat_map(env: StreamExecutionEnvironment):
    return env.from_collection(PAIRS, PAIR).connect(env.from_collection([2, 3], Types.LONG())).flat_map(Merge(), PAIR)


rules = MapStateDescriptor("rules", Types.STRING(), Types.LONG())


class AboveLimit(KeyedBroadcastProcessFunction):
    def process_broadcast_element(self, value, ctx: KeyedBroadcastProcessFunction.Context):
        ctx.get_broadcast_state(rules).put(value[0], value[1])

    def process_element(self, value, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext):
        if value[1] > ctx.get_broadcast_state(rules).get("limit"):
            yield ctx.get_current_key(), value[1]


def broadcast_state(env: StreamExecutionEnvironment):
    limits = env.from_collection([("limit", 6)], Types.TUPLE([Types.STRING(), Types.LONG()])).broadcast(rules)
    keyed = env.from_collection(PAIRS, PAIR).key_by(lambda row: row[0], Types.LONG())
    return keyed.connect(limits).process(AboveLimit(), PAIR)


class ByValue(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class SumAtTimer(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.sum = runtime_context.get_reducing_state(ReducingStateDescriptor("sum", lambda a, b: a + b, Types.LONG()))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        self.sum.add(value[1])
        ctx.timer_service().register_event_time_timer(1000)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext):
        yield ctx.get_current_key(), self.sum.get()


def timers(env: StreamExecutionEnvironment):
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)).with_timestamp_assigner(ByValue())
    timed = env.from_collection(PAIRS, PAIR).assign_timestamps_and_watermarks(strategy)
    return timed.key_by(lambda row: row[0], Types.LONG()).process(SumAtTimer(), PAIR)


class ToRow(MapFunction):
    def map(self, value):
        return Row(value[0], value[1])


def rolling_sum(env: StreamExecutionEnvironment):
    rows = env.from_collection(PAIRS, PAIR).map(ToRow(), Types.ROW_NAMED(["key", "n"], [Types.LONG(), Types.LONG()]))
    return rows.key_by(lambda row: row[0], Types.LONG()).sum("n").map(lambda row: (row[0], row[1]), PAIR)
