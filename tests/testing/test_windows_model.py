"""Windows of all kinds against an oracle: any rows, any watermarks, epochs, restores and other parallelisms between."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.common import Types
from holdfast.datastream import KeyedStream, OutputTag
from holdfast.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from holdfast.state import keyed_backend
from holdfast.state.lmdb.backend import LmdbBackend
from holdfast.testing import KeyedOperatorHarness
from tests.testing.window_functions import KINDS, PAIR, windowed
from tests.testing.window_oracle import WindowOracle, session, sliding, tumbling

LATE = OutputTag("late", PAIR)
KEYS = "abcdefgh"

ASSIGNERS: dict[str, tuple[Callable[[], WindowAssigner[Any, Any]], Callable[[int], Any], bool]] = {
    "tumbling": (lambda: TumblingEventTimeWindows.of(10), tumbling(10), False),
    "sliding": (lambda: SlidingEventTimeWindows.of(10, 4), sliding(10, 4), False),
    "session": (lambda: EventTimeSessionWindows.with_gap(6), session(6), True),
}


class Story:
    """All subtasks of an operator, and the oracle. Every step ends with a comparison of what came out."""

    def __init__(self, assigner: str, kind: str, lateness: int, backend: str, seed: int) -> None:
        make, assign, merging = ASSIGNERS[assigner]
        self.oracle = WindowOracle(assign, merging, lateness)
        self.chance = random.Random(seed)
        self.time = 0

        def windows(stream: KeyedStream) -> Any:
            return stream.window(make()).allowed_lateness(lateness).side_output_late_data(LATE)

        options: Any = {
            "operation": windowed(kind, windows),
            "input_type": PAIR,
            "side_outputs": [LATE],
            "backend": backend,
            "max_parallelism": 16,
        }
        self.harnesses = KeyedOperatorHarness.parallel(1, None, first, Types.STRING(), **options)
        self.late: list[Any] = []

    def rows(self) -> None:
        count = self.chance.randrange(1, 8)
        rows = [(self.chance.choice(KEYS), self.chance.randrange(100)) for _ in range(count)]
        times = [max(0, self.time + self.chance.randrange(-25, 15)) for _ in rows]
        self.harnesses.push_all(rows, times)
        for row, time in zip(rows, times, strict=True):
            self.oracle.push(row, time)

    def watermark(self) -> None:
        self.time += self.chance.randrange(0, 12)
        self.harnesses.advance_watermark(self.time)
        self.oracle.advance(self.time)

    def epoch(self) -> None:
        self.harnesses.end_epoch()

    def another_worker(self) -> None:
        for harness in self.harnesses:
            harness.end_epoch().forget_live_objects()

    def restore(self) -> None:
        """Go on from a snapshot, with any parallelism."""
        parallelism = self.chance.choice([1, 2, 5])
        snapshot = self.harnesses.snapshot()
        self.check()
        self.late += self.harnesses.side_output(LATE)
        self.harnesses = self.harnesses.rescaled(parallelism, snapshot)
        if self.oracle.watermark >= 0:
            self.harnesses.advance_watermark(self.oracle.watermark)

    def check(self) -> None:
        assert sorted(self.harnesses.take_output()) == self.oracle.take()
        late = self.late + self.harnesses.side_output(LATE)
        assert sorted(late) == sorted(self.oracle.late)

    def end(self) -> None:
        self.harnesses.end_input()
        self.oracle.advance((1 << 63) - 1)
        self.check()
        assert [harness.num_event_time_timers() for harness in self.harnesses] == [0] * len(self.harnesses)
        self.harnesses.close()


def first(row: Any) -> Any:
    return row[0]


STEPS = ["rows"] * 6 + ["watermark"] * 3 + ["epoch", "another_worker", "restore"]


def run(story: Story, steps: int) -> None:
    for _ in range(steps):
        getattr(story, story.chance.choice(STEPS))()
        story.check()
    story.end()


@pytest.mark.parametrize(("kind", "lateness"), [*((kind, 9) for kind in KINDS), ("process", 0), ("aggregate", 0)])
@pytest.mark.parametrize("assigner", ASSIGNERS)
def test_windows_give_what_the_oracle_gives(assigner: str, kind: str, lateness: int) -> None:
    for seed in range(2):
        run(Story(assigner, kind, lateness, "heap", seed), steps=35)


@pytest.mark.parametrize("backend", ["lmdb", "rocksdb"])
@pytest.mark.parametrize("assigner", ASSIGNERS)
def test_windows_in_other_backends(assigner: str, backend: str) -> None:
    for kind in ("process", "aggregate"):
        run(Story(assigner, kind, 9, backend, seed=7), steps=40)


@pytest.mark.parametrize("kind", ["process", "aggregate"])
@pytest.mark.parametrize("assigner", ASSIGNERS)
def test_windows_that_do_not_fit_into_the_cache(monkeypatch: pytest.MonkeyPatch, assigner: str, kind: str) -> None:
    """Contents are written and read again in the middle of rows, timers and merges."""
    monkeypatch.setattr(keyed_backend, "_EPOCH_CACHE", 2)
    monkeypatch.setattr(LmdbBackend, "cache_limit", 2)
    run(Story(assigner, kind, 9, "lmdb", seed=5), steps=40)
