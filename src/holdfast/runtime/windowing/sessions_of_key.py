"""The sessions of a key while the rows of a batch are folded into them."""

from __future__ import annotations

from itertools import count
from typing import Any

from holdfast.runtime.operator import MIN_WATERMARK
from holdfast.runtime.windowing.windows import MAX_TIMESTAMP

#: The namespace of contents that most sessions have: no window ends before it starts. It is the same for all keys,
#: because caches are by namespace, and one for each session would cost more than the session.
_FIRST_HOLDER = (0, -1)


class Session:
    """A window of a key, and what is kept of its rows."""

    __slots__ = ("end", "holder", "kept", "start", "stored", "taken_up")

    def __init__(self, start: int, end: int, holder: tuple[int, int], stored: tuple[int, int] | None) -> None:
        self.start = start
        self.end = end
        #: The namespace of what is kept.
        self.holder = holder
        #: The window under which the state has it; None for one that is new.
        self.stored = stored
        #: Whether a row came to it, and ``kept`` is here: until then it is only in the state.
        self.taken_up = stored is None
        self.kept: Any = None

    def touches(self, start: int, end: int) -> bool:
        return self.start <= end and self.end >= start


class SessionsOfKey:
    """The sessions of a key while rows are folded into them."""

    __slots__ = ("absorbed", "after", "before", "current", "ended", "key", "running")

    def __init__(self, key: Any, running: list[Session]) -> None:
        self.key = key
        #: Sessions that event time has passed since, and sessions that became part of others.
        self.ended: tuple[Session, ...] = ()
        self.absorbed: tuple[Session, ...] = ()
        self.run(running, running[-1] if running else None)

    def run(self, running: list[Session], current: Session | None) -> None:
        """Go on with the sessions that rows may go into: no two of them touch each other. ``current`` had the last row,
        and is likely to have the next.
        """
        self.running = running
        self.current = current
        #: Where the session before the current one ends, and where the one after it starts.
        self.before, self.after = MIN_WATERMARK, MAX_TIMESTAMP
        if current is not None and len(running) > 1:
            self.before = max([one.end for one in running if one.end < current.start], default=MIN_WATERMARK)
            self.after = min([one.start for one in running if one.start > current.end], default=MAX_TIMESTAMP)

    def free_holder(self) -> tuple[int, int]:
        """A namespace that none of the sessions has."""
        if not (self.running or self.ended or self.absorbed):
            return _FIRST_HOLDER
        taken = {session.holder for session in (*self.running, *self.ended, *self.absorbed)}
        return next(holder for number in count() if (holder := (number, -1)) not in taken)
