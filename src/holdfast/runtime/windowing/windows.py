"""Windows: groups of rows of a key, each with a time by which all its rows should have come."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from operator import itemgetter
from typing import Any, Protocol

#: The end of time.
MAX_TIMESTAMP = (1 << 63) - 1


class Window(ABC):
    """A window is a value: equal ones are one window. See ``WindowSerializer`` for windows of your own."""

    __slots__ = ()

    @abstractmethod
    def max_timestamp(self) -> int:
        """The greatest time that still belongs to the window."""


class MergeCallback(Protocol):
    """What ``merge_windows`` tells of its results."""

    def merge(self, to_be_merged: Iterable[Any], merge_result: Any) -> None: ...


class TimeWindow(Window, tuple[int, int]):
    """The time from ``start``, inclusive, to ``end``, exclusive, in milliseconds."""

    # A tuple, because windows are keys of dicts for every row: so hashing and comparing them takes no Python.
    __slots__ = ()

    def __new__(cls, start: int, end: int) -> TimeWindow:
        return tuple.__new__(cls, (start, end))

    def __getnewargs__(self) -> tuple[int, int]:
        return self[0], self[1]

    start: int = property(itemgetter(0))  # type: ignore[assignment]  # a name of a part
    end: int = property(itemgetter(1))  # type: ignore[assignment]  # a name of a part

    def max_timestamp(self) -> int:
        return self[1] - 1

    def intersects(self, other: TimeWindow) -> bool:
        """Whether they have a time in common, or touch: windows that touch are merged."""
        return self[0] <= other[1] and self[1] >= other[0]

    def cover(self, other: TimeWindow) -> TimeWindow:
        """The least window that covers both."""
        return TimeWindow(min(self[0], other[0]), max(self[1], other[1]))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """The start of the window of a size that ``timestamp`` is in, where one window starts at ``offset``."""
        return timestamp - (timestamp - offset) % window_size

    @staticmethod
    def merge_windows(windows: Iterable[TimeWindow], callback: MergeCallback) -> None:
        """Tell ``callback`` of every group of two windows or more that intersect, directly or through others."""
        group: list[TimeWindow] = []
        merged: TimeWindow | None = None
        for window in sorted(windows):
            if merged is not None and merged.intersects(window):
                merged = merged.cover(window)
                group.append(window)
                continue
            if merged is not None and len(group) > 1:
                callback.merge(group, merged)
            merged, group = window, [window]
        if merged is not None and len(group) > 1:
            callback.merge(group, merged)

    def __repr__(self) -> str:
        return f"TimeWindow(start={self[0]}, end={self[1]})"


class CountWindow(Window, tuple[int]):
    """A number of rows of a key, with a number of its own."""

    __slots__ = ()

    def __new__(cls, id: int) -> CountWindow:
        return tuple.__new__(cls, (id,))

    def __getnewargs__(self) -> tuple[int]:
        return (self[0],)

    id: int = property(itemgetter(0))  # type: ignore[assignment]  # a name of a part

    def max_timestamp(self) -> int:
        return MAX_TIMESTAMP

    def __repr__(self) -> str:
        return f"CountWindow(id={self[0]})"


class GlobalWindow(Window, tuple[int]):
    """The window of all rows of a key."""

    __slots__ = ()

    def __new__(cls) -> GlobalWindow:
        return _GLOBAL

    def __getnewargs__(self) -> tuple[()]:
        return ()

    @staticmethod
    def get() -> GlobalWindow:
        return _GLOBAL

    def max_timestamp(self) -> int:
        return MAX_TIMESTAMP

    def __repr__(self) -> str:
        return "GlobalWindow"


_GLOBAL: GlobalWindow = tuple.__new__(GlobalWindow, (0,))
