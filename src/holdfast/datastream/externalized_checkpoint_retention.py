"""What becomes of a job's checkpoints, under PyFlink's module path."""

from enum import Enum


class ExternalizedCheckpointRetention(Enum):
    """What happens to a job's checkpoints when it ends."""

    DELETE_ON_CANCELLATION = 0
    RETAIN_ON_CANCELLATION = 1
    NO_EXTERNALIZED_CHECKPOINTS = 2
