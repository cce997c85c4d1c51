"""Stored entries under the keys, and in the key groups, of the program that restores them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from holdfast.state.key_migration import KeyPlan
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.keys import KeyCodec
from holdfast.state.layout import HEAD_LENGTH, group_bytes, read_group, read_sized, sized

_BATCH = 4096

Entry = tuple[bytes, bytes]


class Moved(NamedTuple):
    """An entry as it is now, with the stored forms of the key that it had and of the one that it has."""

    old_key: bytes
    key: bytes
    stored: bytes
    value: bytes


class Regrouping:
    """Computes key groups anew from the keys inside of stored entries: those of states and of timers begin alike.

    ``keys`` says what becomes of the keys themselves; None where they stay. ``max_parallelism`` is that of the program.
    Unless only the type of keys changes, and every key keeps its hash, a key may go to any key group, and whoever wants
    some of the new ones reads all of the old ones.
    """

    def __init__(self, codec: KeyCodec, max_parallelism: int, keys: KeyPlan | None = None, moves: bool = True) -> None:
        self.codec = codec
        self.keys = keys
        self.moves = moves
        self._max_parallelism = max_parallelism

    def of_range(self, entries: Iterator[Entry], key_groups: KeyGroupRange) -> Iterator[Moved]:
        """The entries whose new key group is one of ``key_groups``, under it. Not in key order."""
        while batch := list(islice(entries, _BATCH)):
            keys = [read_sized(stored, HEAD_LENGTH)[0] for stored, _ in batch]
            groups = {key: read_group(stored) for key, (stored, _) in zip(keys, batch, strict=True)}
            places = self._places(list(groups), list(groups.values()))
            for key, (stored, value) in zip(keys, batch, strict=True):
                group, new_key = places[key]
                if group in key_groups:
                    rest = stored[HEAD_LENGTH + len(sized(key)) :]
                    head = group_bytes(group) + stored[2:HEAD_LENGTH] + sized(new_key)
                    yield Moved(key, new_key, head + rest, value)

    def _places(self, encoded: list[bytes], groups: list[int]) -> dict[bytes, tuple[int, bytes]]:
        """The group and the stored form that stored keys get."""
        keys = list(map(self.codec.decode if self.keys is None else self.keys.rewrite.new_key, encoded))
        if self.moves:
            groups = (self.codec.hash_many(keys) % self._max_parallelism).tolist()
        stored = encoded if self.keys is None else list(map(self.codec.encode, keys))
        return dict(zip(encoded, zip(groups, stored, strict=True), strict=True))
