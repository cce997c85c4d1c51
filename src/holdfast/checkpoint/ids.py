"""Numbers of checkpoints."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable


class CheckpointIdCounter(ABC):
    """Counts up from 1 and never gives a number that was seen in storage, whether its checkpoint completed or not.

    Only the driver that leads the job is given a number; LeadershipLostError for every other.
    """

    @abstractmethod
    def next(self) -> int: ...

    @abstractmethod
    def pass_over(self, checkpoint_id: int) -> None:
        """Later numbers are greater than this one."""


class LocalCheckpointIdCounter(CheckpointIdCounter):
    """Numbers counted in the driver, for one that leads its job for as long as it lives."""

    def __init__(self, seen: Iterable[int] = ()) -> None:
        self._last = max(seen, default=0)

    def next(self) -> int:
        self._last += 1
        return self._last

    def pass_over(self, checkpoint_id: int) -> None:
        self._last = max(self._last, checkpoint_id)
