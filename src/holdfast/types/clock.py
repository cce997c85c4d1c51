"""The clock of processing time."""

from __future__ import annotations

import time


def wall_clock() -> int:
    """Milliseconds since 1970."""
    return int(time.time() * 1000)
