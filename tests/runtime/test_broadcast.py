"""Broadcast streams through whole epochs of all tasks: order, times, the end of an input, restores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Configuration, Duration, Types, WatermarkStrategy
from holdfast.common.watermark_strategy import TimestampAssigner
from holdfast.datastream import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from holdfast.datastream.state import MapStateDescriptor
from holdfast.runtime import live_task
from holdfast.runtime.batch import Batch
from holdfast.runtime.plan import JobPlan
from holdfast.runtime.source import ReaderContext, ReadLimit, Source, SourceReader
from tests.graph.programs import Program
from tests.integration.programs import Scripted
from tests.runtime.local_job import ListSink, LocalJob, plan_of, rows_of
from tests.runtime.operators import Clock

LOG = MapStateDescriptor("log", Types.LONG(), Types.STRING())


class ByChannel(Source):
    """Subtask i gives its list of an epoch, then the next one; ends after the last."""

    bounded = True

    def __init__(self, epochs: list[list[list[Any]]]) -> None:
        self._epochs = epochs

    def output_type(self) -> Any:
        return None

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return _ByChannelReader([epoch[context.subtask] for epoch in self._epochs])


class _ByChannelReader(SourceReader):
    def __init__(self, epochs: list[list[Any]]) -> None:
        self._left = list(epochs)

    def read(self, limit: ReadLimit) -> Iterator[Batch]:
        rows = self._left.pop(0)
        self.ended = not self._left
        if rows:
            yield Batch(rows)

    def positions(self) -> list[Any]:
        return []


class Numbering(BroadcastProcessFunction):
    """Numbers broadcast elements in their state; rows tell the subtask and all elements in order."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()

    def process_element(self, value: Any, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Iterator[Any]:
        yield value, self.subtask, list(ctx.get_broadcast_state(LOG).values())

    def process_broadcast_element(self, value: Any, ctx: BroadcastProcessFunction.Context) -> None:
        log = ctx.get_broadcast_state(LOG)
        log.put(len(list(log)), value)


def environment() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment(Configuration())


def source(env: StreamExecutionEnvironment, made: Source, name: str) -> Any:
    return env.from_source(made, WatermarkStrategy.no_watermarks(), name).uid(name)


def planned(env: StreamExecutionEnvironment, directory: Path, parallelism: int = 2, backend: str = "heap") -> JobPlan:
    program = Program()
    program.graph = env.get_stream_graph()
    return plan_of(program, directory, backend, parallelism)


def run(job: LocalJob, epochs: int, forget: bool = False) -> list[Any]:
    out: list[Any] = []
    for _ in range(epochs):
        out += rows_of(job.run_epoch())
        if forget:
            live_task.forget_live_tasks("job")
    return out


def per_subtask(rows: list[Any], parallelism: int) -> list[list[Any]]:
    """For every row of each subtask what it saw."""
    return [[seen for _, subtask, seen in rows if subtask == number] for number in range(parallelism)]


@pytest.mark.parametrize("forget", [False, True])
@pytest.mark.parametrize("main_is_broadcast", [False, True])
@pytest.mark.parametrize("levels_between", [0, 1])
def test_every_subtask_sees_all_elements_in_one_order_before_the_rows(
    tmp_path: Path, forget: bool, main_is_broadcast: bool, levels_between: int
) -> None:
    env = environment()
    rows = source(env, ByChannel([[[1], [2]], [[3], [4]], [[5], [6]]]), "rows")
    if levels_between:
        rows = rows.rebalance().map(lambda row: row)
    elements = source(env, ByChannel([[["a", "b"], ["c"]], [[], []], [["d"], ["e", "f"]]]), "elements")
    main = rows.broadcast() if main_is_broadcast else rows
    main.connect(elements.broadcast(LOG)).process(Numbering()).sink_to(ListSink())
    plan = planned(env, tmp_path, parallelism=2)
    # An envelope for every row: numbers, not luck, keep the order.
    job = LocalJob(replace(plan, options=replace(plan.options, envelope_bytes=1)))
    seen = per_subtask(run(job, 3, forget), 2)
    copies = 2 if main_is_broadcast else 1
    expected = [list("abc")] * 2 + [list("abcdef")]
    assert seen == [[log for log in expected for _ in range(copies)]] * 2


def test_a_bounded_broadcast_stream_may_end_first_and_last(tmp_path: Path) -> None:
    env = environment()
    rows = source(env, Scripted([[1], [2], [3]]), "rows")
    elements = source(env, Scripted([["a"]]), "elements")
    more = source(env, Scripted([["a"], ["b"], ["c"], ["d"]]), "more")
    for number, broadcast in enumerate((elements, more)):
        rows.connect(broadcast.broadcast(LOG)).process(Numbering()).set_parallelism(1 + number).sink_to(ListSink())
    job = LocalJob(planned(env, tmp_path))
    logs: list[list[str]] = []
    for _ in range(4):
        acknowledged = job.run_epoch()
        logs += [log for _, _, log in rows_of(acknowledged)]
    assert sorted(logs) == [["a"], ["a"], ["a"], ["a"], ["a", "b"], ["a", "b", "c"]]
    assert all(a.ended for a in acknowledged)


# -- event time --------------------------------------------------------------------------------------------------------


class Second(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return value[1]


MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())


class Deadlines(KeyedBroadcastProcessFunction):
    """Rows set a timer at their time; what fires and every broadcast element come out."""

    def process_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Iterator[Any]:
        ctx.timer_service().register_event_time_timer(value[1])
        yield "row", value[0], ctx.timestamp()

    def process_broadcast_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.Context) -> Iterator[Any]:
        ctx.get_broadcast_state(LOG).put(1, value[0])
        yield "element", value[0], ctx.timestamp()

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield "timer", ctx.get_current_key(), timestamp


def deadlines(directory: Path, rows: Any, elements: Any, clock: Any = lambda: 0, parallelism: int = 1) -> LocalJob:
    """Both streams -> Deadlines -> another exchange -> sink. A stream is (rows per epoch, strategy or None)."""
    env = environment()
    made = []
    for name, (epochs, strategy) in (("rows", rows), ("elements", elements)):
        stream = source(env, Scripted(epochs), name)
        made.append(
            stream if strategy is None else stream.assign_timestamps_and_watermarks(strategy).set_parallelism(1)
        )
    keyed = made[0].key_by(lambda row: row[0], Types.STRING())
    result = keyed.connect(made[1].broadcast(LOG)).process(Deadlines())
    result.key_by(lambda row: row[1]).map(lambda row: row).sink_to(ListSink())
    return LocalJob(planned(env, directory, parallelism), clock=clock)


def fired(rows: list[Any]) -> list[int]:
    return [time for kind, _, time in rows if kind == "timer"]


def test_event_time_is_the_lower_of_both_inputs(tmp_path: Path) -> None:
    rows = [[("k", 10), ("k", 20), ("k", 30)], [], [], []]
    job = deadlines(tmp_path, (rows, MONOTONOUS), ([[("e", 5)], [("f", 15)], [("g", 40)], []], MONOTONOUS))
    assert [fired(run(job, 1)) for _ in range(3)] == [[], [10], [20]]
    assert fired(run(job, 1)) == [30]


@pytest.mark.parametrize("timeless", ["rows", "elements"])
def test_one_input_without_event_time(tmp_path: Path, timeless: str) -> None:
    rows = ([[("k", 10)], [("j", 20)]], None if timeless == "rows" else MONOTONOUS)
    elements = ([[("e", 5)], [("f", 25)]], None if timeless == "elements" else MONOTONOUS)
    out = run(deadlines(tmp_path, rows, elements), 2)
    times = {name: time for kind, name, time in out if kind != "timer"}
    expected = {"k": 10, "j": 20, "e": 5, "f": 25}
    without = ("k", "j") if timeless == "rows" else ("e", "f")
    assert times == {name: None if name in without else time for name, time in expected.items()}
    # The input without event time holds it back until it has ended.
    assert fired(out) == [10, 20]


def test_an_idle_broadcast_stream_does_not_hold_event_time_back(tmp_path: Path) -> None:
    clock = Clock()
    rows = [[("k", 10), ("k", 20)], [], [("k", 30)], []]
    strategy = MONOTONOUS.with_idleness(Duration.of_millis(100))
    job = deadlines(tmp_path, (rows, MONOTONOUS), ([[], [], [], [], []], strategy), clock)
    assert fired(run(job, 1)) == []
    clock.now = 100
    assert fired(run(job, 1)) == [10]
    assert fired(run(job, 1)) == [20]


class Holding(BroadcastProcessFunction):
    """Asks for the state once."""

    state: Any = None

    def process_element(self, value: Any, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Iterator[Any]:
        if self.state is None:
            self.state = ctx.get_broadcast_state(LOG)
            yield "asked"
        yield "".join(self.state.values())

    def process_broadcast_element(self, value: Any, ctx: BroadcastProcessFunction.Context) -> None:
        ctx.get_broadcast_state(LOG).put(ord(value), value)


def test_a_state_that_a_function_holds_goes_with_it_from_process_to_process(tmp_path: Path) -> None:
    env = environment()
    rows = source(env, Scripted([[1], [2], [3], [4]]), "rows")
    elements = source(env, Scripted([["a"], ["b"], ["c"], ["d"]]), "elements")
    rows.connect(elements.broadcast(LOG)).process(Holding()).sink_to(ListSink())
    assert run(LocalJob(planned(env, tmp_path, 1)), 4, forget=True) == ["asked", "a", "ab", "abc", "abcd"]


# -- restores ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["heap", "lmdb", "rocksdb"])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_job_goes_on_with_another_parallelism(tmp_path: Path, backend: str, parallelism: int) -> None:
    def plan(subtasks: int) -> JobPlan:
        env = environment()
        rows = source(env, Scripted([[("k", 10), ("j", 15)], [("k", 20)], [("l", 30)], []]), "rows")
        elements = source(env, Scripted([[("e", 5)]]), "elements")
        keyed = rows.key_by(lambda row: row[0], Types.STRING())
        result = keyed.connect(elements.broadcast(LOG)).process(Telling()).uid("telling")
        result.sink_to(ListSink()).uid("sink")
        return planned(env, tmp_path, subtasks, backend)

    first = LocalJob(plan(2))
    assert sorted(run(first, 1)) == [("j", 1, "e"), ("k", 1, "e")]
    restored = first.checkpoint(1)
    live_task.forget_live_tasks("job")
    second = LocalJob(plan(parallelism), attempt=2, epoch=restored.epoch, restored=restored)
    # The broadcast stream had ended before the checkpoint: its element is in the state of every subtask.
    assert run(second, 2, forget=True) == [("l", 1, "e")]


class Telling(KeyedBroadcastProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.counts: dict[str, int] = {}

    def process_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Iterator[Any]:
        key = ctx.get_current_key()
        self.counts[key] = self.counts.get(key, 0) + 1
        yield key, self.counts[key], ctx.get_broadcast_state(LOG).get(1)

    def process_broadcast_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.Context) -> None:
        ctx.get_broadcast_state(LOG).put(1, value[0])
