"""The set of a key's windows that merge, against the times that they cover."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holdfast.datastream.window import EventTimeSessionWindows
from holdfast.runtime.windowing.merging import MergingWindowSet
from holdfast.runtime.windowing.serializers import TimeWindowSerializer
from holdfast.runtime.windowing.windows import TimeWindow


class Stored:
    """A value state of one key, whose values become what they are when they are read from the store."""

    def __init__(self) -> None:
        self.pairs: Any = None

    def state(self, descriptor: Any, namespace_type: Any = None, owned: bool = False) -> Stored:
        return self

    def value(self) -> Any:
        return self.pairs

    def update(self, pairs: Any) -> None:
        self.pairs = pairs and [tuple(tuple(window) for window in pair) for pair in pairs]


class Key:
    """The set, and the contents by namespace, as the operator keeps them."""

    def __init__(self) -> None:
        self.stored = Stored()
        assigner: Any = EventTimeSessionWindows.with_gap(5)
        # Ignored: it is asked for no more than this has.
        self.windows = MergingWindowSet(self.stored, assigner, TimeWindowSerializer())  # type: ignore[arg-type]
        self.contents: dict[TimeWindow, list[int]] = {}
        self.merges: list[Any] = []
        #: Windows that end until then are over.
        self.now = -1

    def is_over(self, result: TimeWindow, group: list[Any]) -> bool:
        return result.end <= self.now

    def merge(self, result: TimeWindow, group: list[Any], holder: TimeWindow, others: list[Any]) -> None:
        self.merges.append((result, set(group)))
        for other in others:
            self.contents[holder] += self.contents.pop(other)

    def add(self, time: int, gap: int = 5) -> tuple[TimeWindow, TimeWindow]:
        added = self.windows.add(TimeWindow(time, time + gap), self.merge, self.is_over)
        assert added is not None
        window, holder = added
        self.contents.setdefault(holder, []).append(time)
        return window, holder

    def sessions(self) -> dict[TimeWindow, list[int]]:
        windows = [TimeWindow(*window) for window, _ in self.stored.pairs or ()]
        return {window: sorted(self.contents[self.windows.state_window(window)]) for window in windows}


rows = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)), min_size=1, max_size=25)


@given(rows, st.randoms(use_true_random=False))
def test_sessions_do_not_depend_on_the_order_of_rows(all_rows: list[tuple[int, int]], random: Any) -> None:
    shuffled = list(all_rows)
    random.shuffle(shuffled)
    one, other = Key(), Key()
    for row in all_rows:
        one.add(*row)
    for row in shuffled:
        other.add(*row)
    assert one.sessions() == other.sessions()
    covered = sorted({time for start, gap in all_rows for time in range(start, start + gap + 1)})
    ends = [t for t in covered if t + 1 not in covered]
    starts = [t for t in covered if t - 1 not in covered]
    # Windows that only lie next to each other do not touch: [0, 1) and [2, 3) have the time 1 to 2 between them.
    assert sum(len(rows) for rows in one.sessions().values()) == len(all_rows)
    assert {w.start for w in one.sessions()} >= set(starts) and {w.end for w in one.sessions()} >= set(ends)


def test_a_window_that_is_over_takes_no_others() -> None:
    key = Key()
    key.add(0)
    before, key.now = key.stored.pairs, 9
    for time in (0, 3):
        assert key.windows.add(TimeWindow(time, time + 5), key.merge, key.is_over) is None
    assert key.stored.pairs == before and not key.merges
    assert key.add(5) == (TimeWindow(0, 10), TimeWindow(0, 5))


def test_a_session_that_grows_keeps_its_namespace() -> None:
    key = Key()
    assert key.add(0) == (TimeWindow(0, 5), TimeWindow(0, 5))
    assert key.add(3) == (TimeWindow(0, 8), TimeWindow(0, 5))
    assert key.add(20) == (TimeWindow(20, 25), TimeWindow(20, 25))
    assert key.add(1) == (TimeWindow(0, 8), TimeWindow(0, 5))
    assert key.merges == [(TimeWindow(0, 8), {TimeWindow(0, 5)})], "a row inside of a session merges nothing"
    window, holder = key.add(8, gap=12)
    assert window == TimeWindow(0, 25) and key.contents == {holder: [0, 3, 1, 20, 8]}
    assert key.merges[-1] == (TimeWindow(0, 25), {TimeWindow(0, 8), TimeWindow(20, 25)})


def test_a_window_that_is_gone() -> None:
    key = Key()
    key.add(0)
    key.add(20)
    key.windows.retire(TimeWindow(0, 5))
    assert key.windows.state_window(TimeWindow(0, 5)) is None
    assert list(key.sessions()) == [TimeWindow(20, 25)]
    key.windows.retire(TimeWindow(20, 25))
    assert key.stored.pairs is None, "a key without windows has no state"
