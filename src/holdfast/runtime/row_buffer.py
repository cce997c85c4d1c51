"""Rows of an epoch that wait for each other, so that more of them are processed together."""

from __future__ import annotations

from holdfast.runtime.batch import Batch

#: So many rows, or bytes of them, are not kept waiting for more of their epoch.
_MOST_ROWS = 2_000_000
_MOST_BYTES = 256 << 20


class WaitingRows:
    """The batches of an epoch that have come so far."""

    def __init__(self, most_rows: int = _MOST_ROWS, most_bytes: int = _MOST_BYTES) -> None:
        self._most_rows, self._most_bytes = most_rows, most_bytes
        self._batches: list[Batch] = []
        self._rows = self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._batches)

    def add(self, batch: Batch) -> bool:
        """True when it is time to take them."""
        self._batches.append(batch)
        self._rows += len(batch)
        self._bytes += 0 if batch.arrow is None else batch.arrow.nbytes
        return self._rows >= self._most_rows or self._bytes >= self._most_bytes

    def take(self) -> list[Batch]:
        taken, self._batches = self._batches, []
        self._rows = self._bytes = 0
        return taken
