"""The settings that the coordinator decides by."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class CheckpointPolicy:
    """Times in milliseconds. No interval means that checkpoints are taken only when forced."""

    interval_ms: int | None = None
    min_pause_ms: int = 0
    timeout_ms: int = 600_000
    max_concurrent: int = 1
    tolerable_failures: int = 0
    incremental: bool = True

    def first_delay(self, random: Random) -> int:
        """Spread over the interval, so that jobs that start together do not checkpoint together."""
        return random.randint(self.min_pause_ms, max(self.min_pause_ms, self.interval_ms or 0))


def deletes_checkpoints(retention: str, job_status: str) -> bool:
    """Whether a job that ends with this status deletes its checkpoints.

    ``retention`` is a value of ``execution.checkpointing.externalized-checkpoint-retention``.
    """
    kept_on = {
        "NO_EXTERNALIZED_CHECKPOINTS": frozenset[str](),
        "DELETE_ON_CANCELLATION": frozenset({"FAILED"}),
        "RETAIN_ON_CANCELLATION": frozenset({"FAILED", "CANCELED", "SUSPENDED"}),
    }
    return job_status not in kept_on[retention]
