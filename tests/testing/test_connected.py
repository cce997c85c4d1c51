"""Functions of two streams in a harness: plain, keyed, joined."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from holdfast.common import Types
from holdfast.datastream import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    JoinFunction,
    KeyedCoProcessFunction,
    OutputTag,
    ProcessJoinFunction,
    RuntimeContext,
)
from holdfast.datastream.state import ValueStateDescriptor
from holdfast.datastream.window import TumblingEventTimeWindows
from holdfast.errors import ProgramError
from holdfast.testing import ConnectedHarness, KeyedConnectedHarness

STRAYS = OutputTag("strays", Types.STRING())


def first(row: Any) -> Any:
    return row[0]


class Vectors(CoMapFunction):
    """What it gives has no truth value when it is compared."""

    def map1(self, value: Any) -> Any:
        return None if value < 0 else np.full(2, value)

    def map2(self, value: Any) -> Any:
        return np.zeros(2)


class Sides(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return "one", value

    def map2(self, value: Any) -> Any:
        return "two", value


class Repeat(CoFlatMapFunction):
    def __init__(self) -> None:
        self.times = 1

    def flat_map1(self, value: str) -> Iterable[str]:
        return [value] * self.times

    def flat_map2(self, value: int) -> None:
        self.times = value


class Strays(CoProcessFunction):
    def process_element1(self, value: str, ctx: CoProcessFunction.Context) -> Iterable[Any]:
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()

    def process_element2(self, value: str, ctx: CoProcessFunction.Context) -> Iterable[Any]:
        yield STRAYS, value


def test_functions_without_keys() -> None:
    with ConnectedHarness(Sides()) as harness:
        assert harness.push1(1).push2(2).push_all2([3, 4]).take_output() == [
            ("one", 1),
            ("two", 2),
            ("two", 3),
            ("two", 4),
        ]
    with ConnectedHarness(Repeat()) as harness:
        harness.push1("a").push2(2).end_epoch().forget_live_objects()
        assert harness.push1("b").output() == ["a", "b", "b"]


def test_event_time_is_the_lesser_of_both_streams_and_side_outputs_are_kept_by_tag() -> None:
    with ConnectedHarness(Strays(), side_outputs=[STRAYS]) as harness:
        harness.advance_watermark1(50).advance_watermark2(20).push1("a", 60)
        harness.push2("b", 60).end_input2().push1("c", 70)
        assert harness.output() == [("a", 60, 20), ("c", 70, 50)]
        assert harness.side_output(STRAYS) == ["b"]


WAITING = ValueStateDescriptor("waiting", Types.STRING())


class Match(KeyedCoProcessFunction):
    """Pairs a row with the last one of the other stream; what has waited for ten is told."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.waiting = runtime_context.get_state(WAITING)

    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> None:
        self.waiting.update(value[1])
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 10)

    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterable[Any]:
        found = self.waiting.value()
        self.waiting.clear()
        yield ctx.get_current_key(), found, value[1]

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Iterable[Any]:
        if self.waiting.value() is not None:
            yield ctx.get_current_key(), self.waiting.value(), None


@pytest.mark.parametrize("backend", ["heap", "lmdb"])
def test_both_streams_share_the_state_and_timers_of_a_key_over_a_rescale(backend: str) -> None:
    harness = KeyedConnectedHarness(Match(), first, first, Types.STRING(), backend=backend)
    harness.push1(("a", "x"), 1).push1(("b", "y"), 2).push1(("c", "z"), 3)
    harness.assert_state(WAITING, {"a": "x", "b": "y", "c": "z"})
    assert harness.num_event_time_timers() == 3
    with harness.rescaled(3) as subtasks:
        subtasks.push2(("b", "Y"), 5)
        assert subtasks.take_output() == [("b", "y", "Y")]
        subtasks.assert_state(WAITING, {"a": "x", "c": "z"})
        assert sorted(subtasks.advance_watermark(20).take_output()) == [("a", "x", None), ("c", "z", None)]


class PairUp(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Iterable[Any]:
        yield left, right, ctx.get_timestamp()


class Concat(JoinFunction):
    def join(self, first: Any, second: Any) -> Any:
        return first[1] + second[1]


def test_joins() -> None:
    with KeyedConnectedHarness(
        PairUp(),
        first,
        first,
        operation=lambda one, two, function: one.interval_join(two).between(0, 5).process(function),
    ) as harness:
        harness.push1(("a", 1), 10).push2(("a", 2), 15).push2(("a", 3), 16).push2(("b", 4), 12)
        assert harness.output() == [(("a", 1), ("a", 2), 15)]
    ten = TumblingEventTimeWindows.of(10)
    with ConnectedHarness(
        Concat(),
        operation=lambda one, two, function: one.join(two).where(first).equal_to(first).window(ten).apply(function),
    ) as harness:
        harness.push1(("a", "x"), 1).push2(("a", "y"), 9).push2(("a", "z"), 10).advance_watermark(30)
        assert harness.output() == ["xy"]


def test_what_is_no_function_of_two_streams_is_refused() -> None:
    with pytest.raises(ProgramError, match="map1, flat_map1, process_element1"):
        ConnectedHarness(lambda value: value)


def test_results_of_a_map_may_compare_as_they_like() -> None:
    with ConnectedHarness(Vectors()) as harness:
        harness.push_all1([1, -1, 2])
        assert [row.tolist() for row in harness.output()] == [[1, 1], [2, 2]]
