"""A clock that stands still until it is moved."""

from __future__ import annotations

from holdfast.errors import ProgramError


class ManualClock:
    """Processing time of a test, in milliseconds. Several harnesses may share one."""

    def __init__(self, now: int = 0) -> None:
        self._now = now

    def __call__(self) -> int:
        return self._now

    def advance(self, milliseconds: int) -> int:
        """Move on, and give the time it is now."""
        if milliseconds < 0:
            raise ProgramError(
                f"A clock does not go back: it is {self._now}, and was to be moved by {milliseconds} ms."
            )
        self._now += milliseconds
        return self._now
