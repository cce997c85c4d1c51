"""Points on the time line with nanoseconds."""

from __future__ import annotations

from dataclasses import dataclass

_NANOS = 1_000_000_000


@dataclass(frozen=True, order=True, slots=True, repr=False)
class Instant:
    """A point on the time line: seconds since 1970-01-01T00:00:00Z, and nanoseconds of that second."""

    seconds: int
    nanos: int = 0

    @staticmethod
    def of_epoch_milli(epoch_milli: int) -> Instant:
        seconds, millis = divmod(epoch_milli, 1000)
        return Instant(seconds, millis * 1_000_000)

    @staticmethod
    def of_epoch_nano(epoch_nano: int) -> Instant:
        return Instant(*divmod(epoch_nano, _NANOS))

    def __repr__(self) -> str:
        return f"Instant<{self.seconds}, {self.nanos}>"

    def to_epoch_milli(self) -> int:
        return self.seconds * 1000 + self.nanos // 1_000_000

    def to_epoch_nano(self) -> int:
        return self.seconds * _NANOS + self.nanos
