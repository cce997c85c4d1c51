"""Which way the rows of windows take."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.common import Row, Types
from holdfast.datastream import StreamExecutionEnvironment
from holdfast.datastream.aggregates import Count
from holdfast.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
)
from holdfast.datastream.window_functions import WindowFunction
from holdfast.errors import ProgramError
from holdfast.runtime.row_path import RowPath, RowsBy
from holdfast.runtime.windowing.operator import WindowOperator
from holdfast.runtime.windowing.ways import way_of

ONE, BATCH, COLUMN, SESSION = RowsBy
VISIT = Types.ROW_NAMED(["user", "page", "weight"], [Types.STRING(), Types.STRING(), Types.DOUBLE()])
HOURS, GAP = TumblingEventTimeWindows.of(10), EventTimeSessionWindows.with_gap(5)


class Nothing(WindowFunction):
    def apply(self, key: Any, window: Any, inputs: Any) -> Any:
        return None


FUNCTIONS: dict[str, Any] = {
    "listed": lambda windows: windows.apply(Nothing()),
    "reduced": lambda windows: windows.reduce(lambda one, other: other),
    "known": lambda windows: windows.aggregate(rows=Count()),
}

#: Windows, the contents that they have, and the ways that their rows can take, the fastest first.
CASES: list[tuple[Any, str, list[RowsBy]]] = [
    (lambda s: s.window(HOURS), "listed", [BATCH, ONE]),
    (lambda s: s.window(HOURS), "reduced", [BATCH, ONE]),
    (lambda s: s.window(HOURS), "known", [COLUMN, BATCH, ONE]),
    (lambda s: s.window(HOURS).allowed_lateness(3), "known", [COLUMN, BATCH, ONE]),
    (lambda s: s.window(SlidingProcessingTimeWindows.of(10, 5)), "known", [COLUMN, BATCH, ONE]),
    (lambda s: s.window(HOURS).trigger(CountTrigger.of(2)), "known", [ONE]),
    (lambda s: s.window(HOURS).evictor(CountEvictor.of(2)), "known", [ONE]),
    (lambda s: s.window(HOURS).evictor(CountEvictor.of(2)), "listed", [ONE]),
    (lambda s: s.window(GAP), "listed", [ONE]),
    (lambda s: s.window(GAP), "reduced", [SESSION, ONE]),
    (lambda s: s.window(GAP), "known", [SESSION, ONE]),
    (lambda s: s.window(ProcessingTimeSessionWindows.with_gap(5)), "reduced", [ONE]),
    (lambda s: s.count_window(2), "known", [ONE]),
]


def node(windows: Any, contents: str, by: RowsBy | None, key: str = "user") -> Any:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.row_path = RowPath(by)
    keyed = env.from_collection([Row("a", "u", 1.0)], VISIT).key_by(key)
    return FUNCTIONS[contents](windows(keyed))._node


@pytest.mark.parametrize(("windows", "contents", "ways"), CASES)
def test_the_fastest_way_unless_it_is_told(windows: Any, contents: str, ways: list[RowsBy]) -> None:
    for told in (None, *RowsBy):
        made = node(windows, contents, told)
        assert made.factory is WindowOperator
        if told is None or told in ways:
            assert way_of(made.body, made.key_type) is (told or ways[0])
            continue
        others = " or ".join(way.value for way in ways)
        with pytest.raises(ProgramError, match=f"told to go into .* {told.value}.*can go {others}"):
            way_of(made.body, made.key_type)


def test_keys_that_are_the_same_to_python_alone() -> None:
    made = node(lambda s: s.window(HOURS), "known", None, "weight")
    assert way_of(made.body, made.key_type) is BATCH, "0.0 and -0.0 are one key"
