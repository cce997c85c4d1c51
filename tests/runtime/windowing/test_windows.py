"""Windows as values, and the arithmetic that merges them."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import ProgramError
from holdfast.runtime.windowing.serializers import (
    CountWindowSerializer,
    GlobalWindowSerializer,
    TimeWindowSerializer,
    WindowSerializer,
    window_serializer,
)
from holdfast.runtime.windowing.windows import MAX_TIMESTAMP, CountWindow, GlobalWindow, TimeWindow, Window
from holdfast.state.keys import KeyCodec


def test_windows_are_values() -> None:
    assert TimeWindow(1, 5) == TimeWindow(1, 5) != TimeWindow(1, 6)
    assert len({TimeWindow(1, 5), TimeWindow(1, 5), CountWindow(3), CountWindow(3), GlobalWindow()}) == 3
    assert (TimeWindow(1, 5).start, TimeWindow(1, 5).end, TimeWindow(1, 5).max_timestamp()) == (1, 5, 4)
    assert (CountWindow(7).id, CountWindow(7).max_timestamp()) == (7, MAX_TIMESTAMP)
    assert GlobalWindow() is GlobalWindow.get() and GlobalWindow().max_timestamp() == MAX_TIMESTAMP
    assert [repr(w) for w in (TimeWindow(1, 5), CountWindow(7), GlobalWindow())] == [
        "TimeWindow(start=1, end=5)",
        "CountWindow(id=7)",
        "GlobalWindow",
    ]
    assert all(isinstance(w, Window) for w in (TimeWindow(1, 5), CountWindow(7), GlobalWindow()))


@pytest.mark.parametrize("window", [TimeWindow(-3, 5), CountWindow(7), GlobalWindow()])
def test_windows_travel(window: Any) -> None:
    copied = pickle.loads(pickle.dumps(window))
    assert copied == window and type(copied) is type(window)


@dataclass(frozen=True)
class Shift:
    """A window of a program's own."""

    site: str
    day: int

    def max_timestamp(self) -> int:
        return self.day * 86_400_000 + 86_399_999


class OddSerializer:
    """PyFlink's contract."""

    def serialize(self, element: Shift, stream: BytesIO) -> None:
        stream.write(f"{element.site}|{element.day}".encode())

    def deserialize(self, stream: BytesIO) -> Shift:
        site, day = stream.read().decode().split("|")
        return Shift(site, int(day))


@pytest.mark.parametrize(
    ("given_serializer", "window"),
    [
        (TimeWindowSerializer(), TimeWindow(-(1 << 40), 5)),
        (CountWindowSerializer(), CountWindow(1 << 40)),
        (GlobalWindowSerializer(), GlobalWindow()),
        (WindowSerializer(Shift), Shift("x", 4)),
        (OddSerializer(), Shift("x", 4)),
    ],
)
def test_windows_come_back_from_stored_keys(given_serializer: Any, window: Any) -> None:
    serializer = window_serializer(given_serializer)
    codec = KeyCodec.for_type(serializer.type_info)
    restored = serializer.restore(codec.decode(codec.encode(serializer.namespace(window))))
    assert restored == window and type(restored) is type(window)


def test_what_is_no_serializer_is_refused() -> None:
    with pytest.raises(ProgramError, match="WindowSerializer"):
        window_serializer("TimeWindow")


class Merged:
    def __init__(self) -> None:
        self.groups: dict[TimeWindow, set[TimeWindow]] = {}

    def merge(self, to_be_merged: Any, merge_result: TimeWindow) -> None:
        self.groups[merge_result] = set(to_be_merged)


def test_windows_that_touch_merge() -> None:
    merged = Merged()
    TimeWindow.merge_windows([TimeWindow(2, 4), TimeWindow(10, 11), TimeWindow(1, 2), TimeWindow(5, 6)], merged)
    assert merged.groups == {TimeWindow(1, 4): {TimeWindow(1, 2), TimeWindow(2, 4)}}


windows = st.builds(lambda start, size: TimeWindow(start, start + size), st.integers(-50, 50), st.integers(1, 12))


def covered(all_windows: list[TimeWindow]) -> dict[TimeWindow, set[TimeWindow]]:
    """By the times that each covers, its end included: windows that touch have that time in common."""
    groups: list[tuple[set[int], set[TimeWindow]]] = []
    for window in all_windows:
        times, members = set(range(window.start, window.end + 1)), {window}
        for group in [g for g in groups if g[0] & times]:
            groups.remove(group)
            times |= group[0]
            members |= group[1]
        groups.append((times, members))
    return {TimeWindow(min(times), max(times)): members for times, members in groups if len(members) > 1}


@given(st.lists(windows, unique=True, max_size=12), st.randoms(use_true_random=False))
def test_merging_does_not_depend_on_order(all_windows: list[TimeWindow], random: Any) -> None:
    shuffled = list(all_windows)
    random.shuffle(shuffled)
    merged, again = Merged(), Merged()
    TimeWindow.merge_windows(all_windows, merged)
    TimeWindow.merge_windows(shuffled, again)
    assert merged.groups == again.groups == covered(all_windows)


@given(st.integers(-(1 << 50), 1 << 50), st.integers(1, 10_000), st.data())
def test_the_start_of_a_window(timestamp: int, size: int, data: st.DataObject) -> None:
    offset = data.draw(st.integers(-size + 1, size - 1))
    start = TimeWindow.get_window_start_with_offset(timestamp, offset, size)
    assert start <= timestamp < start + size
    assert (start - offset) % size == 0
