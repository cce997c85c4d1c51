"""Broadcast state: a map that every subtask of an operator holds.

Values are handed out as they were put: one that can be changed in place comes as a new object each time, so that
changing it changes no subtask's state. What is put is kept as its bytes say, and entries keep the order in which they
were put, in snapshots too: a subtask that was restored, or taken up by another process, reads what all others read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn

from holdfast.coverage.answers import SaysWhatToUse
from holdfast.errors import StateAccessError
from holdfast.state.cells import Cells
from holdfast.state.serializers import Serializer, type_errors_of


class ReadOnlyBroadcastState(SaysWhatToUse):
    """A broadcast map that can be read. ``open_cell`` makes values of the cells of ``cells``."""

    def __init__(self, cells: Mapping[Any, Any], open_cell: Callable[[Any], Any]) -> None:
        self._cells = cells
        self._open = open_cell

    def get(self, key: Any) -> Any:
        """The value of ``key``; None when there is none."""
        return self._open(self._cells.get(key))

    def contains(self, key: Any) -> bool:
        return key in self._cells

    def items(self) -> Iterator[tuple[Any, Any]]:
        """The entries of now, in the order in which their keys were first put; changing them meanwhile is allowed."""
        open_cell = self._open
        return ((key, open_cell(cell)) for key, cell in list(self._cells.items()))

    def keys(self) -> Iterator[Any]:
        return iter(list(self._cells))

    def values(self) -> Iterator[Any]:
        return map(self._open, list(self._cells.values()))

    def is_empty(self) -> bool:
        return not self._cells

    def __getitem__(self, key: Any) -> Any:
        return self.get(key)

    def __contains__(self, key: Any) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[Any]:
        return self.keys()


class BroadcastState(ReadOnlyBroadcastState):
    """A broadcast map. It stays the same on every subtask only if all change it in the same way in the same order.

    Keys and values are checked against their types when they are put, and stored as they are then: a value that is
    changed in place must be put again. ``owner`` is how errors name it; ``elements`` are encoded keys and values in
    turn.
    """

    def __init__(self, owner: str, key: Serializer, value: Serializer, elements: Sequence[bytes] = ()) -> None:
        self._owner = owner
        self._key, self._value = key, value
        self._revive = (cells := Cells(value)).revive
        self._live: dict[Any, Any] = {}
        self._stored: dict[Any, tuple[bytes, bytes]] = {}
        self._view: ReadOnlyBroadcastState | None = None
        super().__init__(self._live, cells.open)
        self._take(elements[0::2], elements[1::2])

    def put(self, key: Any, value: Any) -> None:
        with type_errors_of(self._owner):
            encoded_key, encoded_value = self._key.encode(key), self._value.encode(value)
        self._take([encoded_key], [encoded_value])

    def put_all(self, dict_value: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
        """All entries, or, when one is not of the type, none."""
        added = dict(dict_value)
        with type_errors_of(self._owner):
            keys, values = self._key.encode_many(list(added)), self._value.encode_many(list(added.values()))
        self._take(keys, values)

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

    def read_only(self, name: str) -> ReadOnlyBroadcastState:
        """The view that shows later changes and cannot make any, always the same object; ``name`` is the state's, for
        errors.
        """
        if self._view is None:
            self._view = _View(MappingProxyType(self._live), self._open, name)
        return self._view

    def encoded(self) -> tuple[bytes, ...]:
        """Keys and values in turn, in the order of ``items``."""
        return tuple(part for pair in self._stored.values() for part in pair)

    def _take(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        for key, encoded_key, encoded_value in zip(self._key.decode_many(keys), keys, values, strict=True):
            self._stored[key] = encoded_key, encoded_value
            self._live[key] = self._revive(encoded_value)


class _View(ReadOnlyBroadcastState):
    """What the read-only side is given: it has the methods that write only to say why they must not be used."""

    def __init__(self, cells: Mapping[Any, Any], open_cell: Callable[[Any], Any], name: str) -> None:
        super().__init__(cells, open_cell)
        self._name = name

    def _refuse(self, *_: Any) -> NoReturn:
        raise StateAccessError(
            f"The broadcast state '{self._name}' can only be read in process_element() and on_timer(): rows and timers "
            "come to one subtask, and the state must stay the same on all. Change it in process_broadcast_element()."
        )

    put = put_all = remove = clear = __setitem__ = __delitem__ = _refuse
