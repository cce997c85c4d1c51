"""Windows by shifts of a day: of six hours at night, of eight hours else."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from holdfast.datastream.window import EventTimeTrigger, TimeWindow, TimeWindowSerializer, WindowAssigner

_HOUR = 3_600_000
_DAY = 24 * _HOUR
_BOUNDS = (0, 6 * _HOUR, 14 * _HOUR, 22 * _HOUR, _DAY)


class ShiftWindows(WindowAssigner[Any, TimeWindow]):
    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        day, time = timestamp - timestamp % _DAY, timestamp % _DAY
        shift = bisect_right(_BOUNDS, time)
        return [TimeWindow(day + _BOUNDS[shift - 1], day + _BOUNDS[shift])]

    def get_default_trigger(self, env: Any) -> EventTimeTrigger:
        return EventTimeTrigger()

    def get_window_serializer(self) -> TimeWindowSerializer:
        return TimeWindowSerializer()

    def is_event_time(self) -> bool:
        return True
