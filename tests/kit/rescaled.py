"""Driver programs that come back with another parallelism after their driver was killed."""

from __future__ import annotations

import os

from holdfast.testing.chaos.target import START

#: Up, down, and back.
_PARALLELISMS = (2, 3, 1, 4)


def parallelism_of_this_start() -> str:
    """2 in a program that no chaos run has started."""
    number = int(os.environ.get(START, "1"))
    return str(_PARALLELISMS[(number - 1) % len(_PARALLELISMS)])
