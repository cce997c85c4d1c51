"""Stored entries in the key groups of another maximum parallelism."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.keys import KeyCodec
from holdfast.state.layout import HEAD_LENGTH, group_bytes, read_sized

_BATCH = 4096


class Regrouping:
    """Computes key groups anew from the keys inside of stored entries: those of states and of timers begin alike.

    A key may go to any key group, so whoever wants some of the new ones reads all of the old ones.
    """

    def __init__(self, codec: KeyCodec, max_parallelism: int) -> None:
        self._codec = codec
        self._max_parallelism = max_parallelism

    def of_range(
        self, entries: Iterator[tuple[bytes, bytes]], key_groups: KeyGroupRange
    ) -> Iterator[tuple[bytes, bytes]]:
        """The entries whose new key group is one of ``key_groups``, under it. Not in key order."""
        while batch := list(islice(entries, _BATCH)):
            keys = [read_sized(stored, HEAD_LENGTH)[0] for stored, _ in batch]
            groups = self._groups_of(list(dict.fromkeys(keys)))
            for key, (stored, value) in zip(keys, batch, strict=True):
                group = groups[key]
                if group in key_groups:
                    yield group_bytes(group) + stored[2:], value

    def _groups_of(self, encoded: list[bytes]) -> dict[bytes, int]:
        hashes = self._codec.hash_many(list(map(self._codec.decode, encoded)))
        return dict(zip(encoded, (hashes % self._max_parallelism).tolist(), strict=True))
