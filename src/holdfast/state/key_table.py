"""The current key, and what is derived from keys: key group and stored form, computed once per key and epoch."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
import pyarrow as pa

from holdfast.errors import NullKeyError, StateAccessError, StateError
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.keys import KeyCodec
from holdfast.state.layout import group_bytes, sized
from holdfast.types.columns import Column


class _NoKey:
    """The identity while no key is set."""

    def __repr__(self) -> str:
        return "no key"


NO_KEY = _NoKey()

#: Key group and sized key, as stored keys begin and go on.
KeyParts = tuple[bytes, bytes]


class KeyContext:
    """The key of the row at hand. Operators set both slots per row, and nothing else.

    ``identity`` is ``KeyCodec.identity(key)``: what caches are keyed by.
    """

    __slots__ = ("identity", "key")

    def __init__(self) -> None:
        self.key: Any = None
        self.identity: Hashable = NO_KEY

    def clear(self) -> None:
        """No key: state must not be used."""
        self.key = None
        self.identity = NO_KEY


class KeyTable:
    """Stored forms of the keys that were used since ``clear``."""

    def __init__(self, codec: KeyCodec, key_groups: KeyGroupRange, max_parallelism: int, operator_name: str) -> None:
        self.codec = codec
        self.key_groups = key_groups
        self._max_parallelism = max_parallelism
        self._operator_name = operator_name
        self._parts: dict[Hashable, KeyParts] = {}

    def __len__(self) -> int:
        return len(self._parts)

    def parts(self, identity: Hashable, key: Any) -> KeyParts:
        """The parts of a key; StateAccessError when none is set, StateError when it is another subtask's."""
        found = self._parts.get(identity)
        if found is None:
            if identity is NO_KEY:
                raise StateAccessError(
                    f"Keyed state of operator '{self._operator_name}' was used without a current key. It exists only "
                    f"inside the functions that process a row or a timer, not in open() or close(). Broadcast elements "
                    f"have no key: they reach keyed state through ctx.apply_to_keyed_state()."
                )
            group = self.codec.hash(key) % self._max_parallelism
            if group not in self.key_groups:
                raise self._not_mine(key, group)
            found = self._parts[identity] = (group_bytes(group), sized(self.codec.encode(key)))
        return found

    def parts_of(self, key: Any) -> KeyParts:
        """The parts of a key that is not the current one."""
        return self.parts(key if self.codec.trivial_identity else self.codec.identity(key), key)

    def many(self, keys: dict[Hashable, Any]) -> list[KeyParts]:
        """The parts of keys by identity, in their order."""
        found = list(map(self._parts.get, keys))
        if None in found:
            self._add({identity: key for identity, key in keys.items() if identity not in self._parts})
            found = list(map(self._parts.__getitem__, keys))
        return cast(list[KeyParts], found)

    def _add(self, keys: dict[Hashable, Any]) -> None:
        """As ``parts`` of each, with all hashes computed together."""
        groups = self.codec.hash_many(list(keys.values())) % self._max_parallelism
        first, last = self.key_groups.start, self.key_groups.end
        for at in np.flatnonzero((groups < first) | (groups > last)):
            raise self._not_mine(list(keys.values())[at], int(groups[at]))
        encode, own = self.codec.encode, [group_bytes(group) for group in range(first, last + 1)]
        stored = [
            (own[group], sized(encode(key)))
            for group, key in zip((groups - first).tolist(), keys.values(), strict=True)
        ]
        self._parts.update(zip(keys, stored, strict=True))

    def slices(self, keys: pa.Array, size: int) -> Iterator[tuple[Sequence[Hashable], list[Any]]]:
        """The identities and the keys of a column, so many at a time."""
        for piece in self.pieces(keys, size):
            some = self.column.read(piece)
            if not self.codec.trivial_identity:
                yield list(map(self.codec.identity, some)), some
            else:
                yield some, some

    def pieces(self, keys: pa.Array, size: int) -> list[pa.Array]:
        """A column of keys in the Arrow type of their type, cut into pieces; at least one."""
        if keys.null_count:
            raise NullKeyError(
                f"{keys.null_count} of {len(keys)} keys given to state of operator '{self._operator_name}' are null. "
                "Leave them out: a row without a key has no state."
            )
        keys = self.column.conform(keys)
        return [keys.slice(start, size) for start in range(0, len(keys), size)] if len(keys) > size else [keys]

    @cached_property
    def column(self) -> Column:
        """Reads and writes columns of keys."""
        return Column(self.codec.type_info, f"the keys of operator '{self._operator_name}'")

    def forget(self, identity: Hashable) -> None:
        self._parts.pop(identity, None)

    def clear(self) -> None:
        self._parts.clear()

    def _not_mine(self, key: Any, group: int) -> StateError:
        return StateError(
            f"The key {key!r:.100} of operator '{self._operator_name}' is in key group {group}, but this subtask owns "
            f"{self.key_groups.start} to {self.key_groups.end}. The row was sent to the wrong subtask: a key selector "
            f"must give the same key for the same row every time."
        )
