"""The harness of windows: all assigners and functions, triggers, evictors, lateness and state of windows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from holdfast.common import Types
from holdfast.datastream import (
    AllWindowFunction,
    OutputTag,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
)
from holdfast.datastream.state import ValueStateDescriptor
from holdfast.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    ProcessingTimeSessionWindows,
    SlidingEventTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from holdfast.errors import ProgramError
from holdfast.testing import WindowHarness
from tests.testing.window_functions import PAIR, AddPairs, ApplyRows, NameReduced, NameWindow, SumInPlace, SumRows

LATE = OutputTag("late", PAIR)
TEN = TumblingEventTimeWindows.of(10)
ROWS = [("a", 1), ("b", 2), ("a", 4)]


def first(row: Any) -> Any:
    return row[0]


@pytest.mark.parametrize(
    ("function", "behind", "expected"),
    [
        (AddPairs(), None, [("a", 5), ("b", 2)]),
        (lambda one, other: (one[0], one[1] + other[1]), None, [("a", 5), ("b", 2)]),
        (AddPairs(), NameReduced(), [("a", 0, 10, 5), ("b", 0, 10, 2)]),
        (SumInPlace(), None, [2, 5]),
        (SumInPlace(), NameWindow(), [("a", 0, 10, 5), ("b", 0, 10, 2)]),
        (ApplyRows(), None, [("a", 0, 10, 5), ("b", 0, 10, 2)]),
        (SumRows(), None, [("a", 0, 10, 5), ("b", 0, 10, 2)]),
    ],
)
def test_functions_of_all_kinds(function: Any, behind: Any, expected: list[Any]) -> None:
    options: Any = {} if behind is None else {"window_function": behind}
    with WindowHarness(function, TEN, first, Types.STRING(), **options) as harness:
        harness.push_all(ROWS, [1, 2, 9]).end_epoch().advance_watermark(9)
        assert sorted(harness.output()) == expected


@pytest.mark.parametrize(
    ("assigner", "windows"),
    [
        (TEN, [(0, 10), (10, 20)]),
        (SlidingEventTimeWindows.of(10, 5), [(0, 10), (5, 15), (10, 20)]),
        (EventTimeSessionWindows.with_gap(3), [(5, 8), (9, 15)]),
    ],
)
def test_windows_by_event_time(assigner: Any, windows: list[tuple[int, int]]) -> None:
    with WindowHarness(SumRows(), assigner, first) as harness:
        harness.push_all([("a", 1)] * 3, [5, 9, 12]).advance_watermark(100)
        assert [(start, end) for _, start, end, _ in harness.output()] == windows


def test_windows_by_the_clock_and_by_a_trigger_alone() -> None:
    with WindowHarness(SumRows(), TumblingProcessingTimeWindows.of(10), first) as harness:
        assert harness.push(("a", 1)).advance_processing_time(9).output() == [("a", 0, 10, 1)]
    with WindowHarness(SumRows(), ProcessingTimeSessionWindows.with_gap(5), first) as harness:
        harness.push(("a", 1)).advance_processing_time(3).push(("a", 2)).advance_processing_time(4)
        assert harness.output() == [("a", 0, 8, 3)]
    with WindowHarness(
        AddPairs(), GlobalWindows.create(), first, trigger=CountTrigger.of(2), evictor=CountEvictor.of(1)
    ) as harness:
        assert harness.push_all([("a", 1), ("a", 2), ("a", 3), ("a", 4)]).output() == [("a", 2), ("a", 4)]


def test_late_rows_fire_again_or_go_aside() -> None:
    with WindowHarness(
        AddPairs(), TEN, first, input_type=PAIR, allowed_lateness=5, late_data=LATE
    ) as harness:
        harness.push(("a", 1), 3).advance_watermark(10).push(("a", 2), 4).advance_watermark(15).push(("a", 4), 5)
        assert harness.output() == [("a", 1), ("a", 3)]
        assert harness.side_output(LATE) == [("a", 4)]


FIRINGS = ValueStateDescriptor("firings", Types.LONG())


class Firings(ProcessWindowFunction):
    def process(self, key: str, context: Any, elements: Iterable[Any]) -> None:
        for store in (context.window_state(), context.global_state()):
            state = store.get_state(FIRINGS)
            state.update((state.value() or 0) + 1)

    def clear(self, context: Any) -> None:
        context.window_state().get_state(FIRINGS).clear()


@pytest.mark.parametrize("backend", ["heap", "lmdb"])
def test_state_of_a_window_and_of_its_key_over_a_restore(backend: str) -> None:
    harness = WindowHarness(
        Firings(), TEN, first, Types.STRING(), trigger=CountTrigger.of(1), allowed_lateness=5, backend=backend
    )
    harness.push_all([("a", 1), ("a", 1), ("a", 1), ("b", 1)], [1, 2, 11, 1])
    with harness.restored() as again:
        assert [again.window_state(FIRINGS, "a", TimeWindow(start, start + 10)) for start in (0, 10)] == [2, 1]
        again.assert_state(FIRINGS, {"a": 3, "b": 1})
        again.advance_watermark(14)
        assert again.window_state(FIRINGS, "a", TimeWindow(0, 10)) is None
        again.assert_state(FIRINGS, 3, key="a")


class AllRows(ProcessAllWindowFunction):
    def process(self, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        yield context.window().start, list(elements)


class ApplyAll(AllWindowFunction):
    def apply(self, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        yield window.start, list(inputs)


@pytest.mark.parametrize("function", [AllRows(), ApplyAll()])
def test_windows_of_all_rows(function: Any) -> None:
    with WindowHarness(function, TEN) as harness:
        assert harness.push_all([1, 2, 3], [1, 11, 2]).advance_watermark(50).output() == [(0, [1, 3]), (10, [2])]


def test_what_is_no_function_of_windows_is_refused() -> None:
    with pytest.raises(ProgramError, match="no function of windows"):
        WindowHarness(7, TEN, first)
    with pytest.raises(ProgramError, match="no option 'triger'"):
        WindowHarness(SumRows(), TEN, first, triger=CountTrigger.of(1))  # type: ignore[call-arg]  # what is refused
