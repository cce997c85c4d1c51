"""When the next epoch begins. Pure: times in, a time out.

A row waits for the epoch that reads it, and an epoch costs much the same with few rows as with none. So an epoch whose
sources had more than it read is followed by the next one at once, and one that read them dry by one that comes just in
time for the latency that is wanted.
"""

from __future__ import annotations

from holdfast.types.settings import EpochSettings

#: So many rows in an epoch are worth one of their own, however soon they have come.
_ENOUGH_ROWS = 10_000


class Pace:
    """The pace of one attempt."""

    def __init__(self, settings: EpochSettings) -> None:
        self._settings = settings
        self._next = 0

    def epoch_ended(self, began: int, rows: int, more: bool) -> None:
        """An epoch that began at this time read so many rows, and its sources had ``more``."""
        least = self._settings.min_interval_ms
        if least is None:
            enough = more or rows >= _ENOUGH_ROWS or self._settings.stream_available_now
            least = 0 if enough else self._settings.target_latency_ms
        self._next = began + least

    def pause_ms(self, now: int) -> int:
        """How long nothing has to begin, unless somebody asks for it."""
        return max(0, self._next - now)
