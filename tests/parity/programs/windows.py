"""Windows of each kind, with triggers, lateness and side outputs."""

import time
from functools import partial

from pyflink.common import Configuration, Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    AggregateFunction,
    MapFunction,
    OutputTag,
    ProcessWindowFunction,
    ReduceFunction,
    WindowFunction,
)
from pyflink.datastream.functions import AllWindowFunction, ProcessAllWindowFunction
from pyflink.datastream.state import ReducingStateDescriptor, ValueStateDescriptor
from pyflink.datastream.window import (
    ContinuousEventTimeTrigger,
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    CountWindow,
    DynamicEventTimeSessionWindows,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindow,
    GlobalWindows,
    PurgingTrigger,
    SessionWindowTimeGapExtractor,
    SlidingEventTimeWindows,
    TimeWindow,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
)

from tests.parity.case import facts, program, told

#: As a batch, a job of PyFlink 2.3.0 with a window of event time does not come to its end.
windowed = partial(program, modes=("STREAMING",))

PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])
PAIRS = [(key, n) for n in (1, 2, 4, 8, 9, 3, 15, 16, 30, 31, 47, 60) for key in ("a", "b")][3:-1]


class Milliseconds(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def unkeyed(env):
    """No row is late, whenever a watermark comes."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(10))
    return env.from_collection(PAIRS, PAIR).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(Milliseconds())
    )


def keyed(env):
    return unkeyed(env).key_by(lambda pair: pair[0], key_type=Types.STRING())


class Describe(ProcessWindowFunction):
    def process(self, key, context: ProcessWindowFunction.Context, elements):
        window = context.window()
        yield key, window.start, window.end, window.max_timestamp(), sorted(value for _, value in elements)


class DescribeCounted(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, [value for _, value in elements]


@windowed()
def tumbling(env, out):
    return keyed(env).window(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(Describe())


@windowed()
def tumbling_with_an_offset(env, out):
    windows = TumblingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(3))
    return keyed(env).window(windows).process(Describe())


@windowed()
def sliding(env, out):
    windows = SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(5))
    return keyed(env).window(windows).process(Describe())


@windowed()
def sessions(env, out):
    return keyed(env).window(EventTimeSessionWindows.with_gap(Time.milliseconds(5))).process(Describe())


class Gap(SessionWindowTimeGapExtractor):
    def extract(self, element):
        return 2 + element[1] % 4


@windowed()
def dynamic_sessions(env, out):
    return keyed(env).window(DynamicEventTimeSessionWindows.with_dynamic_gap(Gap())).process(Describe())


@windowed()
def counted(env, out):
    return keyed(env).count_window(4).process(DescribeCounted())


@windowed()
def counted_and_sliding(env, out):
    return keyed(env).count_window(4, 2).process(DescribeCounted())


@windowed()
def counting_assigners(env, out):
    tumbling_windows = keyed(env).window(CountTumblingWindowAssigner.of(3)).process(DescribeCounted())
    return tumbling_windows.union(keyed(env).window(CountSlidingWindowAssigner.of(3, 2)).process(DescribeCounted()))


class Apply(WindowFunction):
    def apply(self, key, window, inputs):
        return [(key, window.start, sum(value for _, value in inputs))]


@windowed()
def applied(env, out):
    return keyed(env).window(TumblingEventTimeWindows.of(Time.milliseconds(20))).apply(Apply())


class Sum(ReduceFunction):
    def reduce(self, value1, value2):
        return value1[0], value1[1] + value2[1]


@windowed()
def reduced(env, out):
    windows = TumblingEventTimeWindows.of(Time.milliseconds(10))
    alone = keyed(env).window(windows).reduce(Sum(), output_type=PAIR)
    described = (
        keyed(env)
        .window(windows)
        .reduce(Sum(), window_function=Describe())
        .map(lambda row: (row[0], row[4][0]), output_type=PAIR)
    )
    return alone.union(described)


class Average(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value[1], accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class WithStart(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().start, list(elements)


PAIR_OF_LONGS = Types.TUPLE([Types.LONG(), Types.LONG()])


@windowed()
def aggregated(env, out):
    windows = TumblingEventTimeWindows.of(Time.milliseconds(10))
    alone = keyed(env).window(windows).aggregate(Average(), accumulator_type=PAIR_OF_LONGS, output_type=Types.DOUBLE())
    described = (
        keyed(env).window(windows).aggregate(Average(), window_function=WithStart(), accumulator_type=PAIR_OF_LONGS)
    )
    return alone.map(lambda value: ("alone", value)).union(described)


@windowed()
def aggregated_sessions(env, out):
    """Whose accumulators merge."""
    windows = EventTimeSessionWindows.with_gap(Time.milliseconds(5))
    return keyed(env).window(windows).aggregate(Average(), window_function=WithStart(), accumulator_type=PAIR_OF_LONGS)


class Slowly(MapFunction):
    """Rows with time for a watermark between them."""

    def map(self, value):
        time.sleep(0.05)
        return value


@windowed(parallelisms=(1,))
def late_rows(env, out):
    """Late rows go aside; those within the allowed lateness let their window fire again."""
    # PyFlink cannot send a tag whose type it has used before.
    late = OutputTag("late", Types.TUPLE([Types.STRING(), Types.LONG()]))
    settings = Configuration()
    settings.set_string("python.fn-execution.bundle.size", "1")
    settings.set_string("pipeline.auto-watermark-interval", "1 ms")
    settings.set_string("holdfast.epoch.max-rows", "1")
    env.configure(settings)
    rows = env.from_collection([("a", n) for n in (1, 12, 25, 5, 60, 6)], PAIR).map(Slowly(), output_type=PAIR)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(10))
    given = rows.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(Milliseconds()))
    windowed = given.key_by(lambda pair: pair[0], key_type=Types.STRING()).window(
        TumblingEventTimeWindows.of(Time.milliseconds(10))
    )
    described = (
        windowed.allowed_lateness(12)
        .side_output_late_data(late)
        .process(Describe(), Types.TUPLE([Types.STRING(), *[Types.LONG()] * 3, Types.LIST(Types.LONG())]))
    )
    texts = described.map(lambda row: f"{row}", output_type=Types.STRING())
    return texts.union(described.get_side_output(late).map(lambda row: f"late {row}", output_type=Types.STRING()))


@windowed()
def global_windows_with_a_count(env, out):
    return keyed(env).window(GlobalWindows.create()).trigger(CountTrigger.of(3)).process(DescribeCounted())


@windowed()
def global_windows_that_are_purged(env, out):
    trigger = PurgingTrigger.of(CountTrigger.of(3))
    return keyed(env).window(GlobalWindows.create()).trigger(trigger).process(DescribeCounted())


@windowed()
def a_trigger_of_event_time(env, out):
    windows = TumblingEventTimeWindows.of(Time.milliseconds(30))
    return keyed(env).window(windows).trigger(EventTimeTrigger.create()).process(Describe())


@windowed()
def a_trigger_that_fires_again(env, out):
    windows = TumblingEventTimeWindows.of(Time.milliseconds(30))
    trigger = ContinuousEventTimeTrigger.of(Time.milliseconds(10))
    return keyed(env).window(windows).trigger(trigger).process(Describe())


class AtFive(Trigger):
    """Fires, and purges, when the sum of a window reaches a limit; at its end it fires with the rest."""

    def __init__(self, limit):
        self.sum = ReducingStateDescriptor("sum", lambda one, other: one + other, Types.LONG())
        self.limit = limit

    def on_element(self, element, timestamp, window, ctx: Trigger.TriggerContext):
        ctx.register_event_time_timer(window.max_timestamp())
        total = ctx.get_partitioned_state(self.sum)
        total.add(element[1])
        if total.get() >= self.limit:
            total.clear()
            return TriggerResult.FIRE_AND_PURGE
        return TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.FIRE_AND_PURGE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def on_merge(self, window, ctx):
        pass

    def clear(self, window, ctx: Trigger.TriggerContext):
        ctx.get_partitioned_state(self.sum).clear()
        ctx.delete_event_time_timer(window.max_timestamp())


@windowed()
def triggers_of_users(env, out):
    windows = TumblingEventTimeWindows.of(Time.milliseconds(20))
    return keyed(env).window(windows).trigger(AtFive(12)).process(Describe())


class Firings(ProcessWindowFunction):
    """Counts firings of a window, and those of its key."""

    def process(self, key, context: ProcessWindowFunction.Context, elements):
        own = context.window_state().get_state(ValueStateDescriptor("own", Types.INT()))
        all_of_key = context.global_state().get_state(ValueStateDescriptor("all", Types.INT()))
        own.update((own.value() or 0) + 1)
        all_of_key.update((all_of_key.value() or 0) + 1)
        yield key, context.window().start, own.value(), all_of_key.value()

    def clear(self, context: ProcessWindowFunction.Context):
        context.window_state().get_state(ValueStateDescriptor("own", Types.INT())).clear()


@windowed()
def state_of_windows(env, out):
    windows = TumblingEventTimeWindows.of(Time.milliseconds(20))
    return keyed(env).window(windows).trigger(AtFive(12)).process(Firings())


class DescribeAll(ProcessAllWindowFunction):
    def process(self, context, elements):
        yield context.window().start, context.window().end, sorted(value for _, value in elements)


class SumAll(AllWindowFunction):
    def apply(self, window, inputs):
        return [(window.start, sum(value for _, value in inputs))]


@windowed()
def windows_of_all_rows(env, out):
    windows = TumblingEventTimeWindows.of(Time.milliseconds(20))
    described = unkeyed(env).window_all(windows).process(DescribeAll())
    summed = unkeyed(env).window_all(windows).apply(SumAll())
    totals = unkeyed(env).window_all(windows).reduce(lambda one, other: ("all", one[1] + other[1]))
    return described.union(summed, totals.map(lambda pair: pair))


@facts(8)
def windows_alone(_, __):
    one, other = TimeWindow(1, 5), TimeWindow(4, 9)
    return told(
        lambda: str(one),
        lambda: repr(one),
        lambda: str(one.intersects(other)),
        lambda: str(one.cover(other)),
        lambda: str(one == TimeWindow(1, 5)),
        lambda: str(hash(one) == hash(TimeWindow(1, 5))),
        lambda: str(one.max_timestamp()),
        lambda: str(sorted([other, one])[0] is one),
        lambda: str(CountWindow(3)),
        lambda: str(CountWindow(3).max_timestamp() == 2**63 - 1),
        lambda: str(GlobalWindow.get().max_timestamp() == 2**63 - 1),
        lambda: str([result.name for result in TriggerResult]),
        lambda: str([(result.is_fire(), result.is_purge()) for result in TriggerResult]),
        lambda: str(TumblingEventTimeWindows.of(Time.milliseconds(20))),
        lambda: str(SlidingEventTimeWindows.of(Time.seconds(2), Time.seconds(1))),
        lambda: str(EventTimeSessionWindows.with_gap(Time.seconds(2))),
        lambda: str(CountTumblingWindowAssigner.of(2)),
        lambda: str(CountSlidingWindowAssigner.of(3, 2)),
        lambda: str(TumblingEventTimeWindows.of(Time.milliseconds(20)).is_event_time()),
    )
