"""PyFlink's checkpointing modes."""

from enum import Enum


class CheckpointingMode(Enum):
    """When results are seen: with their checkpoint, or with their epoch. State is exact in both."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1


class ExternalizedCheckpointRetention(Enum):
    """What happens to a job's checkpoints when it ends."""

    DELETE_ON_CANCELLATION = 0
    RETAIN_ON_CANCELLATION = 1
    NO_EXTERNALIZED_CHECKPOINTS = 2
