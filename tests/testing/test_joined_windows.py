"""Windows of two streams: batches of rows, which wait for each other over both, give what the loop over rows gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.common import Row, Types
from holdfast.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows
from holdfast.datastream.window_functions import CoGroupFunction
from holdfast.runtime.row_path import RowPath, RowsBy
from holdfast.testing import ConnectedHarness
from holdfast.testing.epochs import Epochs
from tests.kit.properties import examples

PAGE = Types.ROW_NAMED(["user", "page"], [Types.STRING(), Types.STRING()])
PAIR = Types.TUPLE([Types.STRING(), Types.STRING()])


class Sides(CoGroupFunction):
    """The pages of both sides, in their order; changes the rows."""

    def co_group(self, first: Iterable[Row], second: Iterable[Row]) -> Iterator[tuple[str, str]]:
        sides = [list(first), list(second)]
        (user,) = {row[0] for side in sides for row in side}
        yield user, "|".join("".join(row[1] for row in side) for side in sides)
        for side in sides:
            for row in side:
                row[1] = "changed"


def run(events: list[tuple[Any, ...]], size: int, slide: int, backend: str, path: RowPath) -> list[Any]:
    """Rows and what happens between them, one by one or by batches."""
    windows: Any = TumblingEventTimeWindows.of(size) if size == slide else SlidingEventTimeWindows.of(size, slide)
    with ConnectedHarness(
        Sides(),
        operation=lambda one, two, function: (
            one.co_group(two).where("user").equal_to("user").window(windows).apply(function, PAIR)
        ),
        input_type=PAGE,
        second_input_type=PAGE,
        backend=backend,
        row_path=path,
    ) as harness:
        for what, *how in events:
            getattr(harness, what)(*how)
        harness.end_input()
        return harness.timestamped_output()


@st.composite
def histories(draw: Any) -> list[tuple[Any, ...]]:
    now, events = 0, list[tuple[Any, ...]]()
    for _ in range(draw(st.integers(1, 6))):
        what = draw(st.sampled_from(["push_all1", "push_all1", "push_all2", "push_all2", "end_epoch"]))
        if what == "end_epoch":
            events.append((what,))
            continue
        pages = st.builds(Row, st.sampled_from("ab"), st.sampled_from("uvwxyz"))
        rows = draw(st.lists(st.tuples(pages, st.integers(-15, 25)), min_size=1, max_size=10))
        events.append((what, [row for row, _ in rows], [now + time for _, time in rows]))
        now += draw(st.sampled_from([0, 5, 30]))
        events.append(("advance_watermark", now))
    return events


@pytest.mark.parametrize("backend", ["heap", "lmdb"])
def test_batches_give_what_the_loop_gives(backend: str) -> None:
    @settings(max_examples=examples(100 if backend == "heap" else 10), deadline=None)
    @given(events=histories(), size=st.integers(1, 12), slide=st.none() | st.integers(1, 15), waiting=st.booleans())
    def check(events: list[tuple[Any, ...]], size: int, slide: int | None, waiting: bool) -> None:
        windows = size, slide or size
        looped = run(events, *windows, backend, RowPath(RowsBy.ONE))
        with pytest.MonkeyPatch.context() as patch:
            if waiting:
                patch.setattr(Epochs, "_end_waiting_rows", lambda self: None)
            assert run(events, *windows, backend, RowPath(RowsBy.BATCH, least_rows=1)) == looped

    check()
