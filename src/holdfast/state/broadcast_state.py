"""Broadcast state: a map that every subtask of an operator holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.state.serializers import Serializer


class ReadOnlyBroadcastState:
    """A view of a broadcast map, for the side of a connected stream that must not change it."""

    def __init__(self, entries: Mapping[Any, Any]) -> None:
        self._entries = entries

    def get(self, key: Any) -> Any:
        """The value of ``key``; None when there is none."""
        return self._entries.get(key)

    def contains(self, key: Any) -> bool:
        return key in self._entries

    def items(self) -> Iterator[tuple[Any, Any]]:
        return iter(list(self._entries.items()))

    def keys(self) -> Iterator[Any]:
        return iter(list(self._entries))

    def values(self) -> Iterator[Any]:
        return iter(list(self._entries.values()))

    def is_empty(self) -> bool:
        return not self._entries

    def __getitem__(self, key: Any) -> Any:
        return self.get(key)

    def __contains__(self, key: Any) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[Any]:
        return self.keys()


class BroadcastState(ReadOnlyBroadcastState):
    """A broadcast map. It stays the same on every subtask only if all change it in the same way in the same order.

    Keys and values are checked against their types when they are put, and stored as they are then: a value that is
    changed in place must be put again. ``elements`` are encoded keys and values in turn.
    """

    def __init__(self, key: Serializer, value: Serializer, elements: Sequence[bytes] = ()) -> None:
        self._key, self._value = key, value
        keys = key.decode_many(elements[0::2])
        self._live: dict[Any, Any] = dict(zip(keys, value.decode_many(elements[1::2]), strict=True))
        self._stored = dict(zip(keys, zip(elements[0::2], elements[1::2], strict=True), strict=True))
        super().__init__(self._live)

    def put(self, key: Any, value: Any) -> None:
        self._stored[key] = self._key.encode(key), self._value.encode(value)
        self._live[key] = value

    def put_all(self, entries: Mapping[Any, Any]) -> None:
        """All entries, or, when one is not of the type, none."""
        added = dict(entries)
        self._stored.update({key: (self._key.encode(key), self._value.encode(value)) for key, value in added.items()})
        self._live.update(added)

    def remove(self, key: Any) -> None:
        """Remove the entry of ``key`` if there is one."""
        self._stored.pop(key, None)
        self._live.pop(key, None)

    def clear(self) -> None:
        self._stored.clear()
        self._live.clear()

    def __setitem__(self, key: Any, value: Any) -> None:
        self.put(key, value)

    def __delitem__(self, key: Any) -> None:
        self.remove(key)

    def read_only(self) -> ReadOnlyBroadcastState:
        """A view that shows later changes and cannot make any."""
        return ReadOnlyBroadcastState(self._live)

    def encoded(self) -> tuple[bytes, ...]:
        """Keys and values in turn, in the order of the encoded keys: equal maps give equal bytes on every subtask."""
        return tuple(part for pair in sorted(self._stored.values()) for part in pair)
