"""Evictors, windows of all rows and of counts, and windows of a program's own, in a harness."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from holdfast.common import Types
from holdfast.datastream import (
    AllWindowFunction,
    CheckpointedFunction,
    DataStream,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    OutputTag,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    RuntimeContext,
    WindowFunction,
)
from holdfast.datastream.state import ListStateDescriptor
from holdfast.datastream.window import (
    CountEvictor,
    CountTrigger,
    DeltaEvictor,
    EventTimeTrigger,
    Evictor,
    EvictorContext,
    GlobalWindows,
    PurgingTrigger,
    TimeEvictor,
    TimestampedValue,
    Trigger,
    TumblingEventTimeWindows,
    Window,
    WindowAssigner,
    WindowSerializer,
)
from holdfast.testing import KeyedOperatorHarness
from tests.testing.window_functions import PAIR, AddPairs, SumInPlace, harness

TEN = TumblingEventTimeWindows.of(10)


def fired(evictor: Evictor, values: list[int], rounds: int = 1) -> list[Any]:
    """What is summed when every ``len(values)`` rows fire."""
    windows = harness(
        lambda s: s.window(GlobalWindows.create()).trigger(CountTrigger.of(len(values))).evictor(evictor).apply(Rows())
    )
    for _ in range(rounds):
        windows.push_all([("a", value) for value in values], values).end_epoch().forget_live_objects()
    return windows.output()


class Rows(WindowFunction):
    def apply(self, key: str, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        return [[value for _, value in inputs]]


def test_evictors() -> None:
    values = [1, 2, 5, 9, 10]
    assert fired(CountEvictor.of(2), values, 2) == [[9, 10], [9, 10]]
    assert fired(CountEvictor.of(2, do_evict_after=True), values, 2) == [values, [9, 10, *values]]
    assert fired(TimeEvictor.of(5), values) == [[9, 10]]
    assert fired(TimeEvictor.of(5, True), values, 2) == [values, [9, 10, *values]]
    assert fired(DeltaEvictor.of(6, lambda one, last: last[1] - one[1]), values) == [[5, 9, 10]]
    assert fired(CountEvictor.of(0), values) == [[]]


class OddOnes(Evictor):
    def evict_before(self, elements: list[TimestampedValue], size: int, window: Any, ctx: EvictorContext) -> None:
        assert size == len(elements) and ctx.get_current_watermark() < 0 < ctx.get_current_processing_time() + 1
        elements[:] = [e for e in elements if e.value[1] % 2]

    def evict_after(self, elements: list[TimestampedValue], size: int, window: Any, ctx: EvictorContext) -> None:
        del elements[0]


def test_an_evictor_of_ones_own() -> None:
    assert fired(OddOnes(), [1, 2, 3], 2) == [[1, 3], [3, 1, 3]]


# -- all rows together


class AllRows(ProcessAllWindowFunction):
    def process(self, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        yield context.window().start, sorted(value for _, value in elements)


class AllApplied(AllWindowFunction):
    def apply(self, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        return [(window.start, sorted(value for _, value in inputs))]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (lambda w: w.process(AllRows()), [(0, [1, 2]), (10, [4])]),
        (lambda w: w.apply(AllApplied()), [(0, [1, 2]), (10, [4])]),
        (lambda w: w.reduce(AddPairs()), [("a", 3), ("c", 4)]),
        (lambda w: w.aggregate(SumInPlace()), [3, 4]),
        (lambda w: w.evictor(CountEvictor.of(1)).process(AllRows()), [(0, [2]), (10, [4])]),
    ],
)
def test_windows_of_all_rows(kind: Any, expected: list[Any]) -> None:
    windows = KeyedOperatorHarness(
        None, lambda row: 0, Types.BYTE(), operation=lambda s, _: kind(DataStream.window_all(s, TEN)), input_type=PAIR
    )
    windows.push_all([("a", 1), ("b", 2), ("c", 4)], [1, 2, 13]).end_input()
    assert windows.output() == expected


def test_count_windows() -> None:
    rows = [("a", 1), ("b", 10), ("a", 2), ("a", 3), ("b", 20), ("a", 4), ("a", 5)]
    tumbling = harness(lambda s: s.count_window(2).reduce(AddPairs()))
    tumbling.push_all(rows[:3]).end_epoch().forget_live_objects().push_all(rows[3:]).end_input()
    assert tumbling.output() == [("a", 3), ("b", 30), ("a", 7)]
    sliding = harness(lambda s: s.count_window(3, 1).reduce(AddPairs()))
    sliding.push_all(rows).end_input()
    assert sliding.output() == [("a", 6), ("a", 9), ("a", 12)]


# -- a program's own


@dataclass(frozen=True)
class Site(Window):
    name: str
    hour: int

    def max_timestamp(self) -> int:
        return self.hour * 10 + 9


class BySite(WindowAssigner):
    def assign_windows(self, element: Any, timestamp: int, context: Any) -> Collection[Site]:
        return [Site(name, timestamp // 10) for name in ("all", f"n{element[1] % 2}")]

    def get_default_trigger(self, env: Any) -> Trigger:
        return PurgingTrigger.of(EventTimeTrigger.create())

    def get_window_serializer(self) -> Any:
        return WindowSerializer(Site)

    def is_event_time(self) -> bool:
        return True


class SiteSums(ProcessWindowFunction):
    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        yield key, context.window().name, context.window().hour, sum(value for _, value in elements)


def test_windows_of_ones_own() -> None:
    windows = harness(lambda s: s.window(BySite()).process(SiteSums()))
    windows.push_all([("a", 1), ("a", 2), ("a", 3)], [1, 2, 13]).end_epoch().forget_live_objects()
    windows.advance_watermark(9)
    assert sorted(windows.take_output()) == [("a", "all", 0, 3), ("a", "n0", 0, 2), ("a", "n1", 0, 1)]
    restored = KeyedOperatorHarness.restore(
        windows.snapshot(),
        None,
        lambda row: row[0],
        Types.STRING(),
        operation=lambda s, _: s.window(BySite()).process(SiteSums()),
        input_type=PAIR,
    )
    restored.end_input()
    assert sorted(restored.output()) == [("a", "all", 1, 3), ("a", "n1", 1, 3)]


class Remembering(ProcessWindowFunction):
    """Has a field and state from ``open``."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = 0
        self.all = runtime_context.get_list_state(ListStateDescriptor("all", Types.LONG()))

    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        self.seen += 1
        self.all.add_all([value for _, value in elements])
        yield self.seen, list(self.all.get())


def test_fields_and_state_of_window_functions() -> None:
    windows = harness(lambda s: s.window(TEN).process(Remembering()))
    for start in range(0, 30, 10):
        windows.push(("a", start), start).advance_watermark(start + 9).end_epoch().forget_live_objects()
    assert windows.output() == [(1, [0]), (2, [0, 10]), (3, [0, 10, 20])]


LARGE = OutputTag("large", Types.LONG())


class Checkpointed(ProcessWindowFunction, CheckpointedFunction):
    """Numbers the windows of its subtask, from operator state, and reports large ones aside."""

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        self.stored = context.get_operator_state_store().get_list_state(ListStateDescriptor("windows", Types.LONG()))
        self.windows = sum(self.stored.get())

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.stored.update([self.windows])

    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        self.windows += 1
        total = sum(value for _, value in elements)
        if total > 10:
            yield LARGE, total
        yield key, self.windows


def test_window_functions_with_operator_state_and_side_outputs() -> None:
    options: Any = {
        "operation": lambda stream, function: stream.window(TEN).process(function),
        "input_type": PAIR,
        "side_outputs": [LARGE],
    }
    arguments: Any = (Checkpointed(), lambda row: row[0], Types.STRING())
    windows = KeyedOperatorHarness(*arguments, **options)
    windows.push_all([("a", 8), ("a", 9)], [1, 2]).advance_watermark(9)
    restored = KeyedOperatorHarness.restore(windows.snapshot(), *arguments, **options)
    restored.push(("a", 1), 11).end_input()
    assert (windows.output(), restored.output()) == ([("a", 1)], [("a", 2)])
    assert (windows.side_output(LARGE), restored.side_output(LARGE)) == ([17], [])
