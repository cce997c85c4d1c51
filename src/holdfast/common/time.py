"""Lengths of time and points in time."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.types.instant import Instant

__all__ = ["Duration", "Instant", "Time"]


@dataclass(frozen=True, order=True)
class Duration:
    """A length of time, in nanoseconds."""

    nanos: int

    @staticmethod
    def of_days(days: int) -> Duration:
        return Duration.of_hours(24 * days)

    @staticmethod
    def of_hours(hours: int) -> Duration:
        return Duration.of_minutes(60 * hours)

    @staticmethod
    def of_minutes(minutes: int) -> Duration:
        return Duration.of_seconds(60 * minutes)

    @staticmethod
    def of_seconds(seconds: int) -> Duration:
        return Duration.of_millis(1_000 * seconds)

    @staticmethod
    def of_millis(millis: int) -> Duration:
        return Duration(1_000_000 * millis)

    @staticmethod
    def of_nanos(nanos: int) -> Duration:
        return Duration(nanos)

    def to_millis(self) -> int:
        """Whole milliseconds."""
        return self.nanos // 1_000_000


@dataclass(frozen=True, order=True, init=False)
class Time:
    """A length of time in milliseconds, as windows and time-to-live take it."""

    millis: int

    def __init__(self, milliseconds: int) -> None:
        object.__setattr__(self, "millis", milliseconds)

    def __str__(self) -> str:
        return f"{self.millis} ms"

    @staticmethod
    def milliseconds(milliseconds: int) -> Time:
        return Time(milliseconds)

    @staticmethod
    def seconds(seconds: int) -> Time:
        return Time(1_000 * seconds)

    @staticmethod
    def minutes(minutes: int) -> Time:
        return Time.seconds(60 * minutes)

    @staticmethod
    def hours(hours: int) -> Time:
        return Time.minutes(60 * hours)

    @staticmethod
    def days(days: int) -> Time:
        return Time.hours(24 * days)

    def to_milliseconds(self) -> int:
        return self.millis
