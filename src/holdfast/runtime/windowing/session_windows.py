"""Session windows: rows of a key with no gap between them, by event time or by processing time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable
from typing import Any

from holdfast.errors import ProgramError
from holdfast.runtime.windowing.assigner_context import WindowAssignerContext
from holdfast.runtime.windowing.assigners import MergingWindowAssigner
from holdfast.runtime.windowing.serializers import TimeWindowSerializer
from holdfast.runtime.windowing.time_triggers import EventTimeTrigger, ProcessingTimeTrigger
from holdfast.runtime.windowing.triggers import Trigger
from holdfast.runtime.windowing.windows import MergeCallback, TimeWindow
from holdfast.types.durations import milliseconds_of


class SessionWindowTimeGapExtractor:
    """The gap that must follow a row to end its session."""

    @abstractmethod
    def extract(self, element: Any) -> int:
        """Milliseconds, above 0."""


class SessionWindows(MergingWindowAssigner[Any, TimeWindow]):
    """Every row has a window from its time to the end of its gap; those that touch are merged."""

    #: The gap of all rows; None where each has its own.
    fixed_gap: int | None = None

    @abstractmethod
    def gap_of(self, element: Any) -> int:
        """The gap of a row in milliseconds."""

    def merge_windows(self, windows: Iterable[TimeWindow], callback: MergeCallback) -> None:
        TimeWindow.merge_windows(windows, callback)

    def get_window_serializer(self) -> TimeWindowSerializer:
        return TimeWindowSerializer()


class _ByEventTime(SessionWindows):
    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> Collection[TimeWindow]:
        return (TimeWindow(timestamp, timestamp + self.gap_of(element)),)

    def get_default_trigger(self, env: Any) -> Trigger[Any, TimeWindow]:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


class _ByProcessingTime(SessionWindows):
    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> Collection[TimeWindow]:
        now = context.get_current_processing_time()
        return (TimeWindow(now, now + self.gap_of(element)),)

    def get_default_trigger(self, env: Any) -> Trigger[Any, TimeWindow]:
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        return False


class _FixedGap(SessionWindows):
    fixed_gap: int

    def __init__(self, session_gap: int) -> None:
        if session_gap <= 0:
            raise ProgramError(f"{type(self).__name__} was given a gap of {session_gap} ms; it must be above 0.")
        self.fixed_gap = session_gap

    def gap_of(self, element: Any) -> int:
        return self.fixed_gap

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.fixed_gap})"


class _DynamicGap(SessionWindows):
    def __init__(self, session_window_time_gap_extractor: Any) -> None:
        extract = getattr(session_window_time_gap_extractor, "extract", session_window_time_gap_extractor)
        if not callable(extract):
            raise ProgramError(
                f"{type(self).__name__} takes a SessionWindowTimeGapExtractor or a function of the row; got "
                f"{session_window_time_gap_extractor!r}."
            )
        self._extract = extract

    def gap_of(self, element: Any) -> int:
        gap = milliseconds_of(self._extract(element))
        if gap <= 0:
            raise ProgramError(f"The gap of a session was {gap} ms; a gap must be above 0.")
        return gap

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class DynamicEventTimeSessionWindows(_ByEventTime, _DynamicGap):
    """Sessions by event time, with a gap that each row brings along."""

    @staticmethod
    def with_dynamic_gap(extractor: Any) -> DynamicEventTimeSessionWindows:
        return DynamicEventTimeSessionWindows(extractor)


class DynamicProcessingTimeSessionWindows(_ByProcessingTime, _DynamicGap):
    """Sessions of processing time, with a gap that each row brings along."""

    @staticmethod
    def with_dynamic_gap(extractor: Any) -> DynamicProcessingTimeSessionWindows:
        return DynamicProcessingTimeSessionWindows(extractor)


class EventTimeSessionWindows(_ByEventTime, _FixedGap):
    """Sessions by event time."""

    @staticmethod
    def with_gap(size: Any) -> EventTimeSessionWindows:
        return EventTimeSessionWindows(milliseconds_of(size))

    @staticmethod
    def with_dynamic_gap(extractor: Any) -> DynamicEventTimeSessionWindows:
        return DynamicEventTimeSessionWindows(extractor)


class ProcessingTimeSessionWindows(_ByProcessingTime, _FixedGap):
    """Sessions of processing time."""

    @staticmethod
    def with_gap(size: Any) -> ProcessingTimeSessionWindows:
        return ProcessingTimeSessionWindows(milliseconds_of(size))

    @staticmethod
    def with_dynamic_gap(extractor: Any) -> DynamicProcessingTimeSessionWindows:
        return DynamicProcessingTimeSessionWindows(extractor)
