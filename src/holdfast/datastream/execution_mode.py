"""PyFlink's execution modes."""

from enum import Enum


class RuntimeExecutionMode(Enum):
    """How a program runs.

    ``STREAMING``: every result as it comes. ``BATCH``: for bounded sources, final results when the input has ended, no
    checkpoints. ``AUTOMATIC``: ``BATCH`` where all sources are bounded, else ``STREAMING``.
    """

    STREAMING = 0
    BATCH = 1
    AUTOMATIC = 2
