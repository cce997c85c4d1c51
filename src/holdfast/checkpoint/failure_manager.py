"""How many failed checkpoints in a row a job bears."""

from __future__ import annotations

from holdfast.checkpoint.reasons import CheckpointFailureReason

THRESHOLD_MESSAGE = "Exceeded checkpoint tolerable failure threshold."


class CheckpointFailureManager:
    """Counts consecutive failures, each checkpoint once; a success with a newer id sets the count back to 0."""

    def __init__(self, tolerable_failures: int) -> None:
        self._tolerable = tolerable_failures
        self._counted: set[int] = set()
        self._last_success = 0

    def completed(self, checkpoint_id: int) -> None:
        if checkpoint_id > self._last_success:
            self._last_success = checkpoint_id
            self._counted.clear()

    def failed(self, checkpoint_id: int, reason: CheckpointFailureReason) -> bool:
        """Whether the job must fail now; the count starts anew then."""
        if not reason.counts or checkpoint_id < self._last_success:
            return False
        self._counted.add(checkpoint_id)
        if len(self._counted) <= self._tolerable:
            return False
        self._counted.clear()
        return True
