"""Aggregates that need the times of rows, or that columns do not fold, in windows of every kind: results are those of
the rows, whatever way these take.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.common import Row
from holdfast.datastream import OutputTag
from holdfast.datastream.aggregates import Average, Count, Earliest, Latest, Variance
from holdfast.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    PurgingTrigger,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from holdfast.errors import ProgramError
from holdfast.runtime.row_path import RowPath, RowsBy
from tests.kit.properties import examples
from tests.testing.test_windows_by_column import (
    LATE,
    SALE,
    WINDOWS,
    Windows,
    columns,
    harness,
    node,
    stories,
    timed,
    way,
)
from tests.testing.window_oracle import RowOracle, Window
from tests.testing.window_stories import Step, Story

IN_TIME: dict[str, Any] = {
    "rows": Count(),
    "opening": Earliest("price"),
    "closing": Latest("price"),
    "lightest": Earliest("weight"),
    "heaviest": Latest("weight"),
    "shop_of_the_last": Latest("shop"),
}
#: A row and its time.
Timed = tuple[Row, int]


def at_the_end(rows: list[Timed], place: int, latest: bool) -> Any:
    """The least or the greatest number among the values at the least or the greatest time."""
    there = [(time, row[place]) for row, time in rows if row[place] is not None]
    if not there:
        return None
    end = (max if latest else min)(time for time, _ in there)
    values = [value for time, value in there if time == end]
    numbers = [value for value in values if value == value]
    best = (max if latest else min)(numbers) if numbers else math.nan
    return best + 0.0 if isinstance(best, float) else best


class TimedOracle(RowOracle):
    def result_of(self, key: Any, window: Window, rows: list[Timed]) -> tuple[Any, ...]:
        ends = [at_the_end(rows, place, latest) for place in (2, 3) for latest in (False, True)]
        return (*key, *window, len(rows), *ends, at_the_end(rows, 0, True))


def options(windows: Windows, side_output: bool) -> dict[str, Any]:
    """Without a side output for late rows, and without lateness, rows are combined on their way."""

    def operation(stream: Any, _: Any) -> Any:
        windowed = stream.window(windows.assigner()).allowed_lateness(windows.lateness)
        return (windowed.side_output_late_data(LATE) if side_output else windowed).aggregate(**IN_TIME)

    return {"function": None, "key_selector": "shop", "operation": operation, "input_type": SALE, "backend": "heap"}


def texts(rows: list[Any]) -> list[str]:
    return sorted(map(repr, rows))


@settings(max_examples=examples(60), deadline=None)
@given(windows=WINDOWS, steps=stories(), side_output=st.booleans())
def test_values_in_time_by_column_and_by_row(windows: Windows, steps: list[Step], side_output: bool) -> None:
    oracle = TimedOracle(windows.of, lateness=windows.lateness)
    for step in steps:
        for row, time, watermark in step.rows:
            oracle.advance(watermark)
            oracle.push_row((row, time), (row[0],), time)
    oracle.advance((1 << 63) - 1)
    with columns(used=False) as path:
        looped, late = Story(LATE, row_path=path, **options(windows, side_output)).run(steps)
    with columns(used=True) as path:
        by_columns, late_by_columns = Story(LATE, row_path=path, **options(windows, side_output)).run(steps)
    assert texts([row for row, _ in looped]) == texts(oracle.fired)
    assert timed(by_columns) == timed(looped)
    assert list(map(repr, late_by_columns)) == list(map(repr, late))
    assert texts(late) == texts([tuple(row) for row, _ in oracle.late] if side_output else [])


def sale(shop: str, price: int | None) -> Row:
    return Row(shop, 1, price, None)


SALES = [sale("a", 1), sale("a", 2), sale("b", None), sale("a", 4), sale("a", 7)]
TIMES = [4, 1, 2, 20, 20]

#: Windows of every kind, and the first and the last price of the sales above.
KINDS: dict[str, tuple[Callable[[Any], Any], list[tuple[Any, ...]]]] = {
    "tumbling": (
        lambda s: s.window(TumblingEventTimeWindows.of(10)),
        [("a", 0, 10, 2, 1), ("a", 20, 30, 4, 7), ("b", 0, 10, None, None)],
    ),
    "late rows aside": (
        lambda s: s.window(TumblingEventTimeWindows.of(10)).side_output_late_data(OutputTag("late", SALE)),
        [("a", 0, 10, 2, 1), ("a", 20, 30, 4, 7), ("b", 0, 10, None, None)],
    ),
    "sessions": (
        lambda s: s.window(EventTimeSessionWindows.with_gap(5)),
        [("a", 1, 9, 2, 1), ("a", 20, 25, 4, 7), ("b", 2, 7, None, None)],
    ),
    "count": (lambda s: s.count_window(2), [("a", 2, 1), ("a", 4, 7)]),
    "trigger": (
        lambda s: s.window(TumblingEventTimeWindows.of(10)).trigger(PurgingTrigger.of(CountTrigger.of(2))),
        [("a", 0, 10, 2, 1), ("a", 20, 30, 4, 7)],
    ),
    "evictor": (
        lambda s: s.window(TumblingEventTimeWindows.of(10)).evictor(CountEvictor.of(1)),
        [("a", 0, 10, 2, 2), ("a", 20, 30, 7, 7), ("b", 0, 10, None, None)],
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_values_in_time_of_every_kind_of_windows(kind: str) -> None:
    windows, expected = KINDS[kind]
    made = harness(lambda stream: windows(stream).aggregate(first=Earliest("price"), last=Latest("price")))
    made.push_all(SALES, TIMES)
    restored = made.restored().end_input()
    assert texts(list(map(tuple, [*made.output(), *restored.output()]))) == texts(expected)
    restored.close()


@pytest.mark.parametrize("kind", ["tumbling", "late rows aside"])
def test_values_in_time_by_column(kind: str) -> None:
    windows, expected = KINDS[kind]
    with columns(used=True) as path:
        aggregates = {"first": Earliest("price"), "last": Latest("price")}
        with harness(lambda s: windows(s).aggregate(**aggregates), row_path=path) as made:
            made.push_all(SALES, TIMES).end_input()
            assert texts(list(map(tuple, made.output()))) == texts(expected)


def test_windows_of_processing_time_have_rows_with_event_times() -> None:
    windows = TumblingProcessingTimeWindows.of(10)
    made = harness(lambda s: s.window(windows).aggregate(first=Earliest("price"), last=Latest("price")))
    with made:
        made.push_all(SALES, TIMES).advance_processing_time(30)
        assert sorted(map(tuple, made.output())) == [("a", 0, 10, 2, 7), ("b", 0, 10, None, None)]


@pytest.mark.parametrize("kind", ["tumbling", "sessions", "evictor"])
def test_variances_of_windows(kind: str) -> None:
    windows, expected = KINDS[kind]
    made = harness(lambda s: windows(s).aggregate(spread=Variance("price"), all=Variance("price", population=True)))
    with made:
        made.push_all(SALES, TIMES).end_input()
        found = {tuple(row)[:3]: tuple(row)[3:] for row in made.output()}
    prices = {} if kind == "evictor" else {("a", expected[0][1]): [1, 2], ("a", expected[1][1]): [4, 7]}
    for (shop, start, _), results in found.items():
        some = prices.get((shop, start))
        if some is not None:
            assert results == pytest.approx((statistics.variance(some), statistics.pvariance(some)))
        else:
            assert results == ((None, None) if shop == "b" else (None, 0.0))
    assert len(found) == 3


def test_which_way_the_rows_take() -> None:
    hours, sessions = TumblingEventTimeWindows.of(10), EventTimeSessionWindows.with_gap(5)

    def of(windows: Any, told: RowsBy | None = None, **aggregates: Any) -> Callable[[Any], Any]:
        def make(stream: Any) -> Any:
            stream.get_execution_environment().row_path = RowPath(told)
            return timed_stream(stream).window(windows).aggregate(**aggregates)

        return make

    by_column = of(hours, last=Latest("price"))
    assert way(by_column) is RowsBy.COLUMN
    assert node(by_column).inputs[0].combine is not None, "pairs of a time and a value have no order"
    assert way(of(hours, spread=Variance("price"))) is RowsBy.BATCH
    assert way(of(sessions, last=Latest("price"))) is RowsBy.ONE
    assert way(of(sessions, spread=Variance("price"))) is RowsBy.SESSION
    both = {"last": Latest("price"), "spread": Variance("price")}
    for windows in (hours, sessions):
        assert way(of(windows, **both)) is RowsBy.ONE, "rows of a batch come without their times"
    for refused in (RowsBy.BATCH, RowsBy.SESSION):
        with pytest.raises(ProgramError, match="told to go"):
            way(of(hours, refused, last=Latest("price"), spread=Variance("price")))


def timed_stream(keyed: Any) -> Any:
    """With event times behind the key's."""
    keyed._node.event_time = True
    return keyed


@pytest.mark.parametrize("windows", [lambda s: s, lambda s: s.window(TumblingProcessingTimeWindows.of(10))])
def test_without_event_times_they_are_refused(windows: Callable[[Any], Any]) -> None:
    with pytest.raises(ProgramError, match=r"latest\(price\) needs the event times.*assign_timestamps_and_watermarks"):
        node(lambda stream: windows(stream).aggregate(last=Latest("price")))


def test_what_has_no_order_is_refused() -> None:
    with pytest.raises(ProgramError, match=r"Latest\('none'\): the rows have no such field"):
        node(lambda stream: timed_stream(stream).aggregate(last=Latest("none")))
    for refused in (Variance, Average):
        with pytest.raises(ProgramError, match=r"\('shop'\) is for numbers"):
            node(lambda stream: stream.aggregate(spread=refused("shop")))  # noqa: B023  # called at once
