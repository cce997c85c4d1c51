"""Windows in a harness: lateness, state, evictors, window_all, functions of all kinds, and what is refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from holdfast.common import Row, Types
from holdfast.datastream import (
    AggregateFunction,
    DataStream,
    OutputTag,
    ProcessWindowFunction,
    RuntimeContext,
    WindowFunction,
)
from holdfast.datastream.state import ValueStateDescriptor
from holdfast.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    ProcessingTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from holdfast.errors import FunctionError, ProgramError, StateAccessError, StateMigrationError
from holdfast.state.layout import LOCAL_PREFIX
from holdfast.testing import KeyedOperatorHarness, ManualClock
from tests.testing.window_functions import FIRED, PAIR, AddPairs, NameWindow, SumInPlace, SumRows, harness

LATE = OutputTag("late", PAIR)
TEN = TumblingEventTimeWindows.of(10)


def test_a_window_fires_once_with_its_last_time() -> None:
    windows = harness(lambda s: s.window(TEN).reduce(AddPairs()))
    windows.push_all([("a", 1), ("b", 2), ("a", 3)], [0, 9, 5]).advance_watermark(8)
    assert windows.output() == []
    windows.advance_watermark(9)
    assert sorted(windows.timestamped_output()) == [(("a", 4), 9), (("b", 2), 9)]
    assert windows.num_event_time_timers() == 0


def test_rows_within_the_lateness_fire_again_and_later_ones_go_aside() -> None:
    windows = harness(
        lambda s: s.window(TEN).allowed_lateness(5).side_output_late_data(LATE).reduce(AddPairs()), side_outputs=[LATE]
    )
    windows.push(("a", 1), 3).advance_watermark(10)
    windows.push(("a", 2), 4).end_epoch().forget_live_objects()
    windows.push(("a", 4), 5)
    assert windows.take_output() == [("a", 1), ("a", 3), ("a", 7)]
    windows.advance_watermark(14).push(("a", 8), 9)
    assert windows.take_output() == []
    assert windows.side_output(LATE) == [("a", 8)]


def test_late_rows_without_a_side_output_are_dropped() -> None:
    windows = harness(lambda s: s.window(TEN).reduce(AddPairs()))
    windows.advance_watermark(9).push(("a", 1), 9).push(("a", 2), 10).end_input()
    assert windows.output() == [("a", 2)]


def test_a_late_row_is_taken_by_a_session_that_it_touches() -> None:
    windows = harness(lambda s: s.window(EventTimeSessionWindows.with_gap(5)).process(SumRows(), FIRED))
    windows.push(("a", 1), 20).advance_watermark(22)
    windows.push_all([("a", 2), ("a", 4)], [16, 10]).end_input()
    assert windows.output() == [("a", 16, 25, 3)]


def stored_entries(windows: KeyedOperatorHarness) -> list[bytes]:
    """What the local store holds, but for what never leaves the host."""
    windows.end_epoch()
    backend = windows._backend()
    return [key for key, _ in backend.store.scan(b"", LOCAL_PREFIX)]


@pytest.mark.parametrize("backend", ["heap", "lmdb", "rocksdb"])
@pytest.mark.parametrize(
    "windows_of",
    [
        lambda s: s.window(SlidingEventTimeWindows.of(10, 5)).allowed_lateness(3).process(SumRows()),
        lambda s: s.window(EventTimeSessionWindows.with_gap(5)).aggregate(SumInPlace(), NameWindow()),
        lambda s: s.window(TEN).trigger(CountTrigger.of(3)).evictor(CountEvictor.of(2)).process(SumRows()),
    ],
)
def test_nothing_is_left_of_windows_that_are_gone(windows_of: Any, backend: str) -> None:
    windows = harness(windows_of, backend=backend)
    for start in range(0, 300, 10):
        windows.push_all([(key, 1) for key in "abcab"], range(start, start + 5)).advance_watermark(start - 40)
        if start % 30 == 0:
            assert stored_entries(windows)
    contents = windows._head().contents.state  # type: ignore[attr-defined]  # of window operators
    assert len(contents._spaces) < 40
    windows.advance_watermark(1_000)
    assert stored_entries(windows) == [] and windows.num_event_time_timers() == 0
    assert len(contents._spaces) <= 2


class States(ProcessWindowFunction):
    """Counts the firings of a window, and of all windows of its key."""

    per_window = ValueStateDescriptor("firings", Types.LONG())
    # The same name on purpose: the stores are apart.
    overall = ValueStateDescriptor("firings", Types.LONG())

    def open(self, runtime_context: RuntimeContext) -> None:
        self.cleared: list[Any] = []

    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        counts = []
        for store, descriptor in ((context.window_state(), self.per_window), (context.global_state(), self.overall)):
            state = store.get_state(descriptor)
            state.update((state.value() or 0) + 1)
            counts.append(state.value())
        yield (key, context.window().start, *counts, context.current_watermark(), context.current_processing_time())

    def clear(self, context: Any) -> None:
        self.cleared.append((context.window().start, context.window_state().get_state(self.per_window).value()))
        context.window_state().get_state(self.per_window).clear()


def test_state_of_the_window_and_of_the_key() -> None:
    windows = harness(lambda s: s.window(TEN).allowed_lateness(100).process(States()), clock=ManualClock(77))
    windows.push_all([("a", 1), ("b", 1), ("a", 1)], [1, 2, 13]).advance_watermark(9).end_epoch()
    windows.forget_live_objects().push(("a", 1), 5).advance_watermark(19)
    assert sorted(windows.output()) == [
        ("a", 0, 1, 1, 9, 77),
        ("a", 0, 2, 2, 9, 77),
        ("a", 10, 1, 3, 19, 77),
        ("b", 0, 1, 1, 9, 77),
    ]
    windows.advance_watermark(200)
    assert sorted(windows.function.wrapped_function.cleared) == [(0, 1), (0, 2), (10, 1)]


def test_windows_that_merge_have_no_state_of_their_own() -> None:
    windows = harness(lambda s: s.window(EventTimeSessionWindows.with_gap(5)).process(States()))
    windows.push(("a", 1), 1)
    with pytest.raises(StateAccessError, match="Windows that merge cannot"):
        windows.advance_watermark(100)


class Own(AggregateFunction):
    """An aggregate whose result is the accumulator itself."""

    def create_accumulator(self) -> list[int]:
        return []

    def add(self, value: Any, accumulator: list[int]) -> list[int]:
        accumulator.append(value[1])
        return accumulator

    def get_result(self, accumulator: list[int]) -> list[int]:
        return accumulator

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        return acc_a + acc_b


class Spoil(WindowFunction):
    """Changes what it is given."""

    def apply(self, key: str, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        (rows,) = inputs
        yield list(rows)
        rows.append(-1)


@pytest.mark.parametrize("merging", [False, True])
def test_results_are_not_the_accumulator(merging: bool) -> None:
    assigner: Any = EventTimeSessionWindows.with_gap(10) if merging else TEN
    for function in (None, Spoil()):
        windows = harness(lambda s, f=function: s.window(assigner).trigger(CountTrigger.of(1)).aggregate(Own(), f))
        windows.push_all([("a", 1), ("a", 2), ("a", 3)], [1, 2, 3])
        assert windows.output() == [[1], [1, 2], [1, 2, 3]]


def test_rows_that_a_reduce_changes_are_copies() -> None:
    def add(one: Row, other: Row) -> Row:
        one[1] += other[1]
        return one

    row = Types.ROW([Types.STRING(), Types.LONG()])
    windows = harness(lambda s: s.window(SlidingEventTimeWindows.of(10, 5)).reduce(add), input_type=row)
    windows.push_all([Row("a", 1), Row("a", 2)], [6, 7]).end_input()
    assert [tuple(one) for one in windows.output()] == [("a", 3), ("a", 3)]


# -- the clock


def test_windows_by_the_clock() -> None:
    by_the_clock = TumblingProcessingTimeWindows.of(10)
    windows = harness(lambda s: s.window(by_the_clock).process(SumRows()), clock=ManualClock(100))
    windows.push_all([("a", 1), ("b", 5)]).advance_processing_time(5).push(("a", 2)).end_epoch().forget_live_objects()
    windows.advance_processing_time(3)
    assert windows.output() == [] and windows.num_processing_time_timers() == 2
    windows.advance_processing_time(1)
    assert sorted(windows.output()) == [("a", 100, 110, 3), ("b", 100, 110, 5)]
    assert windows.num_processing_time_timers() == 0


def test_sessions_by_the_clock() -> None:
    sessions = ProcessingTimeSessionWindows.with_gap(10)
    windows = harness(lambda s: s.window(sessions).process(SumRows()), clock=ManualClock(0))
    for step in (0, 6, 6, 30):
        windows.advance_processing_time(step).push(("a", step + 1)).end_epoch()
    assert windows.output() == [("a", 0, 22, 15)]
    windows.advance_processing_time(9)
    assert windows.output()[1:] == [("a", 42, 52, 31)]


def test_by_the_clock_no_row_is_late_for_the_session_of_its_batch() -> None:
    sessions = ProcessingTimeSessionWindows.with_gap(1)
    windows = harness(lambda s: s.window(sessions).process(SumRows()), clock=ManualClock(5))
    windows.push_all([("a", 1), ("a", 2), ("b", 4)]).advance_processing_time(1)
    assert sorted(windows.output()) == [("a", 5, 6, 3), ("b", 5, 6, 4)]


# -- programs that change


def changed(before: Any, after: Any) -> KeyedOperatorHarness:
    """What goes on from a window that has one row, of 1 at 3 ms."""
    windows = harness(before)
    windows.push(("a", 1), 3)
    made = {"input_type": PAIR, "operation": lambda stream, _: after(stream)}
    return KeyedOperatorHarness.restore(windows.snapshot(), None, lambda row: row[0], Types.STRING(), **made)


def test_other_windows_and_lateness_at_a_restore() -> None:
    twenty = TumblingEventTimeWindows.of(20)
    restored = changed(
        lambda s: s.window(TEN).reduce(AddPairs()), lambda s: s.window(twenty).allowed_lateness(5).reduce(AddPairs())
    )
    restored.push(("a", 2), 4).advance_watermark(9)
    assert restored.take_output() == [("a", 1)]
    restored.end_input()
    assert restored.take_output() == [("a", 2)]
    less = changed(
        lambda s: s.window(TEN).allowed_lateness(50).reduce(AddPairs()), lambda s: s.window(TEN).reduce(AddPairs())
    )
    less.advance_watermark(9)
    assert less.take_output() == [("a", 1)] and stored_entries(less.advance_watermark(59)) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (lambda s: s.window(TEN).reduce(AddPairs()), lambda s: s.window(TEN).process(SumRows())),
        (
            lambda s: s.window(TEN).reduce(AddPairs()),
            lambda s: s.window(EventTimeSessionWindows.with_gap(5)).reduce(AddPairs()),
        ),
        (
            lambda s: s.window(EventTimeSessionWindows.with_gap(5)).reduce(AddPairs()),
            lambda s: s.window(TEN).reduce(AddPairs()),
        ),
        (lambda s: s.window(TEN).reduce(AddPairs()), lambda s: s.count_window(5).reduce(AddPairs())),
    ],
)
def test_changes_that_stored_windows_do_not_allow(before: Any, after: Any) -> None:
    with pytest.raises(StateMigrationError):
        changed(before, after).open()


# -- refused


def test_rows_without_times() -> None:
    windows = harness(lambda s: s.window(TEN).reduce(AddPairs()), event_time=False)
    with pytest.raises(ProgramError, match="assign_timestamps_and_watermarks"):
        windows.push(("a", 1))


class Broken(ProcessWindowFunction):
    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        raise ValueError("broken")


def test_an_error_names_the_key_and_the_timer() -> None:
    windows = harness(lambda s: s.window(TEN).process(Broken()).name("broken windows"))
    windows.push(("a", 1), 1)
    with pytest.raises(FunctionError, match=r"broken windows.*key 'a'.*ValueError: broken.*timer at 9"):
        windows.advance_watermark(9)


class NotMerging(EventTimeTrigger):
    def can_merge(self) -> bool:
        return False


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (lambda s: s.window("no assigner"), "takes a window assigner"),
        (lambda s: s.window(TEN).trigger("no trigger"), "takes a Trigger"),
        (lambda s: s.window(EventTimeSessionWindows.with_gap(5)).trigger(NotMerging()), "can_merge"),
        (lambda s: s.window(TEN).evictor(7), "takes an Evictor"),
        (lambda s: s.window(TEN).side_output_late_data("late"), "takes an OutputTag"),
        (lambda s: s.window(TEN).process(lambda *_: None), "take a ProcessWindowFunction"),
        (lambda s: s.window(TEN).process(AddPairs()), "take a ProcessWindowFunction"),
        (lambda s: s.window(TEN).apply(SumRows()), "take a WindowFunction"),
        (lambda s: s.window(TEN).reduce(3), "takes a ReduceFunction"),
        (lambda s: s.window(TEN).aggregate(AddPairs()), "takes an AggregateFunction"),
        (lambda s: DataStream.window_all(s, TEN).process(SumRows()), "take a ProcessAllWindowFunction"),
    ],
)
def test_what_windows_refuse(operation: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        harness(operation)


def test_late_data_by_the_clock_is_refused() -> None:
    by_the_clock = TumblingProcessingTimeWindows.of(10)
    with pytest.raises(ProgramError, match="no row is late"):
        harness(lambda s: s.window(by_the_clock).side_output_late_data(LATE).reduce(AddPairs()))
