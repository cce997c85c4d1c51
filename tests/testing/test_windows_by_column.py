"""Known aggregates of windows: by column they give what the loop over rows gives, and both what the rows say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from functools import reduce
from operator import add
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.common import Row, Types
from holdfast.datastream import OutputTag, StreamExecutionEnvironment
from holdfast.datastream.aggregates import Average, Count, Max, Min, Sum
from holdfast.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from holdfast.errors import FunctionError, ProgramError
from holdfast.runtime.local_aggregation import Panes
from holdfast.runtime.row_path import RowPath, RowsBy
from holdfast.runtime.windowing.row_taker import OneByOne
from holdfast.runtime.windowing.ways import way_of
from holdfast.testing import KeyedOperatorHarness, OperatorHarness
from tests.kit.properties import examples
from tests.testing.window_oracle import RowOracle, Window
from tests.testing.window_stories import LARGE_CACHE, Step, Story, caches_of, limits_of

SALE = Types.ROW_NAMED(["shop", "till", "price", "weight"], [Types.STRING(), Types.INT(), Types.LONG(), Types.DOUBLE()])
LATE = OutputTag("late", SALE)
AGGREGATES: dict[str, Any] = {
    "rows": Count(),
    "priced": Count("price"),
    "total": Sum("price"),
    "least": Min("price"),
    "most": Max("price"),
    "mean": Average("price"),
    "load": Sum("weight"),
    "lightest": Min("weight"),
    "heaviest": Max("weight"),
}


def extreme(best: Callable[..., Any], values: list[Any]) -> Any:
    numbers = [value + 0 for value in values if value == value]
    return best(numbers) if numbers else values[0] if values else None


def expected(rows: list[Row]) -> list[Any]:
    prices, weights = ([row[place] for row in rows if row[place] is not None] for place in (2, 3))
    total = sum(prices) if prices else None
    mean = None if total is None else float(total) / len(prices)
    load = reduce(add, weights) if weights else None
    of_prices = [len(rows), len(prices), total, extreme(min, prices), extreme(max, prices), mean]
    return [*of_prices, load, extreme(min, weights), extreme(max, weights)]


class SalesOracle(RowOracle):
    def result_of(self, key: Any, window: Window, rows: list[Row]) -> tuple[Any, ...]:
        return (*key, *window, *expected(rows))


def tell(oracle: RowOracle, steps: list[Step], keys: int) -> None:
    """All that happens; so many fields of a row are its key."""
    for step in steps:
        for row, time, watermark in step.rows:
            oracle.advance(watermark)
            oracle.push_row(row, tuple(row[:keys]), time)
    oracle.advance((1 << 63) - 1)


@dataclass(frozen=True)
class Windows:
    """Windows by event time."""

    size: int
    slide: int
    offset: int
    lateness: int

    def assigner(self) -> Any:
        if self.size == self.slide:
            return TumblingEventTimeWindows.of(self.size, self.offset)
        return SlidingEventTimeWindows.of(self.size, self.slide, self.offset)

    def of(self, time: int) -> list[Window]:
        latest = (time - self.offset) // self.slide * self.slide + self.offset
        starts = range(latest, time - self.size, -self.slide)
        return [(start, start + self.size) for start in starts]


def options(windows: Windows, key: list[str], backend: str) -> dict[str, Any]:
    def operation(stream: Any, _: Any) -> Any:
        windowed = stream.window(windows.assigner()).allowed_lateness(windows.lateness).side_output_late_data(LATE)
        return windowed.aggregate(**AGGREGATES)

    return {
        "function": None,
        "key_selector": key,
        "operation": operation,
        "input_type": SALE,
        "backend": backend,
    }


@contextmanager
def columns(used: bool, cache: int = LARGE_CACHE) -> Iterator[RowPath]:
    """The path of rows that are all taken by column, or one by one."""
    with caches_of(cache) as patch:
        if used:
            patch.setattr(OneByOne, "take", refuse)
            # Windows of one key fire one by one.
            yield RowPath(RowsBy.COLUMN, least_rows=1, least_timers=2, **limits_of(cache))
        else:
            yield RowPath(RowsBy.ONE)


def refuse(*_: Any) -> None:
    raise AssertionError("a batch went through the loop")


PRICES = st.none() | st.integers(-50, 50)
WEIGHTS = st.none() | st.sampled_from([float("nan"), 0.0, -0.0]) | st.floats(-1e6, 1e6)
SALES = st.builds(Row, st.sampled_from(["a", "b", "ü"]), st.none() | st.integers(0, 1), PRICES, WEIGHTS)
WINDOWS = st.builds(
    lambda size, slide, offset, lateness: Windows(size, slide or size, offset % (slide or size), lateness),
    st.integers(1, 12),
    st.none() | st.integers(1, 15),
    st.integers(0, 20),
    st.sampled_from([0, 0, 1, 7]),
)


@st.composite
def stories(draw: Any) -> list[Step]:
    now, steps = draw(st.integers(-60, 20)), []
    for _ in range(draw(st.integers(1, 4))):
        rows = []
        for sale, time, ahead in draw(
            st.lists(st.tuples(SALES, st.integers(-25, 12), st.sampled_from([0, 0, 1, 5, 20])), min_size=1, max_size=12)
        ):
            now += ahead
            rows.append((sale, now + time, now))
        steps.append(Step(rows, draw(st.sampled_from(["go_on", "wait", "epoch", "another_worker", "rescale"]))))
    return steps


def texts(rows: list[Any]) -> list[str]:
    return sorted(map(repr, rows))


def timed(out: list[Any]) -> list[tuple[str, int]]:
    """What came out, with its times alone."""
    return [(repr(row), time) for row, (time, _) in out]


@pytest.mark.parametrize("backend", ["heap", "lmdb", "rocksdb"])
@pytest.mark.parametrize("key", [["shop"], ["shop", "till"]], ids=["one", "two"])
def test_columns_give_what_the_loop_and_the_rows_give(backend: str, key: list[str]) -> None:
    @settings(max_examples=examples(40 if backend == "heap" else 6), deadline=None)
    @given(windows=WINDOWS, steps=stories(), cache=st.sampled_from([2, 500_000]))
    def check(windows: Windows, steps: list[Step], cache: int) -> None:
        oracle = SalesOracle(windows.of, lateness=windows.lateness)
        tell(oracle, steps, len(key))
        with columns(used=False) as path:
            looped, late = Story(LATE, row_path=path, **options(windows, key, backend)).run(steps)
        with columns(used=True, cache=cache) as path:
            by_columns, late_by_columns = Story(LATE, row_path=path, **options(windows, key, backend)).run(steps)
        with columns(used=False):
            path = RowPath(RowsBy.BATCH, least_rows=1, **limits_of(cache))
            batched = Story(LATE, row_path=path, **options(windows, key, backend)).run(steps)
        assert list(map(repr, batched[0])) == list(map(repr, looped))
        assert list(map(repr, batched[1])) == list(map(repr, late))
        assert list(map(repr, by_columns)) == list(map(repr, looped))
        assert list(map(repr, late_by_columns)) == list(map(repr, late))
        assert texts([row for row, _ in looped]) == texts(oracle.fired)
        assert texts(late) == texts([tuple(row) for row in oracle.late])

    check()


#: Those whose results do not depend on the order of rows.
EXACT = {name: aggregate for name, aggregate in AGGREGATES.items() if name != "load"}


def exact_options(windows: Windows, key: list[str], backend: str) -> dict[str, Any]:
    """Without a side output for late rows, which are dropped: then rows are combined on their way."""

    def operation(stream: Any, _: Any) -> Any:
        return stream.window(windows.assigner()).allowed_lateness(windows.lateness).aggregate(**EXACT)

    return {**options(windows, key, backend), "operation": operation}


class ExactOracle(SalesOracle):
    def result_of(self, key: Any, window: Window, rows: list[Row]) -> tuple[Any, ...]:
        found = dict(zip(AGGREGATES, expected(rows), strict=True))
        return (*key, *window, *(found[name] for name in EXACT))


@pytest.mark.parametrize("backend", ["heap", "lmdb"])
@pytest.mark.parametrize("key", [["shop"], ["shop", "till"]], ids=["one", "two"])
def test_rows_that_were_combined_give_what_each_gives(backend: str, key: list[str]) -> None:
    """Results come at the same times in the same order, and the same rows are late."""

    @settings(max_examples=examples(60 if backend == "heap" else 6), deadline=None)
    @given(windows=WINDOWS, steps=stories(), looped=st.booleans())
    def check(windows: Windows, steps: list[Step], looped: bool) -> None:
        windows = replace(windows, lateness=0)
        oracle = ExactOracle(windows.of, lateness=windows.lateness)
        tell(oracle, steps, len(key))
        with columns(used=True) as path:
            each = replace(path, combine=False)
            one_by_one, _ = Story(LATE, row_path=each, **exact_options(windows, key, backend)).run(steps)
        with columns(used=not looped) as path:
            combined, _ = Story(LATE, row_path=path, **exact_options(windows, key, backend)).run(steps)
        # How far event time had come when a window fired is told with the rows in between, of which there are fewer.
        assert timed(combined) == timed(one_by_one)
        assert texts([row for row, _ in combined]) == texts(oracle.fired)

    check()


def harness(make: Callable[[Any], Any], key: Any = "shop", **changes: Any) -> KeyedOperatorHarness:
    """What ``make`` says of a stream of sales that is keyed by columns."""
    return KeyedOperatorHarness(None, key, operation=lambda stream, _: make(stream), input_type=SALE, **changes)


def sale(shop: str, price: int | None) -> Row:
    return Row(shop, 1, price, None)


@pytest.mark.parametrize("assigner", [TumblingProcessingTimeWindows.of(10), SlidingProcessingTimeWindows.of(10, 5)])
@pytest.mark.parametrize("used", [False, True])
def test_windows_by_the_clock(assigner: Any, used: bool) -> None:
    def make(stream: Any) -> Any:
        return stream.window(assigner).aggregate(rows=Count(), total=Sum("price"))

    with columns(used) as path, harness(make, row_path=path) as windows:
        windows.advance_processing_time(12).push_all([sale("a", 1), sale("b", 5), sale("a", 2)])
        windows.advance_processing_time(1).push_all([sale("a", 3)]).end_epoch()
        windows.advance_processing_time(30)
        starts = (10,) if isinstance(assigner, TumblingProcessingTimeWindows) else (5, 10)
        wanted = [(key, start, start + 10, *of) for start in starts for key, of in (("a", (3, 6)), ("b", (1, 5)))]
        assert sorted(map(tuple, windows.output())) == sorted(wanted)
        assert windows.num_processing_time_timers() == 0


@pytest.mark.parametrize("used", [False, True])
def test_a_sum_that_passes_64_bits_is_refused(used: bool) -> None:
    large = (1 << 63) - 1
    path = RowPath(RowsBy.COLUMN, least_rows=1) if used else RowPath(RowsBy.ONE)
    with harness(summed, row_path=path) as windows:
        windows.push_all([sale("a", large), sale("a", -5), sale("a", 5)], [1, 2, 3])
        windows.push_all([sale("b", 1)], [1]).advance_watermark(9)
        assert sorted(map(tuple, windows.take_output())) == [("a", 0, 10, large), ("b", 0, 10, 1)]
        windows.push_all([sale("a", large)], [11])
        with pytest.raises(FunctionError, match=r"A sum of price may pass 64 bits.*reduce\(\)"):
            windows.push_all([sale("a", 1)], [12]).push_all([sale("a", -1)], [13])


def test_a_sum_that_passes_64_bits_only_on_its_way_is_fine_where_rows_are_combined() -> None:
    large = (1 << 63) - 10
    with harness(summed) as windows:
        windows.push_all([sale("a", large)], [1]).push_all([sale("a", 12), sale("a", -12)], [2, 3]).advance_watermark(9)
        assert [tuple(row) for row in windows.output()] == [("a", 0, 10, large)]


@pytest.mark.parametrize(
    ("aggregates", "wanted"),
    [
        ({"rows": Count()}, (4,)),
        ({"priced": Count("price")}, (3,)),
        ({"total": Sum("price"), "most": Max("price")}, (5, 1 << 61)),
    ],
    ids=["rows", "values", "a sum that is large on its way"],
)
@pytest.mark.parametrize("event_time", [False, True])
@pytest.mark.parametrize("all_rows", [False, True])
def test_windows_by_the_clock_are_combined(
    aggregates: dict[str, Any], wanted: tuple[int, ...], event_time: bool, all_rows: bool
) -> None:
    large = 1 << 61
    sales = [sale("a", large), sale("a", -large), sale("a", None), sale("a", 5)]
    times = [1, 2, 3, 4] if event_time else None
    assigner = TumblingProcessingTimeWindows.of(10)

    def windows(stream: Any, _: Any) -> Any:
        return (stream.window_all if all_rows else stream.window)(assigner).aggregate(**aggregates)

    made: Any = (
        OperatorHarness(None, operation=windows, input_type=SALE, event_time=event_time)
        if all_rows
        else KeyedOperatorHarness(None, "shop", operation=windows, input_type=SALE, event_time=event_time)
    )
    with made:
        made.push_all(sales, times).advance_processing_time(30)
        assert [tuple(row) for row in made.output()] == [(*([] if all_rows else "a"), 0, 10, *wanted)]


def test_a_key_with_the_name_of_what_is_kept() -> None:
    row_type = Types.ROW_NAMED(["sum(v)", "v"], [Types.STRING(), Types.LONG()])

    def windows(stream: Any, _: Any) -> Any:
        return stream.window(TumblingEventTimeWindows.of(10)).aggregate(total=Sum("v"))

    with KeyedOperatorHarness(None, "sum(v)", operation=windows, input_type=row_type) as made:
        made.push_all([Row("a", 1), Row("a", 2)], [1, 2]).advance_watermark(20)
        assert [tuple(row) for row in made.output()] == [("a", 0, 10, 3)]


def test_times_beyond_what_is_computed_with_are_not_combined() -> None:
    far = 1 << 61
    with harness(summed) as windows:
        windows.push_all([sale("a", 1), sale("a", 2), sale("b", 4)], [far, far, 3]).end_input()
        start = far - far % 10
        assert sorted(map(tuple, windows.output())) == [("a", start, start + 10, 3), ("b", 0, 10, 4)]


def test_which_rows_are_combined() -> None:
    def combine(make: Callable[[Any], Any]) -> Any:
        return node(make).inputs[0].combine

    tumbling, sliding = TumblingEventTimeWindows.of(10, 3), SlidingEventTimeWindows.of(20, 8, 3)
    assert combine(lambda s: s.window(tumbling).aggregate(rows=Count())).panes == Panes(10, 3)
    assert combine(lambda s: s.window(sliding).aggregate(rows=Count())).panes == Panes(4, 3)
    assert combine(lambda s: s.window(TumblingProcessingTimeWindows.of(10)).aggregate(rows=Count())).panes is None
    assert combine(lambda s: s.window(tumbling).aggregate(load=Sum("weight"))) is None, "sums depend on the order"
    assert combine(lambda s: s.window(tumbling).aggregate(load=Average("weight"))) is None
    assert combine(lambda s: s.window(tumbling).side_output_late_data(LATE).aggregate(rows=Count())) is None
    assert combine(lambda s: s.window(tumbling).allowed_lateness(5).aggregate(rows=Count())) is None, "each row fires"
    assert combine(lambda s: s.window(tumbling).trigger(CountTrigger.of(2)).aggregate(rows=Count())) is None
    assert combine(lambda s: s.window(TumblingEventTimeWindows.of(1 << 60)).aggregate(rows=Count())) is None
    assert combine(lambda s: s.window(EventTimeSessionWindows.with_gap(5)).aggregate(rows=Count())) is None


def summed(stream: Any) -> Any:
    return stream.window(TumblingEventTimeWindows.of(10)).aggregate(total=Sum("price"))


#: Windows of every other kind, and what the sales below give: for windows of time with their start and end.
OTHERS: dict[str, tuple[Callable[[Any], Any], list[tuple[Any, ...]]]] = {
    "sessions": (
        lambda s: s.window(EventTimeSessionWindows.with_gap(5)),
        [("a", 1, 9, 2, 3), ("a", 20, 25, 1, 4), ("b", 2, 7, 1, None)],
    ),
    "count": (lambda s: s.count_window(2), [("a", 2, 3)]),
    "trigger": (
        lambda s: s.window(TumblingEventTimeWindows.of(10)).trigger(PurgingTrigger.of(CountTrigger.of(2))),
        [("a", 0, 10, 2, 3)],
    ),
    "evictor": (
        lambda s: s.window(TumblingEventTimeWindows.of(10)).evictor(CountEvictor.of(1)),
        [("a", 0, 10, 1, 2), ("a", 20, 30, 1, 4), ("b", 0, 10, 1, None)],
    ),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_every_other_kind_of_windows(kind: str) -> None:
    windows, expected_rows = OTHERS[kind]
    made = harness(lambda stream: windows(stream).aggregate(rows=Count(), total=Sum("price")))
    made.push_all([sale("a", 1), sale("a", 2), sale("b", None), sale("a", 4)], [1, 4, 2, 20])
    restored = made.restored().end_input()
    assert sorted(map(tuple, [*made.output(), *restored.output()]), key=repr) == sorted(expected_rows, key=repr)
    restored.close()


def test_windows_of_all_rows() -> None:
    def windows(stream: Any, _: Any) -> Any:
        return stream.window_all(TumblingEventTimeWindows.of(10)).aggregate(rows=Count(), most=Max("price"))

    by_column = RowPath(RowsBy.COLUMN, least_rows=1, least_timers=2)
    with OperatorHarness(None, operation=windows, input_type=SALE, event_time=True, row_path=by_column) as made:
        made.push_all([sale("a", 1), sale("b", 7), sale("b", 5), sale("a", 4)], [1, 4, 12, 2]).advance_watermark(30)
        assert [tuple(row) for row in made.output()] == [(0, 10, 3, 7), (10, 20, 1, 5)]


def node(make: Callable[[Any], Any], key: Any = "shop") -> Any:
    env = StreamExecutionEnvironment.get_execution_environment()
    return make(env.from_collection([sale("a", 1)], SALE).key_by(key))._node


def way(make: Callable[[Any], Any], key: Any = "shop") -> RowsBy:
    made = node(make, key)
    return way_of(made.body, made.key_type)


def test_which_windows_work_by_column() -> None:
    hours = TumblingEventTimeWindows.of(10)
    assert way(summed) is RowsBy.COLUMN
    assert way(summed, ["shop", "till"]) is RowsBy.COLUMN
    assert way(lambda s: s.window(hours).allowed_lateness(5).aggregate(rows=Count())) is RowsBy.COLUMN
    assert way(lambda s: s.window(hours).trigger(CountTrigger.of(2)).aggregate(rows=Count())) is RowsBy.ONE
    assert way(lambda s: s.window(Mine.of(10)).aggregate(rows=Count())) is RowsBy.ONE
    assert way(lambda s: s.window(hours).evictor(CountEvictor.of(2)).aggregate(rows=Count())) is RowsBy.ONE
    assert way(summed, "weight") is RowsBy.BATCH, "of floating keys, 0.0 and -0.0 are one"


class Mine(TumblingEventTimeWindows):
    """May assign rows as it likes."""


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda s: s.aggregate(), "known aggregates by name"),
        (lambda s: s.aggregate(window_end=Count()), "column 'window_end' of the window"),
        (lambda s: s.aggregate(shop=Count()), "is a column of the key"),
        (lambda s: s.aggregate(total=Sum("shop")), "is for numbers"),
        (lambda s: s.aggregate(total=Sum("cost")), "no such field"),
        (lambda s: s.aggregate(rows=Count("cost")), "no such field"),
        (lambda s: s.aggregate(rows=Count(), output_type=Types.LONG()), "a function or a type beside them"),
        (lambda s: s.aggregate(total=sum), "expected Count"),
    ],
)
def test_what_is_refused(make: Callable[[Any], Any], message: str) -> None:
    with pytest.raises((ProgramError, TypeError), match=message):
        node(lambda stream: make(stream.window(TumblingEventTimeWindows.of(10))))


def test_a_key_of_a_function_is_refused() -> None:
    with pytest.raises(ProgramError, match="needs the key as columns"):
        node(summed, lambda row: row[0])


@pytest.mark.parametrize(
    ("key_type", "keys"),
    [
        (Types.BOOLEAN(), [True, False]),
        (Types.BYTES(), [b"", b"\x00a"]),
        (Types.SQL_DATE(), [date(1969, 12, 31), date(2026, 1, 1)]),
        (Types.BYTE(), [-128, 127]),
    ],
    ids=["boolean", "bytes", "date", "byte"],
)
def test_keys_of_every_kind_that_has_a_column(key_type: Any, keys: list[Any]) -> None:
    row_type = Types.ROW_NAMED(["key", "value"], [key_type, Types.FLOAT()])

    def windows(stream: Any, _: Any) -> Any:
        return stream.window(TumblingEventTimeWindows.of(10)).aggregate(low=Min("value"), mean=Average("value"))

    path = RowPath(RowsBy.COLUMN, least_rows=1, least_timers=2)
    with KeyedOperatorHarness(None, "key", operation=windows, input_type=row_type, row_path=path) as made:
        made.push_all([Row(key, value) for key in keys for value in (2.5, 0.5)], [1, 2, 3, 4]).end_epoch()
        made.push_all([Row(keys[0], 0.0)], [5]).advance_watermark(9)
        wanted = [(keys[0], 0, 10, 0.0, 1.0), (keys[1], 0, 10, 0.5, 1.5)]
        assert sorted(map(tuple, made.output())) == sorted(wanted)


ITEM = Types.ROW_NAMED(
    ["key", "text", "day", "flag", "pair"],
    [Types.STRING(), Types.STRING(), Types.SQL_DATE(), Types.BOOLEAN(), Types.TUPLE([Types.INT(), Types.STRING()])],
)


@pytest.mark.parametrize("used", [False, True])
def test_values_of_every_kind_are_counted(used: bool) -> None:
    def windows(stream: Any, _: Any) -> Any:
        counts = {name: Count(name) for name in ("text", "day", "flag", "pair")}
        return stream.window(TumblingEventTimeWindows.of(10)).aggregate(rows=Count(), **counts)

    items = [
        Row("a", "x", date(2026, 1, 1), True, (1, "y")),
        Row("a", None, None, False, None),
        Row("a", "", None, None, (2, None)),
        Row("b", None, None, None, None),
    ]
    path = RowPath(RowsBy.COLUMN, least_rows=1, least_timers=2) if used else RowPath(RowsBy.ONE)
    with KeyedOperatorHarness(None, "key", operation=windows, input_type=ITEM, row_path=path) as made:
        made.push_all(items, [1, 2, 3, 4]).advance_watermark(9)
        assert sorted(map(tuple, made.output())) == [("a", 0, 10, 3, 2, 1, 2, 2), ("b", 0, 10, 1, 0, 0, 0, 0)]


def test_values_without_a_type_are_not_counted() -> None:
    row_type = Types.ROW_NAMED(["key", "any"], [Types.STRING(), Types.PICKLED_BYTE_ARRAY()])
    env = StreamExecutionEnvironment.get_execution_environment()
    keyed = env.from_collection([("a", None)], row_type).key_by("key")
    streams: list[Any] = [keyed, keyed.window(TumblingEventTimeWindows.of(10))]
    for stream in streams:
        with pytest.raises(ProgramError, match=r"Count\('any'\): the field has no declared type"):
            stream.aggregate(there=Count("any"))


def test_windows_that_are_far_from_each_other() -> None:
    slide, offset = (1 << 63) - 1, -((1 << 63) - 3)
    assigner = SlidingEventTimeWindows(10, slide, offset)

    def windows(stream: Any) -> Any:
        return stream.window(assigner).aggregate(rows=Count())

    with harness(windows, row_path=RowPath(RowsBy.COLUMN, least_rows=1)) as made:
        made.push_all([sale("a", 1), sale("a", 2)], [5, 1000]).advance_watermark(2000)
        assert [tuple(row) for row in made.output()] == [("a", 2, 12, 1)]
