"""Files that were read to their end, in a few bytes each.

Only what a listing finds is remembered: a name that is gone from its directory is forgotten, so that what is kept, and
stored in checkpoints, is bounded by the number of files that lie in the directories.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

_KEY = np.dtype("S24")
_LAST = (1 << 64) - 1
_DIGITS = re.compile(r"\d+")
_ENTRY = np.dtype([("key", _KEY), ("size", "<i8")])


def key_of(path: str) -> bytes:
    """Whose turn a file is, and 128 bits of its path: that two have the same is no case to think of."""
    return (_turn_of(path.rpartition("/")[2]) & _LAST).to_bytes(8, "little") + xxhash.xxh3_128_digest(path.encode())


def owner_of(key: bytes, parallelism: int) -> int:
    """The subtask that reads a file."""
    return int.from_bytes(key[:8], "little") % parallelism


def _turn_of(name: str) -> int:
    """Files whose names count, as those of most writers do, are dealt to the subtasks round-robin: a hash would not
    spread a few of them evenly. Other names go by their hash.
    """
    return sum(map(int, _DIGITS.findall(name))) + xxhash.xxh3_64_intdigest(_DIGITS.sub("", name).encode())


class SeenFiles:
    """Sorted by key, so that a listing is compared as a whole. Travels between processes as one block of bytes."""

    def __init__(self) -> None:
        self._entries: npt.NDArray[Any] = np.empty(0, dtype=_ENTRY)
        self._new: list[tuple[bytes, int]] = []

    def add(self, path: str, size: int) -> None:
        self._new.append((key_of(path), size))

    def sizes(self, keys: Sequence[bytes]) -> list[int | None]:
        """For each key the size of the file when it was read; None for one that was not."""
        self._merge()
        if not len(self._entries):
            return [None] * len(keys)
        wanted = np.array(keys, dtype=_KEY)
        places = np.minimum(np.searchsorted(self._entries["key"], wanted), len(self._entries) - 1)
        found = (self._entries["key"][places] == wanted).tolist()
        sizes = self._entries["size"][places].tolist()
        return [size if hit else None for size, hit in zip(sizes, found, strict=True)]

    def keep(self, keys: Sequence[bytes]) -> None:
        """Forget all others."""
        self._merge()
        self._entries = self._entries[np.isin(self._entries["key"], np.array(keys, dtype=_KEY))]

    def packed(self) -> bytes:
        self._merge()
        return self._entries.tobytes()

    def restore(self, packed: Iterable[bytes], subtask: int, parallelism: int) -> None:
        """Take this subtask's share of what all subtasks had."""
        entries: Any = np.concatenate([self._entries, *(np.frombuffer(block, dtype=_ENTRY) for block in packed)])
        parts = np.ascontiguousarray(entries["key"]).view("<u8").reshape(-1, 3)
        self._take(entries[parts[:, 0] % np.uint64(parallelism) == subtask])

    def _merge(self) -> None:
        if self._new:
            self._take(np.concatenate([self._entries, np.array(self._new, dtype=_ENTRY)]))
            self._new = []

    def _take(self, entries: npt.NDArray[Any]) -> None:
        _, first = np.unique(entries["key"], return_index=True)
        self._entries = entries[first]
