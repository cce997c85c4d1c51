"""Programs with windows as users of PyFlink write them: with the imports changed they give the rows that they must, as
streams and as batches, with checkpoints and a failure in the middle.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.runtime.epoch import EpochSpec
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import environment, published
from tests.job.counting import settings

HEAD = """
from typing import Iterable

from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AggregateFunction, OutputTag, ProcessWindowFunction, ReduceFunction, WindowFunction
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.datastream.window import (
    ContinuousEventTimeTrigger,
    CountSlidingWindowAssigner,
    CountTrigger,
    CountWindow,
    EventTimeSessionWindows,
    GlobalWindows,
    PurgingTrigger,
    SessionWindowTimeGapExtractor,
    SlidingEventTimeWindows,
    TimeWindow,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
)


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp) -> int:
        return int(value[1])


class Describe(ProcessWindowFunction[tuple, tuple, str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[tuple]
    ) -> Iterable[tuple]:
        return [(key, context.window().start, context.window().end, len([e for e in elements]))]

    def clear(self, context: ProcessWindowFunction.Context) -> None:
        pass


def numbers(env, values):
    rows = env.from_collection(
        [('hi', value) for value in values], type_info=Types.TUPLE([Types.STRING(), Types.INT()])
    )
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
    return rows.assign_timestamps_and_watermarks(times)


DESCRIBED = Types.TUPLE([Types.STRING(), Types.INT(), Types.INT(), Types.INT()])


def program(env):
"""

#: By name: the body of a program, and its rows as a stream; those of a batch where they differ.
PROGRAMS: dict[str, tuple[str, list[Any], list[Any] | None]] = {
    "tumbling": (
        """
    return numbers(env, [1, 2, 3, 4, 5, 8, 9, 15]) \\
        .key_by(lambda x: x[0], key_type=Types.STRING()) \\
        .window(TumblingEventTimeWindows.of(Time.milliseconds(5))) \\
        .process(Describe(), DESCRIBED)
""",
        [("hi", 0, 5, 4), ("hi", 5, 10, 3), ("hi", 15, 20, 1)],
        None,
    ),
    "sliding": (
        """
    return numbers(env, [1, 2, 3, 4, 5, 8, 9, 15]) \\
        .key_by(lambda x: x[0], key_type=Types.STRING()) \\
        .window(SlidingEventTimeWindows.of(Time.milliseconds(5), Time.milliseconds(2))) \\
        .process(Describe(), DESCRIBED)
""",
        [
            ("hi", -2, 3, 2),
            ("hi", 0, 5, 4),
            ("hi", 2, 7, 4),
            ("hi", 4, 9, 3),
            ("hi", 6, 11, 2),
            ("hi", 8, 13, 2),
            ("hi", 12, 17, 1),
            ("hi", 14, 19, 1),
        ],
        None,
    ),
    "session": (
        """
    return numbers(env, [1, 2, 3, 4, 8, 9, 15]) \\
        .key_by(lambda x: x[0], key_type=Types.STRING()) \\
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(5))) \\
        .process(Describe(), DESCRIBED)
""",
        [("hi", 1, 14, 6), ("hi", 15, 20, 1)],
        None,
    ),
    "session with a gap of each row": (
        """
    class Gap(SessionWindowTimeGapExtractor):
        def extract(self, element: tuple) -> int:
            return element[1]

    return numbers(env, [1, 2, 3, 4, 9, 9, 15]) \\
        .key_by(lambda x: x[0], key_type=Types.STRING()) \\
        .window(EventTimeSessionWindows.with_dynamic_gap(Gap())) \\
        .process(Describe(), DESCRIBED)
""",
        [("hi", 1, 8, 4), ("hi", 9, 30, 3)],
        None,
    ),
    "count": (
        """
    class Total(WindowFunction[tuple, tuple, str, CountWindow]):
        def apply(self, key: str, window: CountWindow, inputs: Iterable[tuple]):
            result = 0
            for i in inputs:
                result += i[0]
            return [(key, result)]

    rows = env.from_collection(
        [(1, 'hi'), (2, 'hello'), (3, 'hi'), (4, 'hello'), (5, 'hi'), (6, 'hello'), (6, 'hello')],
        type_info=Types.TUPLE([Types.INT(), Types.STRING()]))
    return rows.key_by(lambda x: x[1], key_type=Types.STRING()) \\
        .count_window(3) \\
        .apply(Total(), Types.TUPLE([Types.STRING(), Types.INT()]))
""",
        [("hello", 12), ("hi", 9)],
        None,
    ),
    "sliding count": (
        """
    return numbers(env, [1, 2, 3, 4, 5]) \\
        .key_by(lambda x: x[0], key_type=Types.STRING()) \\
        .window(CountSlidingWindowAssigner.of(3, 2)) \\
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
""",
        [("hi", 6), ("hi", 12)],
        None,
    ),
    "reduce with a window function": (
        """
    class Longest(ReduceFunction):
        def reduce(self, value1, value2):
            return value1 if value1[1] > value2[1] else value2

    class WithStart(ProcessWindowFunction):
        def process(self, key, context, elements):
            greatest = next(iter(elements))
            yield context.window().start, greatest[1]

    return numbers(env, [1, 4, 3, 7, 12]) \\
        .key_by(lambda x: x[0], key_type=Types.STRING()) \\
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10))) \\
        .reduce(Longest(), WithStart(), Types.TUPLE([Types.LONG(), Types.LONG()]))
""",
        [(0, 7), (10, 12)],
        None,
    ),
    "average with a window function": (
        """
    class Average(AggregateFunction):
        def create_accumulator(self):
            return 0, 0

        def add(self, value, accumulator):
            return accumulator[0] + value[1], accumulator[1] + 1

        def get_result(self, accumulator):
            return accumulator[0] / accumulator[1]

        def merge(self, a, b):
            return a[0] + b[0], a[1] + b[1]

    class WithKey(ProcessWindowFunction):
        def process(self, key, context, averages):
            yield key, next(iter(averages))

    return numbers(env, [1, 2, 3, 6, 20]) \\
        .key_by(lambda x: x[0], key_type=Types.STRING()) \\
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(5))) \\
        .aggregate(Average(), WithKey(), Types.TUPLE([Types.LONG(), Types.LONG()]),
                   Types.TUPLE([Types.STRING(), Types.DOUBLE()]))
""",
        [("hi", 3.0), ("hi", 20.0)],
        None,
    ),
    "state of windows": (
        """
    class Firings(ProcessWindowFunction):
        def open(self, runtime_context):
            self.fired = ValueStateDescriptor('fired', Types.INT())

        def process(self, key, context, elements):
            of_window = context.window_state().get_state(self.fired)
            of_key = context.global_state().get_state(self.fired)
            of_window.update((of_window.value() or 0) + 1)
            of_key.update((of_key.value() or 0) + 1)
            yield key, context.window().start, of_window.value(), of_key.value()

        def clear(self, context):
            context.window_state().get_state(self.fired).clear()

    return numbers(env, [1, 2, 3, 4, 11, 12]) \\
        .key_by(lambda x: x[0], key_type=Types.STRING()) \\
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10))) \\
        .trigger(PurgingTrigger.of(CountTrigger.of(2))) \\
        .process(Firings(), DESCRIBED)
""",
        [("hi", 0, 1, 1), ("hi", 0, 2, 2), ("hi", 10, 1, 3)],
        None,
    ),
    "late rows": (
        """
    late = OutputTag('late-data', Types.TUPLE([Types.STRING(), Types.INT()]))
    main = numbers(env, [1, 2, 8, 3, 16, 4]) \\
        .key_by(lambda x: x[0], key_type=Types.STRING()) \\
        .window(TumblingEventTimeWindows.of(Time.milliseconds(5))) \\
        .allowed_lateness(5) \\
        .side_output_late_data(late) \\
        .process(Describe(), DESCRIBED)
    aside = main.get_side_output(late).map(lambda row: (row[0], -1, -1, row[1]), DESCRIBED)
    return main.union(aside)
""",
        [("hi", -1, -1, 4), ("hi", 0, 5, 2), ("hi", 0, 5, 3), ("hi", 5, 10, 1), ("hi", 15, 20, 1)],
        [("hi", 0, 5, 4), ("hi", 5, 10, 1), ("hi", 15, 20, 1)],
    ),
    "early firing": (
        """
    return numbers(env, [1, 2, 3, 7, 9, 12]) \\
        .key_by(lambda x: x[0], key_type=Types.STRING()) \\
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10))) \\
        .trigger(ContinuousEventTimeTrigger.of(Time.milliseconds(5))) \\
        .process(Describe(), DESCRIBED)
""",
        [("hi", 0, 10, 4), ("hi", 0, 10, 5), ("hi", 10, 20, 1), ("hi", 10, 20, 1)],
        [("hi", 0, 10, 5), ("hi", 0, 10, 5), ("hi", 10, 20, 1), ("hi", 10, 20, 1)],
    ),
    "windows of all rows": (
        """
    return numbers(env, [1, 2, 3, 7]) \\
        .window_all(TumblingEventTimeWindows.of(Time.milliseconds(5))) \\
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
""",
        [("hi", 6), ("hi", 7)],
        None,
    ),
    "a trigger of one's own": (
        """
    class EverySecondRow(Trigger[tuple, object]):
        count = ValueStateDescriptor('count', Types.INT())

        def on_element(self, element, timestamp, window, ctx: Trigger.TriggerContext) -> TriggerResult:
            state = ctx.get_partitioned_state(self.count)
            state.update((state.value() or 0) + 1)
            return TriggerResult.FIRE if state.value() % 2 == 0 else TriggerResult.CONTINUE

        def on_processing_time(self, time, window, ctx: Trigger.TriggerContext) -> TriggerResult:
            return TriggerResult.CONTINUE

        def on_event_time(self, time, window, ctx: Trigger.TriggerContext) -> TriggerResult:
            return TriggerResult.CONTINUE

        def on_merge(self, window, ctx: Trigger.OnMergeContext) -> None:
            pass

        def clear(self, window, ctx: Trigger.TriggerContext) -> None:
            ctx.get_partitioned_state(self.count).clear()

    return numbers(env, [1, 2, 3, 4, 5]) \\
        .key_by(lambda x: x[0], key_type=Types.STRING()) \\
        .window(GlobalWindows.create()) \\
        .trigger(EverySecondRow()) \\
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
""",
        [("hi", 3), ("hi", 10)],
        None,
    ),
}


def translated(name: str) -> Any:
    """The program, with the imports changed and nothing else."""
    # Functions without a module are looked for in all modules whenever they are pickled.
    names: dict[str, Any] = {"__name__": "translated"}
    text = HEAD + PROGRAMS[name][0].strip("\n") + "\n"
    exec(compile(text.replace("from pyflink.", "from holdfast."), name, "exec"), names)
    return names["program"]


def fail_once(in_process: InProcessEngine) -> None:
    def fail(spec: EpochSpec) -> None:
        if (spec.attempt, spec.epoch) == (1, 2):
            raise OSError("the executor is gone")

    in_process.after_epoch = fail


def run(name: str, env: StreamExecutionEnvironment, path: Path) -> None:
    """Times are assigned by one subtask: so the order of rows, and what is late, do not depend on the parallelism."""
    stream: DataStream = translated(name)(env)
    for node in env.get_stream_graph().nodes:
        if node.name == "Timestamps/Watermarks":
            node.parallelism = 1
    stream.sink_to(FileSink.json(str(path)))
    env.execute()


@pytest.mark.parametrize("parallelism", [1, 2, 5])
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_a_stream(in_process: InProcessEngine, tmp_path: Path, name: str, parallelism: int) -> None:
    """Two rows an epoch."""
    fail_once(in_process)
    env = environment(**settings(tmp_path, **{"holdfast.epoch.max-rows": "2"})).set_parallelism(parallelism)
    run(name, env, tmp_path / "out")
    assert published(tmp_path / "out") == sorted(PROGRAMS[name][1])
    assert {attempt for attempt, _ in in_process.epochs} == {1, 2}


@pytest.mark.parametrize("parallelism", [1, 2, 5])
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_a_batch(in_process: InProcessEngine, tmp_path: Path, name: str, parallelism: int) -> None:
    fail_once(in_process)
    env = environment(**settings(tmp_path, **{"holdfast.epoch.max-rows": "2"})).set_parallelism(parallelism)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    run(name, env, tmp_path / "out")
    _, as_stream, as_batch = PROGRAMS[name]
    assert published(tmp_path / "out") == sorted(as_stream if as_batch is None else as_batch)
    assert {attempt for attempt, _ in in_process.epochs} == {1, 2}
