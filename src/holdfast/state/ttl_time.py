"""The processing time of accesses to states that have a time to live."""

from __future__ import annotations

from collections.abc import Callable

#: Accesses of one batch that go by without a look at the clock, at most.
_MOST_ACCESSES = 1024
#: Looks at the clock that lie further apart than this become more frequent.
_COARSE_MILLIS = 10


class TtlTime:
    """``now`` is read before each batch and not for each access. Within a batch the clock is looked at again after a
    number of accesses, which becomes smaller where rows take long: what the last row of a slow batch writes must not be
    as old as the first.
    """

    __slots__ = ("_clock", "_every", "_left", "now")

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._every = self._left = _MOST_ACCESSES
        self.now = 0

    def read(self) -> int:
        """Look at the clock."""
        self._left = self._every
        self.now = self._clock()
        return self.now

    def at_access(self) -> int:
        """The time of one more access."""
        self._left -= 1
        if self._left <= 0:
            before = self.now
            slow = self.read() - before > _COARSE_MILLIS
            self._every = max(self._every // 2, 1) if slow else min(self._every * 2, _MOST_ACCESSES)
        return self.now
