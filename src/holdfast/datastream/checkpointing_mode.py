"""PyFlink's checkpointing modes."""

from enum import Enum


class CheckpointingMode(Enum):
    """When results are seen: with their checkpoint, or with their epoch. State is exact in both."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
