"""Which way rows take into windows and into ``reduce()``. What is left open is chosen by ``way_of`` (windowing/ways.py)
and ``reduce_operator`` (running_aggregates.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class RowsBy(Enum):
    """A way that rows take. All of them give the same, and go on with each other's state."""

    #: One row after the other, whatever the windows or the function are.
    ONE = "one by one"
    #: Into windows, all rows of a batch before event time goes on between them.
    BATCH = "a batch first"
    #: A batch without a loop over its rows.
    COLUMN = "by column"
    #: As ``BATCH``, for windows that merge.
    SESSION = "sessions, a batch at a time"


@dataclass(frozen=True)
class RowPath:
    """The way that rows take, and its limits. Programs leave it as it is; tests take every way, with small limits."""

    #: None: the fastest one that there is for the windows.
    by: RowsBy | None = None
    #: Whether rows may be put together before the exchange.
    combine: bool = True
    #: A batch of fewer rows goes one by one. None: as many as the way is worth its while from.
    least_rows: int | None = None
    #: Fewer timers of one time fire one by one.
    least_timers: int = 32
    #: Keys whose windows fire at once.
    most_timers: int = 65_536
    #: Rows in windows that are folded at once, so that windows fire before too many others are begun.
    most_members: int = 500_000
    #: So many rows, or bytes of them, are not kept waiting for more of their epoch.
    most_waiting_rows: int = 1 << 17
    most_waiting_bytes: int = 32 << 20
    #: Rows that windows gave, before they are handed on.
    most_given: int = 1 << 16
