"""Functions of a program over tumbling and sliding windows: batches of rows give what the loop over rows gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.common import Row, Types
from holdfast.datastream import AggregateFunction, OutputTag, ProcessWindowFunction, StreamExecutionEnvironment
from holdfast.datastream.window import CountTrigger, SlidingEventTimeWindows, TumblingEventTimeWindows
from holdfast.errors import FunctionError
from holdfast.runtime.envelope import ChannelStatus
from holdfast.runtime.row_path import RowPath, RowsBy
from holdfast.runtime.windowing.by_row import FoldingByRow
from holdfast.runtime.windowing.ways import way_of
from holdfast.state.descriptors import ValueStateDescriptor
from holdfast.testing import KeyedOperatorHarness
from tests.kit.properties import examples
from tests.testing.window_oracle import RowOracle, Window
from tests.testing.window_stories import LARGE_CACHE, Step, Story, caches_of, limits_of, send

VISIT = Types.ROW_NAMED(["user", "page"], [Types.STRING(), Types.STRING()])
LATE = OutputTag("late", VISIT)
FIRED = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG(), Types.STRING()])


class Pages(AggregateFunction):
    """Pages in their order. The accumulator is a list that it changes, and may have nothing."""

    def create_accumulator(self) -> list[str]:
        return []

    def add(self, value: Row, accumulator: list[str]) -> list[str] | None:
        if value[1] == "forget":
            return None
        if value[1] == "fail":
            raise ValueError("no such page")
        accumulator.append(value[1])
        return accumulator

    def get_result(self, accumulator: list[str]) -> str:
        return "".join(accumulator)

    def merge(self, acc_a: list[str], acc_b: list[str]) -> list[str]:
        return acc_a + acc_b


class Name(ProcessWindowFunction):
    def process(self, key: str, context: ProcessWindowFunction.Context, elements: Iterable[Any]) -> Iterable[Any]:
        (found,) = elements
        window = context.window()
        yield key, window.start, window.end, found if isinstance(found, str) else found[1]


class All(ProcessWindowFunction):
    """Sees all rows of a window, and changes them."""

    def process(self, key: str, context: ProcessWindowFunction.Context, elements: Iterable[Any]) -> Iterable[Any]:
        rows, window = list(elements), context.window()
        yield key, window.start, window.end, "".join(row[1] for row in rows)
        for row in rows:
            row[1] = "changed"


def joined(first: Row, second: Row) -> Row:
    return second if second[1] == "forget" else Row(first[0], first[1] + second[1])


class Rarely(Pages):
    """Has nothing to say of some windows."""

    def get_result(self, accumulator: list[str]) -> str | None:  # type: ignore[override]  # it may be silent
        return None if len(accumulator) % 2 else super().get_result(accumulator)


FUNCTIONS = {
    "aggregate": lambda windows: windows.aggregate(Pages(), Name(), Types.LIST(Types.STRING()), FIRED),
    "pickled": lambda windows: windows.aggregate(Pages(), Name(), None, FIRED),
    "reduce": lambda windows: windows.reduce(joined, Name(), FIRED),
    "process": lambda windows: windows.process(All(), FIRED),
}


@dataclass(frozen=True)
class Program:
    function: str
    size: int
    slide: int
    lateness: int

    def options(self, backend: str) -> dict[str, Any]:
        def operation(stream: Any, _: Any) -> Any:
            if self.size == self.slide:
                assigner: Any = TumblingEventTimeWindows.of(self.size)
            else:
                assigner = SlidingEventTimeWindows.of(self.size, self.slide)
            windows = stream.window(assigner).allowed_lateness(self.lateness).side_output_late_data(LATE)
            return FUNCTIONS[self.function](windows)

        return {
            "function": None,
            "key_selector": "user",
            "operation": operation,
            "input_type": VISIT,
            "backend": backend,
        }

    def windows_of(self, time: int) -> list[tuple[int, int]]:
        latest = time // self.slide * self.slide
        return [(start, start + self.size) for start in range(latest, time - self.size, -self.slide)]


@contextmanager
def batches_of(least: int | None, cache: int = LARGE_CACHE) -> Iterator[RowPath]:
    """The path of rows of which batches of so many and more are taken at a time; None: all rows one by one."""
    with caches_of(cache):
        yield path_of(least, cache)


def path_of(least: int | None, cache: int = LARGE_CACHE) -> RowPath:
    return RowPath(RowsBy.ONE) if least is None else RowPath(RowsBy.BATCH, least_rows=least, **limits_of(cache))


class VisitOracle(RowOracle):
    def result_of(self, key: Any, window: Window, rows: list[Row]) -> tuple[Any, ...]:
        return (key, *window, "".join(row[1] for row in rows))


VISITS = st.builds(Row, st.sampled_from("abc"), st.sampled_from("uvwxyz"))
PROGRAMS = st.builds(
    lambda function, size, slide, lateness: Program(function, size, slide or size, lateness),
    st.sampled_from(list(FUNCTIONS)),
    st.integers(1, 12),
    st.none() | st.integers(1, 15),
    st.sampled_from([0, 0, 1, 7]),
)


@st.composite
def stories(draw: Any, visits: st.SearchStrategy[Row] = VISITS) -> list[Step]:
    now, steps = draw(st.integers(-60, 20)), []
    for _ in range(draw(st.integers(1, 4))):
        rows = []
        for visit, time, ahead in draw(
            st.lists(st.tuples(visits, st.integers(-25, 12), st.sampled_from([0, 0, 1, 5])), min_size=1, max_size=14)
        ):
            now += ahead
            rows.append((visit, now + time, now))
        steps.append(Step(rows, draw(st.sampled_from(["go_on", "wait", "epoch", "another_worker", "rescale"]))))
    return steps


@pytest.mark.parametrize("backend", ["heap", "lmdb", "rocksdb"])
def test_batches_give_what_the_loop_and_the_rows_give(backend: str) -> None:
    @settings(max_examples=examples(100 if backend == "heap" else 10), deadline=None)
    @given(program=PROGRAMS, steps=stories(), least=st.sampled_from([1, 1, 5]), cache=st.sampled_from([2, LARGE_CACHE]))
    def check(program: Program, steps: list[Step], least: int, cache: int) -> None:
        oracle = VisitOracle(program.windows_of, lateness=program.lateness)
        for step in steps:
            for row, time, watermark in step.rows:
                oracle.advance(watermark)
                oracle.push_row(row, row[0], time)
        oracle.advance((1 << 63) - 1)
        with batches_of(None) as path:
            looped, late = Story(LATE, row_path=path, **program.options(backend)).run(steps)
        with batches_of(least, cache) as path:
            batched, late_of_batches = Story(LATE, row_path=path, **program.options(backend)).run(steps)
        assert batched == looped
        assert late_of_batches == late
        assert sorted(row for row, _ in looped) == sorted(oracle.fired)
        assert sorted(late) == sorted(map(tuple, oracle.late))

    check()


def over_a_restore(program: Program, ways: tuple[int | None, int | None], steps: list[Step]) -> Any:
    """What comes before and after a restore, each with rows of another way."""
    options, half = {"side_outputs": [LATE], **program.options("heap")}, len(steps) // 2
    with batches_of(ways[0]) as path:
        harnesses = KeyedOperatorHarness.parallel(1, row_path=path, **options)
        for step in steps[:half]:
            send(harnesses[0], step.rows)
            harnesses[0].end_epoch()
        snapshot = harnesses.snapshot()
        first = list(harnesses[0].timestamped_output())
        harnesses.close()
    with batches_of(ways[1]) as path:
        harness = KeyedOperatorHarness.restore(snapshot, row_path=path, **options)
        for step in steps[half:]:
            send(harness, step.rows)
        harness.end_input()
        found = first, list(harness.timestamped_output()), list(map(tuple, harness.side_output(LATE)))
        harness.close()
    return found


@settings(max_examples=examples(80), deadline=None)
@given(program=PROGRAMS, steps=stories())
def test_what_rows_of_one_way_have_stored_another_goes_on_with(program: Program, steps: list[Step]) -> None:
    expected = over_a_restore(program, (None, None), steps)
    for ways in ((None, 1), (1, None), (1, 1)):
        assert over_a_restore(program, ways, steps) == expected


@settings(max_examples=examples(60), deadline=None)
@given(
    program=PROGRAMS, steps=stories(st.builds(Row, st.sampled_from("ab"), st.sampled_from(["u", "v", "forget"])))
)
def test_functions_that_keep_nothing(program: Program, steps: list[Step]) -> None:
    with batches_of(None) as path:
        looped = Story(LATE, row_path=path, **program.options("heap")).run(steps)
    with batches_of(1) as path:
        assert Story(LATE, row_path=path, **program.options("heap")).run(steps) == looped


def test_a_row_that_fails_is_named() -> None:
    rows = [(Row("a", page), 5, 0) for page in ("u", "fail", "v")]
    (harness,) = KeyedOperatorHarness.parallel(
        1, side_outputs=[LATE], row_path=path_of(1), **Program("aggregate", 10, 10, 0).options("heap")
    )
    with pytest.raises(FunctionError, match=r"key 'a': ValueError: no such page; the row was .*fail"):
        send(harness, rows)
    harness.close()


def test_windows_with_another_trigger_go_one_by_one() -> None:
    def way(windows: Any) -> RowsBy:
        env = StreamExecutionEnvironment.get_execution_environment()
        keyed = env.from_collection([Row("a", "u")], VISIT).key_by("user")
        made = FUNCTIONS["reduce"](windows(keyed.window(TumblingEventTimeWindows.of(10))))._node
        return way_of(made.body, made.key_type)

    assert way(lambda windows: windows) is RowsBy.BATCH
    assert way(lambda windows: windows.trigger(CountTrigger.of(2))) is RowsBy.ONE


@settings(max_examples=examples(40), deadline=None)
@given(size=st.integers(1, 12), slide=st.integers(1, 12), steps=stories())
def test_functions_that_give_nothing(size: int, slide: int, steps: list[Step]) -> None:
    program = Program("rarely", size, slide, 0)
    with pytest.MonkeyPatch.context() as patch:
        types = Types.LIST(Types.STRING()), Types.STRING()
        patch.setitem(FUNCTIONS, "rarely", lambda windows: windows.aggregate(Rarely(), None, *types))
        with batches_of(None) as path:
            looped = Story(LATE, row_path=path, **program.options("heap")).run(steps)
        with batches_of(1) as path:
            assert Story(LATE, row_path=path, **program.options("heap")).run(steps) == looped


@pytest.mark.parametrize("function", FUNCTIONS)
def test_windows_that_begin_and_end_within_a_batch_are_never_in_the_state(
    function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed: list[Any] = []
    fire = FoldingByRow.fire_passing
    monkeypatch.setattr(
        FoldingByRow, "fire_passing", lambda self, one: passed.append(tuple(one.window)) or fire(self, one)
    )
    with batches_of(1) as path:
        harness = KeyedOperatorHarness(row_path=path, **Program(function, 10, 10, 0).options("heap"))
        send(harness, [(Row("b", "u"), 15, 0), (Row("a", "v"), 95, 0)])
        harness.end_epoch()
        # The window from 10 to 20 is in the state, as is one far ahead.
        rows = [("a", "w", 15, 0), ("c", "x", 25, 0), ("a", "y", 25, 12), ("b", "z", 41, 12), ("a", "v", 97, 49)]
        send(harness, [(Row(user, page), time, watermark) for user, page, time, watermark in rows])
        assert passed == [(20, 30), (40, 50)]
        assert harness.num_event_time_timers() == 1
        fired = [("a", 10, 20, "w"), ("b", 10, 20, "u"), ("a", 20, 30, "y"), ("c", 20, 30, "x"), ("b", 40, 50, "z")]
        out = [tuple(row) for row in harness.output()]
        assert sorted(out) == sorted(fired)
        assert [row[1] for row in out] == [10, 10, 20, 20, 40]
        harness.close()


def stored(harness: Any) -> int:
    """Entries of the state."""
    store = harness._backend().store
    return sum(1 for _ in store.scan(b"\x00", b"\xff"))


@pytest.mark.parametrize("fired_before", [False, True])
@pytest.mark.parametrize("least", [None, 1])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_windows_that_are_kept_longer_after_a_restore_go_in_the_end(
    function: str, least: int | None, fired_before: bool
) -> None:
    before, after = (Program(function, 10, 10, lateness).options("heap") for lateness in (3 if fired_before else 0, 7))
    with batches_of(least) as path:
        harness = KeyedOperatorHarness(row_path=path, **before)
        empty = stored(harness)
        send(harness, [(Row("a", "u"), 5, 0)])
        harness.advance_watermark(10 if fired_before else 0)
        snapshot, out = harness.snapshot(), list(harness.timestamped_output())
        harness.close()
        harness = KeyedOperatorHarness.restore(snapshot, row_path=path, **after)
        for watermark in (10, 12, 16):
            harness.advance_watermark(watermark)
            rows = out + list(harness.timestamped_output())
            assert [tuple(row) for row, _ in rows] == [("a", 0, 10, "u")]
        harness.end_epoch()
        assert stored(harness) == empty
        harness.close()


@pytest.mark.parametrize("least", [None, 1])
def test_a_row_of_two_windows_may_be_changed_in_each(least: int | None) -> None:
    with batches_of(least) as path:
        harness = KeyedOperatorHarness(row_path=path, **Program("process", 10, 5, 0).options("heap"))
        send(harness, [(Row("a", "u"), 7, 0), (Row("a", "v"), 30, 20)])
        assert [tuple(row) for row in harness.output()] == [("a", 0, 10, "u"), ("a", 5, 15, "u")]
        harness.close()


@pytest.mark.parametrize("least", [None, 1])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_rows_that_come_behind_a_watermark_with_a_lower_one_are_late(function: str, least: int | None) -> None:
    """As those of a channel that was idle."""
    with batches_of(least) as path:
        program = Program(function, 10, 10, 0).options("heap")
        harness = KeyedOperatorHarness(side_outputs=[LATE], row_path=path, **program)
        epochs = harness._epochs
        send(harness, [(Row("a", "u"), 45, 0)], waiting=True)
        (target,) = epochs.inputs
        target.send_status(ChannelStatus(30, False, False))
        epochs._deliver()
        send(harness, [(Row("a", "v"), 5, 0)], waiting=True)
        harness.end_input()
        assert [tuple(row) for row in harness.output()] == [("a", 40, 50, "u")]
        assert [tuple(row) for row in harness.side_output(LATE)] == [("a", "v")]
        harness.close()


class Cleaning(ProcessWindowFunction):
    """Counts its windows in state of each, which it removes with the window."""

    seen = ValueStateDescriptor("seen", Types.LONG())

    def process(self, key: str, context: ProcessWindowFunction.Context, elements: Iterable[Any]) -> Iterable[Any]:
        seen, window = context.window_state().get_state(self.seen), context.window()
        seen.update((seen.value() or 0) + 1)
        yield key, window.start, window.end, str(seen.value())

    def clear(self, context: ProcessWindowFunction.Context) -> None:
        context.window_state().get_state(self.seen).clear()


@pytest.mark.parametrize("least", [None, 1])
def test_what_a_function_keeps_for_a_window_goes_with_it(least: int | None) -> None:
    def operation(stream: Any, _: Any) -> Any:
        return stream.window(TumblingEventTimeWindows.of(10)).process(Cleaning(), FIRED)

    with batches_of(least) as path:
        options: Any = {"operation": operation, "input_type": VISIT, "backend": "heap", "row_path": path}
        harness = KeyedOperatorHarness(None, "user", **options)
        empty = stored(harness)
        send(harness, [(Row("x", "u"), 1, 0), (Row("y", "u"), 2, 0), (Row("x", "u"), 12, 0), (Row("x", "u"), 35, 19)])
        harness.end_epoch().advance_watermark(50).end_epoch()
        out = [("x", 0, 10, "1"), ("x", 10, 20, "1"), ("x", 30, 40, "1"), ("y", 0, 10, "1")]
        assert sorted(map(tuple, harness.output())) == out
        assert stored(harness) == empty
        harness.close()


class Counting(ProcessWindowFunction):
    """A window function whose reduce function counts its calls in state of the key."""

    def open(self, runtime_context: Any) -> None:
        self.calls = runtime_context.get_state(ValueStateDescriptor("calls", Types.LONG()))

    def reduce(self, first: Row, second: Row) -> Row:
        self.calls.update((self.calls.value() or 0) + 1)
        return joined(first, second)

    def process(self, key: str, context: ProcessWindowFunction.Context, elements: Iterable[Any]) -> Iterable[Any]:
        window = context.window()
        yield key, window.start, window.end, str(self.calls.value())


@pytest.mark.parametrize("least", [None, 1])
def test_a_function_has_the_state_of_its_key(least: int | None) -> None:
    function = Counting()

    def operation(stream: Any, _: Any) -> Any:
        return stream.window(TumblingEventTimeWindows.of(10)).reduce(function.reduce, function, FIRED)

    with batches_of(least) as path:
        options: Any = {"operation": operation, "input_type": VISIT, "backend": "heap", "row_path": path}
        harness = KeyedOperatorHarness(None, "user", **options)
        send(harness, [(Row("x", "u"), 1, 0), (Row("z", "u"), 1, 11)])
        send(harness, [(Row(user, "u"), 22, 11) for user in "xxyyy"])
        harness.end_input()
        assert sorted(harness.output())[1:] == [("x", 20, 30, "1"), ("y", 20, 30, "2")]
        harness.close()
