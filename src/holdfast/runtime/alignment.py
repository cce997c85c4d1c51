"""Watermark alignment: a source that is ahead of its group in event time is held back.

After each accepted epoch the driver knows how far every subtask has come, and gives each subtask the bound that holds
in the next epoch. A task stops to read when the watermark passes it. What was read stays in the epoch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from holdfast.runtime.operator import MAX_WATERMARK, MIN_WATERMARK

#: There is nobody to wait for.
UNBOUNDED = MAX_WATERMARK
#: Others have not said yet how far they are: a subtask begins with rows of so much event time as it may drift.
UNKNOWN = MIN_WATERMARK


@dataclass(frozen=True)
class WatermarkAlignment:
    """What a watermark strategy says of alignment. ``update_interval_ms`` is Flink's, and has no effect: bounds are
    updated with every epoch.
    """

    group: str
    max_drift_ms: int
    update_interval_ms: int = 1_000


class HeldBack:
    """Whether one subtask is to stop in an epoch. Its watermark is looked at after each batch."""

    def __init__(self, alignment: WatermarkAlignment, bound: int) -> None:
        self._max_drift = alignment.max_drift_ms
        self._bound = bound

    def stops_at(self, watermark: int) -> bool:
        if watermark == MIN_WATERMARK:
            return False
        if self._bound == UNKNOWN:
            self._bound = min(watermark + self._max_drift, MAX_WATERMARK)
        return watermark > self._bound

    def stops_split_at(self, watermark: int, slowest: int) -> bool:
        """Whether one of several splits is to wait; ``slowest`` is the watermark of the slowest other one."""
        beyond_group = self._bound != UNKNOWN and watermark > self._bound
        return beyond_group or (slowest != MIN_WATERMARK and watermark > slowest + self._max_drift)


class PausableClock:
    """Processing time that stands still while a source is held back: that nothing comes of it says nothing then, and
    it does not become idle.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._paused_for = 0
        self._paused_since: int | None = None

    def now(self) -> int:
        return (self._clock() if self._paused_since is None else self._paused_since) - self._paused_for

    @property
    def paused(self) -> bool:
        return self._paused_since is not None

    def when(self, shown: int) -> int:
        """The processing time at which it shows a time, if it is not paused until then."""
        return shown + self._paused_for

    def pause(self) -> None:
        if self._paused_since is None:
            self._paused_since = self._clock()

    def resume(self) -> None:
        if self._paused_since is not None:
            self._paused_for += self._clock() - self._paused_since
            self._paused_since = None

    def dump(self) -> tuple[int, int | None]:
        return self._paused_for, self._paused_since

    def load(self, dumped: tuple[int, int | None]) -> None:
        self._paused_for, self._paused_since = dumped
