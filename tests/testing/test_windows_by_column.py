"""Known aggregates of windows: by column they give what the loop over rows gives, and both what the rows say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.common import Row, Types
from holdfast.datastream import OutputTag
from holdfast.datastream.aggregates import Average, Count, Max, Min, Sum
from holdfast.datastream.window import (
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from holdfast.runtime.batch import Batch
from holdfast.runtime.windowing import by_column
from holdfast.testing import KeyedOperatorHarness
from tests.testing.window_oracle import Window, WindowOracle

SALE = Types.ROW_NAMED(
    ["shop", "till", "price", "weight"], [Types.STRING(), Types.INT(), Types.LONG(), Types.DOUBLE()]
)
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
    numbers = [value for value in values if value == value]
    return best(numbers) if numbers else values[0] if values else None


def expected(rows: list[Row]) -> list[Any]:
    prices, weights = ([row[place] for row in rows if row[place] is not None] for place in (2, 3))
    total = sum(prices) if prices else None
    mean = None if total is None else float(total) / len(prices)
    load = reduce(add, weights) if weights else None
    of_prices = [len(rows), len(prices), total, extreme(min, prices), extreme(max, prices), mean]
    return [*of_prices, load, extreme(min, weights), extreme(max, weights)]


class SalesOracle(WindowOracle):
    """Its values are whole rows."""

    def push_sale(self, row: Row, key: tuple[Any, ...], time: int) -> None:
        before = len(self.late)
        self.push((key, row), time)  # type: ignore[arg-type]
        self.late[before:] = [row for _ in self.late[before:]]  # type: ignore[misc]

    def _fire(self, key: Any, window: Window) -> None:
        self.fired.append((*key, *window, *expected(self.windows[key][window])))  # type: ignore[arg-type]


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


@dataclass(frozen=True)
class Step:
    """Rows of one batch, each with its time and the watermark with which it comes, and what happens then."""

    rows: list[tuple[Row, int, int]]
    then: str


def options(windows: Windows, key: list[str], backend: str) -> dict[str, Any]:
    def operation(stream: Any, _: Any) -> Any:
        windowed = stream.window(windows.assigner()).allowed_lateness(windows.lateness).side_output_late_data(LATE)
        return windowed.aggregate(**AGGREGATES)

    return {
        "function": None,
        "key_selector": key,
        "operation": operation,
        "input_type": SALE,
        "side_outputs": [LATE],
        "backend": backend,
        "max_parallelism": 16,
    }


def send(harness: Any, rows: list[tuple[Row, int, int]]) -> None:
    """Rows in one batch, each with a watermark of its own."""
    epochs = harness._epochs
    epochs.run()
    (target,) = epochs.inputs
    mine = [row for row in rows if harness.owns(row[0])]
    if mine:
        values, times, watermarks = (list(column) for column in zip(*mine, strict=True))
        target._router.collect(Batch(values, times, watermarks))
        target._router.flush()
        epochs._deliver()
    harness.advance_watermark(rows[-1][2])


@contextmanager
def columns(used: bool) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        least = 1 if used else 1 << 60
        patch.setattr(by_column, "LEAST_ROWS", least)
        patch.setattr(by_column, "LEAST_TIMERS", least)
        yield


class Story:
    """The subtasks of one run, and all that came out of them: by subtask, in order."""

    def __init__(self, windows: Windows, key: list[str], backend: str) -> None:
        self.harnesses = KeyedOperatorHarness.parallel(1, **options(windows, key, backend))
        self.out: list[Any] = []
        self.late: list[Any] = []

    def run(self, steps: list[Step]) -> tuple[list[Any], list[Any]]:
        for step in steps:
            for harness in self.harnesses:
                send(harness, step.rows)
            getattr(self, step.then)(step.rows[-1][2])
        self.harnesses.end_input()
        timers = [harness.num_event_time_timers() for harness in self.harnesses]
        self._take()
        self.harnesses.close()
        assert timers == [0] * len(timers)
        return self.out, self.late

    def go_on(self, watermark: int) -> None: ...

    def epoch(self, watermark: int) -> None:
        self.harnesses.end_epoch()

    def another_worker(self, watermark: int) -> None:
        for harness in self.harnesses:
            harness.end_epoch().forget_live_objects()

    def rescale(self, watermark: int) -> None:
        snapshot = self.harnesses.snapshot()
        parallelism = 3 - len(self.harnesses)
        self._take()
        self.harnesses = self.harnesses.rescaled(parallelism, snapshot)
        self.harnesses.advance_watermark(watermark)

    def _take(self) -> None:
        for harness in self.harnesses:
            self.out += [(tuple(row), time) for row, time in harness.timestamped_output()]
            self.late += [tuple(row) for row in harness.side_output(LATE)]


PRICES = st.none() | st.integers(-50, 50)
WEIGHTS = st.none() | st.just(float("nan")) | st.floats(-1e6, 1e6).map(lambda value: value + 0.0)
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
        steps.append(Step(rows, draw(st.sampled_from(["go_on", "epoch", "another_worker", "rescale"]))))
    return steps


def texts(rows: list[Any]) -> list[str]:
    return sorted(map(repr, rows))


@pytest.mark.parametrize("backend", ["heap", "lmdb", "rocksdb"])
@pytest.mark.parametrize("key", [["shop"], ["shop", "till"]], ids=["one", "two"])
def test_columns_give_what_the_loop_and_the_rows_give(backend: str, key: list[str]) -> None:
    @settings(max_examples=40 if backend == "heap" else 6, deadline=None)
    @given(windows=WINDOWS, steps=stories())
    def check(windows: Windows, steps: list[Step]) -> None:
        oracle = SalesOracle(windows.of, lateness=windows.lateness)
        for step in steps:
            for row, time, watermark in step.rows:
                oracle.advance(watermark)
                oracle.push_sale(row, tuple(row[: len(key)]), time)
        oracle.advance((1 << 63) - 1)
        with columns(used=False):
            looped, late = Story(windows, key, backend).run(steps)
        with columns(used=True):
            by_columns, late_by_columns = Story(windows, key, backend).run(steps)
        assert list(map(repr, by_columns)) == list(map(repr, looped))
        assert list(map(repr, late_by_columns)) == list(map(repr, late))
        assert texts([row for row, _ in looped]) == texts(oracle.fired)
        assert texts(late) == texts([tuple(row) for row in oracle.late])

    check()
