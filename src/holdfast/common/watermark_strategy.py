"""How rows get their event time, and how far event time has come."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

from holdfast.common.time import Duration
from holdfast.coverage.answers import answer_missing_names as _answer_missing_names
from holdfast.errors import ProgramError
from holdfast.runtime.alignment import WatermarkAlignment

_answer_missing_names(__name__)


class TimestampAssigner(ABC):
    """Gives a row its event time. Picklable; called in tasks, once per row, in the order of the stream."""

    @abstractmethod
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Milliseconds since the epoch. ``record_timestamp`` is the row's time so far, negative when it has none."""


class TimestampColumn(TimestampAssigner):
    """The event time of a row is one of its fields, an integer of milliseconds, by its name or its position. Rows of a
    declared type are read by column, and need not become Python objects for it.
    """

    def __init__(self, column: str | int) -> None:
        if not isinstance(column, (str, int)):
            raise TypeError(f"TimestampColumn() takes the name of a field or its position; got {column!r}.")
        self.column = column

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        column = self.column
        time: int | None = value[column] if isinstance(column, int) else getattr(value, column)
        if time is None:
            raise ValueError(f"the field {column!r}, which is the event time, is null")
        return time


@dataclass(frozen=True)
class WatermarkStrategy:
    """A watermark says that rows up to its time have arrived: it is the highest time seen minus ``bound_ms`` minus 1.

    ``bound_ms`` None: no watermarks. A source that was silent for ``idleness_ms`` no longer holds back the others. The
    methods give a new strategy and leave this one as it is.
    """

    bound_ms: int | None = None
    timestamp_assigner: TimestampAssigner | None = None
    idleness_ms: int | None = None
    alignment: WatermarkAlignment | None = None

    @property
    def timestamp_column(self) -> str | int | None:
        """The field that event times are read from as they are, if that is all that is done."""
        assigner = self.timestamp_assigner
        return assigner.column if type(assigner) is TimestampColumn else None

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

    def with_watermark_alignment(
        self,
        watermark_group: str,
        max_allowed_watermark_drift: Duration,
        update_interval: Duration | None = None,
    ) -> WatermarkStrategy:
        """Sources of one group wait for each other: one whose watermark is further ahead of the slowest than the drift
        is not read. Bounds are updated with every epoch, whatever the interval.
        """
        if not isinstance(watermark_group, str) or not watermark_group:
            raise ProgramError(f"The watermark group is {watermark_group!r}; expected a name, such as 'orders'.")
        drift = max_allowed_watermark_drift.to_millis()
        interval = 1_000 if update_interval is None else update_interval.to_millis()
        if drift < 0 or interval <= 0:
            raise ProgramError(
                f"Watermarks may drift by {drift} ms, and are updated every {interval} ms; expected a drift that is "
                "not negative and an interval above 0."
            )
        return replace(self, alignment=WatermarkAlignment(watermark_group, drift, interval))
