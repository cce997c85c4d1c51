"""Sessions that take a batch at a time give what the loop over rows gives, and both what the rows say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.common import Row, Types
from holdfast.datastream import (
    AggregateFunction,
    OutputTag,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from holdfast.datastream.aggregates import Count, Sum
from holdfast.datastream.window import (
    ContinuousEventTimeTrigger,
    CountEvictor,
    EventTimeSessionWindows,
    EventTimeTrigger,
    ProcessingTimeSessionWindows,
    TriggerResult,
)
from holdfast.errors import FunctionError, ProgramError
from holdfast.runtime.row_path import RowPath, RowsBy
from holdfast.runtime.windowing.ways import way_of
from holdfast.testing import KeyedOperatorHarness
from tests.kit.properties import examples
from tests.testing.window_oracle import RowOracle, Window
from tests.testing.window_stories import LARGE_CACHE, Step, Story, caches_of, limits_of, send

#: Who, what, and the gap behind it.
CLICK = Types.ROW_NAMED(["user", "page", "gap"], [Types.STRING(), Types.STRING(), Types.INT()])
LATE = OutputTag("late", CLICK)
FIRED = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG(), Types.LONG(), Types.STRING()])


class Path(AggregateFunction):
    """Says of its results how they came about. Its accumulator is a list that it changes, and may have nothing."""

    def create_accumulator(self) -> list[str]:
        return ["<"]

    def add(self, value: Row, accumulator: list[str]) -> list[str] | None:
        if value[1] == "forget":
            return None
        accumulator.append(value[1])
        return accumulator

    def get_result(self, accumulator: list[str]) -> str:
        return "".join(accumulator)

    def merge(self, acc_a: list[str], acc_b: list[str]) -> list[str]:
        acc_a.append(f"({''.join(acc_b)})")
        return acc_a


class Name(ProcessWindowFunction):
    """The path of a session, with what the function sees of time."""

    def process(self, key: str, context: ProcessWindowFunction.Context, elements: Iterable[Any]) -> Iterable[Any]:
        (path,) = elements
        window = context.window()
        yield key, window.start, window.end, context.current_watermark(), path if isinstance(path, str) else path[1]


def last_two(first: Row, second: Row) -> Row:
    return second if second[1] == "forget" else Row(first[0], f"({first[1]}{second[1]})", 0)


#: Functions of sessions, by name.
FUNCTIONS = {
    "aggregate": lambda windows: windows.aggregate(Path(), Name(), Types.LIST(Types.STRING()), FIRED),
    "pickled": lambda windows: windows.aggregate(Path(), Name(), None, FIRED),
    "reduce": lambda windows: windows.reduce(last_two, Name(), FIRED),
}


@dataclass(frozen=True)
class Program:
    function: str
    #: None: each row brings its own.
    gap: int | None
    lateness: int

    def assigner(self) -> Any:
        if self.gap is None:
            return EventTimeSessionWindows.with_dynamic_gap(lambda row: row[2])
        return EventTimeSessionWindows.with_gap(self.gap)

    def options(self, backend: str) -> dict[str, Any]:
        def operation(stream: Any, _: Any) -> Any:
            windows = stream.window(self.assigner()).allowed_lateness(self.lateness).side_output_late_data(LATE)
            return FUNCTIONS[self.function](windows)

        return {
            "function": None,
            "key_selector": "user",
            "operation": operation,
            "input_type": CLICK,
            "backend": backend,
        }


@contextmanager
def batches_of(least: int | None, cache: int = LARGE_CACHE) -> Iterator[RowPath]:
    """The path of rows of which batches of so many and more are taken at a time; None: all rows one by one."""
    with caches_of(cache):
        yield path_of(least, cache)


def path_of(least: int | None, cache: int = LARGE_CACHE) -> RowPath:
    return RowPath(RowsBy.ONE) if least is None else RowPath(RowsBy.SESSION, least_rows=least, **limits_of(cache))


class SessionOracle(RowOracle):
    """Rows say themselves how long their windows are."""

    def push_click(self, row: Row, time: int, gap: int) -> None:
        self.assign = lambda _: [(time, time + gap)]
        self.push_row(row, row[0], time)

    def result_of(self, key: Any, window: Window, rows: list[Row]) -> tuple[Any, ...]:
        return (key, *window, "".join(sorted(row[1] for row in rows)))


def pages_of(fired: tuple[Any, ...]) -> tuple[Any, ...]:
    """What came out, without the order of pages."""
    user, start, end, _, path = fired
    return user, start, end, "".join(sorted(letter for letter in path if letter.isalpha()))


CLICKS = st.builds(Row, st.sampled_from("ab"), st.sampled_from("uvwxyz"), st.integers(1, 12))
GAPS = st.none() | st.integers(1, 9)
PROGRAMS = st.builds(Program, st.sampled_from(list(FUNCTIONS)), GAPS, st.sampled_from([0, 3, 9]))


@st.composite
def stories(draw: Any, pages: st.SearchStrategy[Row] = CLICKS) -> list[Step]:
    now, steps = draw(st.integers(-60, 20)), []
    ahead_of_rows = st.sampled_from([0, 0, 0, 1, 4, 15])
    for _ in range(draw(st.integers(1, 4))):
        rows = []
        for click, time, ahead in draw(
            st.lists(st.tuples(pages, st.integers(-14, 22), ahead_of_rows), min_size=1, max_size=16)
        ):
            now += ahead
            rows.append((click, now + time, now))
        steps.append(Step(rows, draw(st.sampled_from(["go_on", "wait", "epoch", "another_worker", "rescale"]))))
    return steps


@pytest.mark.parametrize("backend", ["heap", "lmdb", "rocksdb"])
def test_batches_give_what_the_loop_and_the_rows_give(backend: str) -> None:
    @settings(max_examples=examples(100 if backend == "heap" else 10), deadline=None)
    @given(program=PROGRAMS, steps=stories(), least=st.sampled_from([1, 1, 5]), cache=st.sampled_from([2, 500_000]))
    def check(program: Program, steps: list[Step], least: int, cache: int) -> None:
        oracle = SessionOracle(lambda time: [], merging=True, lateness=program.lateness)
        for step in steps:
            for row, time, watermark in step.rows:
                oracle.advance(watermark)
                oracle.push_click(row, time, program.gap or row[2])
        oracle.advance((1 << 63) - 1)
        with batches_of(None) as path:
            looped, late = Story(LATE, row_path=path, **program.options(backend)).run(steps)
        with batches_of(least, cache) as path:
            batched, late_of_batches = Story(LATE, row_path=path, **program.options(backend)).run(steps)
        assert batched == looped
        assert late_of_batches == late
        assert sorted(pages_of(row) for row, _ in looped) == sorted(oracle.fired)
        assert sorted(late) == sorted(map(tuple, oracle.late))

    check()


FORGETFUL = st.builds(Row, st.just("a"), st.sampled_from(["x", "y", "forget"]), st.integers(1, 12))


@settings(max_examples=examples(50), deadline=None)
@given(program=PROGRAMS, steps=stories(FORGETFUL))
def test_functions_that_keep_nothing(program: Program, steps: list[Step]) -> None:
    with batches_of(None) as path:
        looped = Story(LATE, row_path=path, **program.options("heap")).run(steps)
    with batches_of(1) as path:
        assert Story(LATE, row_path=path, **program.options("heap")).run(steps) == looped


def click(user: str, page: str, gap: int = 5) -> Row:
    return Row(user, page, gap)


def harness(make: Any, **changes: Any) -> KeyedOperatorHarness:
    return KeyedOperatorHarness(None, "user", operation=lambda stream, _: make(stream), input_type=CLICK, **changes)


def paths(stream: Any) -> Any:
    return stream.window(EventTimeSessionWindows.with_gap(5)).aggregate(Path(), Name(), None, FIRED)


def test_a_session_that_goes_on_keeps_its_timer() -> None:
    with harness(paths, row_path=path_of(1)) as windows:
        windows.push_all([click("a", "x"), click("b", "u")], [0, 1])
        for time in range(1, 20, 3):
            windows.push_all([click("a", "y")], [time]).end_epoch()
            assert windows.num_event_time_timers() == 2
        windows.advance_watermark(10)
        assert [row[:3] for row in windows.take_output()] == [("b", 1, 6)]
        assert windows.num_event_time_timers() == 1
        windows.advance_watermark(23)
        assert [row[:3] for row in windows.take_output()] == [("a", 0, 24)]
        assert windows.num_event_time_timers() == 0


@pytest.mark.parametrize("lateness", [0, 3])
@pytest.mark.parametrize("trigger", [ContinuousEventTimeTrigger.of(1_000), EventTimeTrigger.create()])
def test_other_windows_take_up_sessions_whose_timers_are_early(trigger: Any, lateness: int) -> None:
    def other(stream: Any) -> Any:
        windows = stream.window(EventTimeSessionWindows.with_gap(5)).trigger(trigger).allowed_lateness(lateness)
        return windows.aggregate(Path(), Name(), None, FIRED)

    with harness(paths, row_path=path_of(1)) as first:
        first.push_all([click("a", "x")], [0]).push_all([click("a", "y")], [4]).push_all([click("a", "z")], [8])
        with harness(other, snapshot=first.snapshot()) as second:
            second.advance_watermark(11)
            assert second.output() == []
            second.advance_watermark(12)
            assert [row[:3] for row in second.output()] == [("a", 0, 13)]
            second.advance_watermark(12 + lateness)
            assert len(second.output()) == 1
            assert second.num_event_time_timers() == 0


def test_an_error_names_the_row_and_the_key() -> None:
    class Broken(Path):
        def add(self, value: Row, accumulator: list[str]) -> list[str]:
            raise ValueError("no such page")

    def broken(stream: Any) -> Any:
        return stream.window(EventTimeSessionWindows.with_gap(5)).aggregate(Broken(), Name(), None, FIRED)

    message = r"key 'a'.*no such page.*user"
    with harness(broken, row_path=path_of(1)) as windows, pytest.raises(FunctionError, match=message):
        windows.push_all([click("a", "x")], [0])


def test_a_gap_that_is_none() -> None:
    def dynamic(stream: Any) -> Any:
        windows = stream.window(EventTimeSessionWindows.with_dynamic_gap(lambda row: 10 // row[2] - 5))
        return windows.aggregate(Path(), Name(), None, FIRED)

    by_batch = path_of(1)
    with harness(dynamic, row_path=by_batch) as windows, pytest.raises(ProgramError, match="must be above 0"):
        windows.push_all([click("a", "x", 1), click("a", "x", 2)], [0, 1])
    with harness(dynamic, row_path=by_batch) as windows, pytest.raises(FunctionError, match=r"key 'b'.*ZeroDivision"):
        windows.push_all([click("a", "x", 1), click("b", "x", 0)], [0, 1])


def test_the_end_of_time() -> None:
    last = (1 << 63) - 2
    for least in (None, 1):
        with harness(paths, row_path=path_of(least)) as windows:
            windows.push_all([click("a", "x"), click("a", "y")], [last - 20, last - 18]).advance_watermark(last)
            assert [(*row[:3], row[4]) for row in windows.output()] == [("a", last - 20, last - 13, "<xy")]


def way(make: Any) -> RowsBy:
    env = StreamExecutionEnvironment.get_execution_environment()
    made = make(env.from_collection([click("a", "x")], CLICK).key_by("user"))._node
    return way_of(made.body, made.key_type)


class Mine(EventTimeSessionWindows):
    """May assign rows as it likes."""


def test_which_sessions_take_a_batch_at_a_time() -> None:
    gap = EventTimeSessionWindows.with_gap(5)
    assert way(paths) is RowsBy.SESSION
    assert way(lambda s: s.window(gap).reduce(last_two)) is RowsBy.SESSION
    assert way(lambda s: s.window(gap).allowed_lateness(3).reduce(last_two)) is RowsBy.SESSION
    assert way(lambda s: s.window(gap).aggregate(rows=Count(), gaps=Sum("gap"))) is RowsBy.SESSION
    dynamic = EventTimeSessionWindows.with_dynamic_gap(lambda row: row[2])
    assert way(lambda s: s.window(dynamic).reduce(last_two)) is RowsBy.SESSION
    by_clock = ProcessingTimeSessionWindows.with_gap(5)
    every = ContinuousEventTimeTrigger.of(3)
    assert way(lambda s: s.window(by_clock).reduce(last_two)) is RowsBy.ONE
    assert way(lambda s: s.window(gap).trigger(every).reduce(last_two)) is RowsBy.ONE
    assert way(lambda s: s.window(Mine(5)).reduce(last_two)) is RowsBy.ONE
    assert way(lambda s: s.window(gap).process(Name(), FIRED)) is RowsBy.ONE
    assert way(lambda s: s.window(gap).evictor(CountEvictor.of(2)).reduce(last_two)) is RowsBy.ONE


def over_a_restore(programs: tuple[Program, Program], ways: tuple[int | None, int | None], steps: list[Step]) -> Any:
    """What comes before and after a restore with another program, each with rows by batches or by the loop."""
    before, after = ({"side_outputs": [LATE], **program.options("heap")} for program in programs)
    half = len(steps) // 2
    with batches_of(ways[0]) as path:
        harnesses = KeyedOperatorHarness.parallel(1, row_path=path, **before)
        for step in steps[:half]:
            send(harnesses[0], step.rows)
            harnesses[0].end_epoch()
        snapshot = harnesses.snapshot()
        first = list(harnesses[0].timestamped_output())
        harnesses.close()
    with batches_of(ways[1]) as path:
        harness = KeyedOperatorHarness.restore(snapshot, row_path=path, **after)
        for step in steps[half:]:
            send(harness, step.rows)
        harness.end_input()
        found = first, list(harness.timestamped_output()), list(map(tuple, harness.side_output(LATE)))
        harness.close()
    return found


@settings(max_examples=examples(40), deadline=None)
@given(
    steps=stories(),
    gap=GAPS,
    lateness=st.sampled_from([(0, 0), (0, 6), (6, 0), (6, 2), (2, 6)]),
)
def test_a_restore_with_another_lateness(steps: list[Step], gap: int | None, lateness: tuple[int, int]) -> None:
    programs = (Program("reduce", gap, lateness[0]), Program("reduce", gap, lateness[1]))
    expected = over_a_restore(programs, (None, None), steps)
    for ways in ((None, 1), (1, None), (1, 1)):
        assert over_a_restore(programs, ways, steps) == expected


@pytest.mark.parametrize("ways", [(None, None), (None, 1), (1, None), (1, 1)])
def test_a_session_that_is_kept_longer_after_a_restore_fires_once(ways: tuple[int | None, int | None]) -> None:
    rows = [(Row("x", page, 0), time, 0) for page, time in (("a", 10), ("b", 25), ("c", 18))]
    steps = [Step([row], "go_on") for row in rows] + [Step([(Row("y", "z", 0), 18, 5)], "go_on")] * 3
    _, found, _ = over_a_restore((Program("reduce", 10, 0), Program("reduce", 10, 7)), ways, steps)
    assert [row[:3] for row, _ in found if row[0] == "x"] == [("x", 10, 35)]


@pytest.mark.parametrize("ways", [(None, None), (None, 1), (1, None), (1, 1)])
def test_a_session_that_was_kept_longer_goes_between_rows(ways: tuple[int | None, int | None]) -> None:
    before = Step([(Row("b", "u", 0), -9, -20), (Row("a", "v", 0), 0, 0)], "epoch")
    # Between the rows, at 5, it goes.
    after = Step([(Row("a", "w", 0), 1, 1), (Row("b", "x", 0), 0, 5)], "go_on")
    _, found, _ = over_a_restore((Program("reduce", 9, 6), Program("reduce", 9, 0)), ways, [before, after])
    assert [row[:3] for row, _ in found if row[0] == "b"] == [("b", 0, 9)]


def test_timers_of_sessions_that_became_one_become_one() -> None:
    with batches_of(1) as path:
        harness = KeyedOperatorHarness(row_path=path, **Program("reduce", 10, 0).options("heap"))
        for epoch in ([(0, 0), (5, 0), (30, 0)], [(14, 0), (22, 0)], [(36, 14), (45, 14), (53, 39)]):
            send(harness, [(Row("x", "a", 0), time, watermark) for time, watermark in epoch])
            harness.end_epoch()
        assert harness.num_event_time_timers() == 1
        harness.end_input()
        assert [row[:3] for row, _ in harness.timestamped_output()] == [("x", 0, 63)]
        harness.close()


class LeavesTimers(EventTimeTrigger):
    """Fires for every timer, and does not delete those of windows that were merged."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        ctx.register_event_time_timer(timestamp + 5)
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.FIRE if time <= window.max_timestamp() else TriggerResult.CONTINUE

    def on_merge(self, window: Any, ctx: Any) -> None:
        ctx.register_event_time_timer(window.max_timestamp() - 2)

    def clear(self, window: Any, ctx: Any) -> None: ...


def test_timers_of_merged_windows_call_no_trigger() -> None:
    def operation(stream: Any, _: Any) -> Any:
        windows = stream.window(EventTimeSessionWindows.with_gap(10)).trigger(LeavesTimers()).allowed_lateness(20)
        return FUNCTIONS["reduce"](windows)

    with caches_of(LARGE_CACHE):
        harness = KeyedOperatorHarness(None, "user", operation=operation, input_type=CLICK, backend="heap")
        send(harness, [(Row("x", page, 0), time, 0) for page, time in (("a", 10), ("b", 14))])
        harness.end_input()
        # Behind the last row, and where the windows became one.
        assert [time for _, (time, _) in harness.timestamped_output()] == [23, 23]
        harness.close()
