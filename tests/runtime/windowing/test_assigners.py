"""Which windows rows are in."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.common import Duration, Time
from holdfast.datastream.window import (
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindow,
    GlobalWindows,
    MergingWindowAssigner,
    NeverTrigger,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    PurgingTrigger,
    SessionWindowTimeGapExtractor,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from holdfast.errors import ProgramError
from holdfast.runtime.windowing.assigner_context import WindowAssignerContext


class OneValue:
    """Keyed state of one key."""

    def __init__(self) -> None:
        self.stored: Any = None

    def get_state(self, descriptor: Any) -> Any:
        return self

    def value(self) -> Any:
        return self.stored

    def update(self, value: Any) -> None:
        self.stored = value


def at(processing_time: int = 0) -> WindowAssignerContext:
    context = WindowAssignerContext(OneValue())  # type: ignore[arg-type]  # all that is asked
    context.processing_time = processing_time
    return context


@given(st.integers(-(1 << 45), 1 << 45), st.integers(1, 500), st.integers(1, 500), st.data())
def test_sliding_windows_are_all_that_cover_a_time(timestamp: int, size: int, slide: int, data: st.DataObject) -> None:
    offset = data.draw(st.integers(-slide + 1, slide - 1))
    assigner: Any = SlidingEventTimeWindows(size, slide, offset)
    first = (timestamp - size - offset) // slide * slide + offset
    expected = {
        TimeWindow(start, start + size)
        for start in range(first, timestamp + slide, slide)
        if start <= timestamp < start + size
    }
    for _ in range(2):
        found = list(assigner.assign_windows(None, timestamp, at()))
        assert set(found) == expected and len(found) == len(expected)
        assert found == sorted(found, reverse=True)


@given(st.lists(st.integers(-1000, 1000), min_size=1), st.integers(1, 60), st.integers(1, 60))
def test_windows_do_not_depend_on_the_rows_before(times: list[int], size: int, slide: int) -> None:
    assigner: Any = SlidingEventTimeWindows(size, slide, 0)
    for time in times:
        fresh: Any = SlidingEventTimeWindows(size, slide, 0)
        assert list(assigner.assign_windows(None, time, at())) == list(fresh.assign_windows(None, time, at()))


@given(st.integers(-(1 << 45), 1 << 45), st.integers(1, 500), st.data())
def test_a_time_is_in_one_tumbling_window(timestamp: int, size: int, data: st.DataObject) -> None:
    offset = data.draw(st.integers(-size + 1, size - 1))
    assigner: Any = TumblingEventTimeWindows(size, offset)
    (window,) = assigner.assign_windows(None, timestamp, at())
    assert window.start <= timestamp < window.end
    assert window.end - window.start == size and (window.start - offset) % size == 0


def test_lengths_of_time() -> None:
    for size in (Time.seconds(10), Duration.of_seconds(10), 10_000):
        assert repr(TumblingEventTimeWindows.of(size)) == "TumblingEventTimeWindows(10000, 0)"
    shifted: Any = TumblingEventTimeWindows.of(Time.days(1), Time.hours(-8))
    (day,) = shifted.assign_windows(None, 0, at())
    assert day == TimeWindow(-8 * 3_600_000, 16 * 3_600_000)


def test_the_clock() -> None:
    tumbling: Any = TumblingProcessingTimeWindows.of(10)
    sliding: Any = SlidingProcessingTimeWindows.of(10, 5)
    session: Any = ProcessingTimeSessionWindows.with_gap(7)
    dynamic: Any = DynamicProcessingTimeSessionWindows.with_dynamic_gap(lambda row: row)
    assert list(tumbling.assign_windows(3, 99, at(12))) == [TimeWindow(10, 20)]
    assert list(sliding.assign_windows(3, 99, at(12))) == [TimeWindow(10, 20), TimeWindow(5, 15)]
    assert list(session.assign_windows(3, 99, at(12))) == [TimeWindow(12, 19)]
    assert list(dynamic.assign_windows(3, 99, at(12))) == [TimeWindow(12, 15)]
    assert not any(a.is_event_time() for a in (tumbling, sliding, session, dynamic))
    assert all(isinstance(a.get_default_trigger(None), ProcessingTimeTrigger) for a in (tumbling, session))


class Gap(SessionWindowTimeGapExtractor):
    def extract(self, element: Any) -> int:
        return int(element[1])


def test_sessions() -> None:
    fixed: Any = EventTimeSessionWindows.with_gap(Time.milliseconds(5))
    dynamic: Any = EventTimeSessionWindows.with_dynamic_gap(Gap())
    assert list(fixed.assign_windows(("a", 3), 10, at())) == [TimeWindow(10, 15)]
    assert list(dynamic.assign_windows(("a", 3), 10, at())) == [TimeWindow(10, 13)]
    assert isinstance(dynamic, DynamicEventTimeSessionWindows) and isinstance(dynamic, MergingWindowAssigner)
    assert isinstance(fixed.get_default_trigger(None), EventTimeTrigger) and fixed.is_event_time()
    with pytest.raises(ProgramError, match="above 0"):
        dynamic.assign_windows(("a", 0), 10, at())


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 60))
def test_count_windows_have_their_rows(size: int, slide: int, rows: int) -> None:
    assigner: Any = CountSlidingWindowAssigner(size, slide)
    context = at()
    assigner.open(context)
    members: dict[int, list[int]] = {}
    for row in range(rows):
        for window in assigner.assign_windows(row, None, context):
            members.setdefault(window.id, []).append(row)
    expected = {
        number: [row for row in range(number * slide, number * slide + size) if row < rows]
        for number in range(rows)
        if number * slide < rows
    }
    assert members == expected


def test_count_and_global_windows() -> None:
    tumbling: Any = CountTumblingWindowAssigner.of(2)
    context = at()
    tumbling.open(context)
    assert [tumbling.assign_windows(row, None, context)[0].id for row in range(5)] == [0, 0, 1, 1, 2]
    trigger = tumbling.get_default_trigger(None)
    assert isinstance(trigger, PurgingTrigger) and isinstance(trigger.nested_trigger, CountTrigger)
    everything: Any = GlobalWindows.create()
    assert list(everything.assign_windows(1, None, context)) == [GlobalWindow()]
    assert isinstance(everything.get_default_trigger(None), NeverTrigger)


@pytest.mark.parametrize(
    "make",
    [
        lambda: TumblingEventTimeWindows.of(0),
        lambda: TumblingEventTimeWindows.of(10, 10),
        lambda: SlidingEventTimeWindows.of(10, 0),
        lambda: SlidingProcessingTimeWindows.of(10, 5, -5),
        lambda: EventTimeSessionWindows.with_gap(0),
        lambda: EventTimeSessionWindows.with_dynamic_gap("no function"),
        lambda: CountTumblingWindowAssigner.of(0),
        lambda: CountSlidingWindowAssigner.of(3, -1),
        lambda: CountTrigger.of(0),
    ],
)
def test_what_makes_no_windows_is_refused(make: Any) -> None:
    with pytest.raises(ProgramError, match=r"above 0|smaller than|function of the row"):
        make()
