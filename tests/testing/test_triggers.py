"""When windows fire: the triggers that there are, and one of a program's own, over epochs and merges."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from holdfast.common import Types
from holdfast.datastream.state import ListStateDescriptor, ValueStateDescriptor
from holdfast.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    MergingWindowAssigner,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    TimeWindow,
    TimeWindowSerializer,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from holdfast.errors import ProgramError, StateAccessError
from holdfast.testing import KeyedOperatorHarness, ManualClock
from tests.testing.window_functions import PAIR, AddPairs, SumRows

TEN = TumblingEventTimeWindows.of(10)
SESSIONS = EventTimeSessionWindows.with_gap(10)


def sums(assigner: Any, trigger: Any, **options: Any) -> KeyedOperatorHarness:
    return KeyedOperatorHarness(
        None,
        lambda row: row[0],
        Types.STRING(),
        operation=lambda stream, _: stream.window(assigner).trigger(trigger).process(SumRows()),
        **{"input_type": PAIR, **options},
    )


def test_results() -> None:
    table = [(result.is_fire(), result.is_purge()) for result in TriggerResult]
    assert table == [(False, False), (True, True), (True, False), (False, True)]


def values(windows: KeyedOperatorHarness) -> list[Any]:
    return [row[-1] for row in windows.take_output()]


@pytest.mark.parametrize("assigner", [TEN, SESSIONS])
def test_counts(assigner: Any) -> None:
    windows = sums(assigner, CountTrigger.of(2))
    windows.push_all([("a", 1), ("a", 2), ("a", 4)], [1, 2, 3]).end_epoch().forget_live_objects()
    windows.push(("a", 8), 4)
    assert values(windows) == [3, 15]
    windows.end_input()
    assert values(windows) == []


def test_counts_of_sessions_that_become_one() -> None:
    windows = sums(SESSIONS, CountTrigger.of(3))
    windows.push_all([("a", 1), ("a", 2)], [1, 20]).end_epoch().forget_live_objects()
    windows.push(("a", 4), 11)
    assert windows.output() == [("a", 1, 30, 7)]


def test_purging() -> None:
    windows = sums(TEN, PurgingTrigger.of(CountTrigger.of(2)))
    windows.push_all([("a", 1), ("a", 2), ("a", 4), ("a", 8), ("a", 16)], [1, 2, 3, 4, 5])
    assert values(windows) == [3, 12]
    windows.advance_watermark(9)
    assert values(windows) == [] and windows.num_event_time_timers() == 0


def test_never() -> None:
    windows = sums(GlobalWindows.create(), NeverTrigger())
    windows.push_all([("a", 1), ("a", 2)], [1, 2]).end_input()
    assert windows.output() == []


def test_a_global_window_ends_with_the_input() -> None:
    windows = KeyedOperatorHarness(
        None,
        lambda row: row[0],
        Types.STRING(),
        operation=lambda s, _: s.window(GlobalWindows.create()).trigger(EventTimeTrigger.create()).reduce(AddPairs()),
        input_type=PAIR,
    )
    windows.push_all([("a", 1), ("a", 2)], [1, 2]).end_epoch().end_input()
    assert windows.output() == [("a", 3)]


def test_again_and_again_by_event_time() -> None:
    windows = sums(TumblingEventTimeWindows.of(100), ContinuousEventTimeTrigger.of(30))
    windows.push(("a", 1), 5).advance_watermark(29)
    assert values(windows) == []
    windows.advance_watermark(30).push(("a", 2), 40).end_epoch().forget_live_objects().advance_watermark(65)
    assert values(windows) == [1, 3]
    windows.advance_watermark(200)
    assert values(windows) == [3, 3] and windows.num_event_time_timers() == 0


def test_again_and_again_in_sessions() -> None:
    windows = sums(EventTimeSessionWindows.with_gap(50), ContinuousEventTimeTrigger.of(20))
    windows.push_all([("a", 1), ("a", 2)], [5, 100]).end_epoch().push(("a", 4), 52).advance_watermark(39)
    assert windows.take_output() == [("a", 5, 150, 7)]
    windows.end_input()
    assert {row[:3] for row in windows.output()} == {("a", 5, 150)} and windows.num_event_time_timers() == 0


def test_again_and_again_by_the_clock() -> None:
    windows = sums(
        TumblingProcessingTimeWindows.of(100), ContinuousProcessingTimeTrigger.of(30), clock=ManualClock(1_000)
    )
    windows.push(("a", 1)).advance_processing_time(20).push(("a", 2))
    assert values(windows) == [1]
    windows.advance_processing_time(79)
    assert values(windows) == [3, 3, 3] and windows.num_processing_time_timers() == 0


def test_a_window_without_end_does_not_fire_for_ever() -> None:
    windows = KeyedOperatorHarness(
        None,
        lambda row: row[0],
        Types.STRING(),
        operation=lambda s, _: s.window(GlobalWindows.create())
        .trigger(ContinuousEventTimeTrigger.of(10))
        .reduce(AddPairs()),
        input_type=PAIR,
    )
    windows.push_all([("a", 1), ("a", 2)], [1, 12]).advance_watermark(12)
    assert windows.take_output() == [("a", 3)]
    windows.end_input()
    assert windows.take_output() == [("a", 3), ("a", 3)]


def test_by_the_clock_in_windows_by_event_time() -> None:
    windows = sums(TEN, ProcessingTimeTrigger.create(), clock=ManualClock(5))
    windows.push(("a", 1), 5).advance_processing_time(4)
    assert values(windows) == [1]
    # The window goes with the watermark, and does not fire then.
    windows.advance_watermark(9)
    assert values(windows) == [] and windows.num_event_time_timers() == 0


class Sevens(Trigger):
    """Fires for every row that is a multiple of 7, and by a timer 3 ms behind the first row, whose time it keeps."""

    times = ListStateDescriptor("times", Types.LONG())

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        times = ctx.get_partitioned_state(self.times)
        times.add(timestamp)
        ctx.register_event_time_timer(min(times.get()) + 3)
        return TriggerResult.FIRE if element[1] % 7 == 0 else TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        due = min(ctx.get_partitioned_state(self.times).get(), default=None)
        return TriggerResult.FIRE if due is not None and time == due + 3 else TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(self.times)
        ctx.register_event_time_timer(min(ctx.get_partitioned_state(self.times).get()) + 3)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        for time in ctx.get_partitioned_state(self.times).get():
            ctx.delete_event_time_timer(time + 3)
        ctx.get_partitioned_state(self.times).clear()


def test_a_trigger_of_ones_own() -> None:
    windows = sums(SESSIONS, Sevens())
    windows.push_all([("a", 1), ("a", 2)], [20, 35]).end_epoch().forget_live_objects()
    windows.push(("a", 14), 28)
    assert windows.take_output() == [("a", 20, 45, 17)]
    snapshot = windows.snapshot()
    restored = KeyedOperatorHarness.restore(
        snapshot,
        None,
        lambda row: row[0],
        Types.STRING(),
        operation=lambda stream, _: stream.window(SESSIONS).trigger(Sevens()).process(SumRows()),
        input_type=PAIR,
    )
    restored.advance_watermark(23)
    assert restored.take_output() == [("a", 20, 45, 17)]
    restored.end_input()
    assert restored.take_output() == [] and restored.num_event_time_timers() == 0


class MergesAValue(Sevens):
    value = ValueStateDescriptor("value", Types.LONG())

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(self.value)


def test_state_that_cannot_be_merged() -> None:
    windows = sums(SESSIONS, MergesAValue())
    windows.push(("a", 1), 20)
    with pytest.raises(StateAccessError, match="Only list, reducing and aggregating state"):
        windows.push(("a", 2), 25)


class Shrinking(MergingWindowAssigner):
    """Against the contract: two windows merge into one that has ended."""

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> list[TimeWindow]:
        return [TimeWindow(timestamp, timestamp + 100)]

    def merge_windows(self, windows: Iterable[TimeWindow], callback: Any) -> None:
        if len(list(windows)) > 1:
            callback.merge(windows, TimeWindow(0, 10))

    def get_default_trigger(self, env: Any) -> Any:
        return EventTimeTrigger()

    def get_window_serializer(self) -> Any:
        return TimeWindowSerializer()

    def is_event_time(self) -> bool:
        return True


def test_windows_must_not_be_merged_into_the_past() -> None:
    windows = sums(Shrinking(), EventTimeTrigger())
    windows.advance_watermark(50).push(("a", 1), 50)
    with pytest.raises(ProgramError, match="must not go back"):
        windows.push(("a", 1), 60)
