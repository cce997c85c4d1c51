"""The keys of a dict in order, sorted only when somebody asks."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable


class SortedKeys:
    """An ordered view of a changing set of keys.

    ``add`` and ``remove`` cost a set operation. The first question after additions merges them in one pass. Removed
    keys may still be listed: the dict beside this object says which ones are there.
    """

    def __init__(self, keys: Iterable[bytes] = ()) -> None:
        self._keys = sorted(keys)
        self._added: set[bytes] = set()
        self._removed: set[bytes] = set()

    def add(self, key: bytes) -> None:
        """Must not be called for a key that is present."""
        if key in self._removed:
            self._removed.discard(key)
        else:
            self._added.add(key)

    def remove(self, key: bytes) -> None:
        """Must not be called for a key that is absent."""
        if key in self._added:
            self._added.discard(key)
        else:
            self._removed.add(key)

    def between(self, start: bytes, end: bytes) -> list[bytes]:
        """Keys of [start, end), removed ones perhaps among them."""
        low, high = self._bounds(start, end)
        return self._keys[low:high]

    def last_between(self, start: bytes, end: bytes) -> bytes | None:
        """The greatest key of [start, end) that is present."""
        low, high = self._bounds(start, end)
        while high > low:
            high -= 1
            if self._keys[high] not in self._removed:
                return self._keys[high]
        return None

    def _bounds(self, start: bytes, end: bytes) -> tuple[int, int]:
        if len(self._removed) * 2 > len(self._keys):
            self._keys = [key for key in self._keys if key not in self._removed]
            self._removed.clear()
        if self._added:
            # Two sorted runs: the sort is one merge of them.
            self._keys += sorted(self._added)
            self._keys.sort()
            self._added.clear()
        low = bisect_left(self._keys, start)
        return low, max(low, bisect_left(self._keys, end))
