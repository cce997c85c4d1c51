"""How rows get their event time, and how far event time has come."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

from holdfast.common.time import Duration
from holdfast.errors import ProgramError


class TimestampAssigner(ABC):
    """Gives a row its event time. Picklable; called in tasks, once per row, in the order of the stream."""

    @abstractmethod
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Milliseconds since the epoch. ``record_timestamp`` is the row's time so far, negative when it has none."""


@dataclass(frozen=True)
class WatermarkStrategy:
    """A watermark says that rows up to its time have arrived: it is the highest time seen minus ``bound_ms`` minus 1.

    ``bound_ms`` None: no watermarks. A source that was silent for ``idleness_ms`` no longer holds back the others. The
    methods give a new strategy and leave this one as it is.
    """

    bound_ms: int | None = None
    timestamp_assigner: TimestampAssigner | None = None
    idleness_ms: int | None = None

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy:
        """Timestamps never go back."""
        return WatermarkStrategy(bound_ms=0)

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: Duration) -> WatermarkStrategy:
        """A row is at most so much older than the newest before it."""
        bound = max_out_of_orderness.to_millis()
        if bound < 0:
            raise ProgramError(f"The bound of out-of-orderness is {bound} ms; it must not be negative")
        return WatermarkStrategy(bound_ms=bound)

    @staticmethod
    def no_watermarks() -> WatermarkStrategy:
        """For programs that use processing time alone."""
        return WatermarkStrategy()

    def with_timestamp_assigner(self, timestamp_assigner: TimestampAssigner) -> WatermarkStrategy:
        if not callable(getattr(timestamp_assigner, "extract_timestamp", None)):
            raise ProgramError(
                f"{timestamp_assigner!r} is not a TimestampAssigner: it needs a method "
                f"extract_timestamp(value, record_timestamp)"
            )
        return replace(self, timestamp_assigner=timestamp_assigner)

    def with_idleness(self, idle_timeout: Duration) -> WatermarkStrategy:
        timeout = idle_timeout.to_millis()
        if timeout <= 0:
            raise ProgramError(f"The idle timeout is {timeout} ms; it must be above 0")
        return replace(self, idleness_ms=timeout)
