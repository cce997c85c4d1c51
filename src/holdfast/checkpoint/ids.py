"""Numbers of checkpoints."""

from __future__ import annotations

from collections.abc import Iterable


class CheckpointIdCounter:
    """Counts up from 1 and never gives a number that was seen in storage, whether its checkpoint completed or not."""

    def __init__(self, seen: Iterable[int] = ()) -> None:
        self._last = max(seen, default=0)

    def next(self) -> int:
        self._last += 1
        return self._last

    def pass_over(self, checkpoint_id: int) -> None:
        """Later numbers are greater than this one."""
        self._last = max(self._last, checkpoint_id)
