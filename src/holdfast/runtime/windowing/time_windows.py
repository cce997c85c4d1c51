"""Tumbling and sliding windows of a fixed size, by event time or by processing time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from math import gcd
from typing import Any, Self

import numpy as np

from holdfast.errors import ProgramError
from holdfast.runtime.event_times import Numbers
from holdfast.runtime.local_aggregation import Panes
from holdfast.runtime.windowing.assigner_context import WindowAssignerContext
from holdfast.runtime.windowing.assigners import WindowAssigner
from holdfast.runtime.windowing.serializers import TimeWindowSerializer
from holdfast.runtime.windowing.time_triggers import EventTimeTrigger, ProcessingTimeTrigger
from holdfast.runtime.windowing.triggers import Trigger
from holdfast.runtime.windowing.windows import TimeWindow
from holdfast.types.durations import milliseconds_of, offset_of

#: Starts whose windows an assigner remembers: rows of one time are many.
_REMEMBERED = 1024


class FixedSizeWindows(WindowAssigner[Any, TimeWindow]):
    """Windows of ``size`` milliseconds, of which one starts every ``slide``."""

    def __init__(self, size: int, slide: int, offset: int) -> None:
        if size <= 0 or slide <= 0 or abs(offset) >= slide:
            raise ProgramError(
                f"{type(self).__name__} was given a size of {size} ms, a slide of {slide} ms and an offset of "
                f"{offset} ms. Size and slide must be above 0, and the offset smaller than the slide (the size of "
                "tumbling windows)."
            )
        self._size = size
        self._slide = slide
        self._offset = offset
        self._known: dict[int, tuple[TimeWindow, ...]] = {}

    def windows_of(self, timestamp: int) -> Collection[TimeWindow]:
        """The windows that a time is in, the latest first."""
        start = timestamp - (timestamp - self._offset) % self._slide
        if timestamp - start >= self._size:
            return ()
        found = self._known.get(start)
        # Windows whose end lies between two starts have some times of the slide, and not others.
        if found is None or self._size % self._slide:
            found = self._windows(start, timestamp)
        return found

    def _windows(self, start: int, timestamp: int) -> tuple[TimeWindow, ...]:
        starts = range(start, timestamp - self._size, -self._slide)
        windows = tuple(TimeWindow(one, one + self._size) for one in starts)
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[start] = windows
        return windows

    @property
    def size(self) -> int:
        return self._size

    @property
    def slide(self) -> int:
        return self._slide

    @property
    def most_windows(self) -> int:
        """So many windows have a time at most."""
        return -(-self._size // self._slide)

    def panes(self) -> Panes:
        """Spans of time that are in a window as a whole or not at all."""
        return Panes(gcd(self._size, self._slide), self._offset)

    def starts_of(self, times: Numbers) -> tuple[Numbers, Numbers]:
        """The windows of many times, in the order of ``windows_of``: which time each of them is of, and its start."""
        latest = times - (times - self._offset) % self._slide
        starts = latest[:, None] - np.arange(self.most_windows, dtype=np.int64) * self._slide
        within = times[:, None] - starts < self._size
        return np.nonzero(within)[0], starts[within]

    def get_window_serializer(self) -> TimeWindowSerializer:
        return TimeWindowSerializer()

    def __repr__(self) -> str:
        slide = "" if self._slide == self._size else f"{self._slide}, "
        return f"{type(self).__name__}({self._size}, {slide}{self._offset})"


class _ByEventTime(FixedSizeWindows):
    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> Collection[TimeWindow]:
        return self.windows_of(timestamp)

    def get_default_trigger(self, env: Any) -> Trigger[Any, TimeWindow]:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


class _ByProcessingTime(FixedSizeWindows):
    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> Collection[TimeWindow]:
        return self.windows_of(context.get_current_processing_time())

    def get_default_trigger(self, env: Any) -> Trigger[Any, TimeWindow]:
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        return False


class _Tumbling(FixedSizeWindows):
    def __init__(self, size: int, offset: int = 0) -> None:
        super().__init__(size, size, offset)

    @classmethod
    def of(cls, size: Any, offset: Any = None) -> Self:
        """Windows of ``size``, one after the other. ``offset`` shifts their starts: ``Time.hours(-8)`` for days of a
        place eight hours ahead of UTC.
        """
        return cls(milliseconds_of(size), 0 if offset is None else offset_of(offset))

    @abstractmethod
    def is_event_time(self) -> bool: ...


class _Sliding(FixedSizeWindows):
    @classmethod
    def of(cls, size: Any, slide: Any, offset: Any = None) -> Self:
        """Windows of ``size``, a new one every ``slide``: a row is in all that cover its time."""
        return cls(milliseconds_of(size), milliseconds_of(slide), 0 if offset is None else offset_of(offset))

    @abstractmethod
    def is_event_time(self) -> bool: ...


class TumblingEventTimeWindows(_ByEventTime, _Tumbling):
    """Windows by the rows' event times that do not overlap."""


class TumblingProcessingTimeWindows(_ByProcessingTime, _Tumbling):
    """Windows of processing time that do not overlap."""


class SlidingEventTimeWindows(_ByEventTime, _Sliding):
    """Windows by the rows' event times that overlap."""


class SlidingProcessingTimeWindows(_ByProcessingTime, _Sliding):
    """Windows of processing time that overlap."""
