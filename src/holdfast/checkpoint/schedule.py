"""When a checkpoint is due. Pure: times are milliseconds that the caller passes in."""

from __future__ import annotations


class CheckpointSchedule:
    """Fixed rate ``interval_ms`` from the first due time, never closer than ``min_pause_ms`` to the last completion.

    A due time that was missed (an epoch took longer than the interval) is made up for once, not once per interval.
    """

    def __init__(self, interval_ms: int | None, min_pause_ms: int = 0, max_concurrent: int = 1) -> None:
        self._interval = None if interval_ms is None else max(interval_ms, min_pause_ms)
        self._min_pause = min_pause_ms
        self._max_concurrent = max_concurrent
        self._next: int | None = None
        self._last_completion: int | None = None

    def start(self, now: int, first_delay_ms: int) -> None:
        """The scheduler of a job or of a new attempt begins."""
        self._next = None if self._interval is None else now + first_delay_ms

    def stop(self) -> None:
        self._next = None

    def next_due(self) -> int | None:
        """The earliest time at which a checkpoint may be due; None when checkpoints are not periodic."""
        if self._next is None:
            return None
        if self._last_completion is None:
            return self._next
        return max(self._next, self._last_completion + self._min_pause)

    def is_due(self, now: int, pending: int) -> bool:
        due = self.next_due()
        return due is not None and now >= due and pending < self._max_concurrent

    def triggered(self, now: int) -> None:
        """A checkpoint was started, due or not."""
        if self._next is None or self._interval is None or now < self._next:
            return
        missed = (now - self._next) // self._interval
        self._next += (missed + 1) * self._interval

    def completed(self, now: int) -> None:
        self._last_completion = now
