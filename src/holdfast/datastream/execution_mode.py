"""PyFlink's execution modes."""

from enum import Enum


class RuntimeExecutionMode(Enum):
    """How a program runs. Here all run as ``STREAMING``: bounded input gives every intermediate result too."""

    STREAMING = 0
    BATCH = 1
    AUTOMATIC = 2
