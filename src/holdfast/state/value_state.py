"""States of one stored value per key: value, reducing and aggregating state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from itertools import islice
from types import NoneType
from typing import Any

import pyarrow as pa

from holdfast.errors import StateTypeError
from holdfast.state.cells import Cells, Encoded
from holdfast.state.handles import StateMeta
from holdfast.state.key_table import NO_KEY
from holdfast.state.keyed_state import KeyedState, MergingNamespaces, Pending, Space, StateAccess
from holdfast.state.keys import KeyCodec
from holdfast.state.states import AggregatingState, ReducingState, ValueState
from holdfast.types.columns import Column

#: Keys that bulk access takes at a time; the cache can take in so many.
_AT_ONCE = 100_000


class SingleValue(KeyedState):
    """One cell per key; None is a key without a value.

    Once a key is in the cache, reading and writing it is a dict operation each. Everything else happens when a key
    is touched first in an epoch, and in ``collect``.
    """

    #: Whether it is remembered that the store has nothing of a key.
    _remembers_absent = False

    def __init__(self, access: StateAccess, meta: StateMeta, namespaces: KeyCodec | None, cells: Cells) -> None:
        super().__init__(access, meta, namespaces)
        self._cells = cells
        self._plain = cells.plain
        self._decode = cells.decode

    def clear(self) -> None:
        identity = self._context.identity
        if identity not in self._live:
            self._admit_key(identity)
        self._live[identity] = None
        self._dirty[identity] = self._context.key

    def collect(self, pending: Pending) -> None:
        for space in self._dirty_spaces():
            heads = self._heads(space, space.dirty)
            cells = list(map(space.live.__getitem__, space.dirty))
            if None in cells:
                present = [cell for cell in cells if cell is not None]
                packed = iter(self._pack(space, present))
                pending.writes += [
                    (head, None if cell is None else next(packed)) for head, cell in zip(heads, cells, strict=True)
                ]
            else:
                pending.writes += zip(heads, self._pack(space, cells), strict=True)

    def _pack(self, space: Space, cells: list[Any]) -> list[bytes]:
        try:
            return self._cells.pack(cells)
        except StateTypeError:
            for identity, key in space.dirty.items():
                self._check(space.live[identity], key)
            raise

    def _check(self, cell: Any, key: Any) -> None:
        try:
            if cell is not None:
                self._cells.pack([cell])
        except StateTypeError as error:
            raise StateTypeError(
                f"State '{self.name}' of operator '{self._access.operator_name}', key {key!r:.100}: {error}"
            ) from error

    def _get(self) -> Any:
        try:
            cell = self._live[self._context.identity]
        except KeyError:
            cell = self._load()
        return cell if cell.__class__ is not Encoded else self._decode(cell.data)

    def _put(self, value: Any) -> None:
        identity = self._context.identity
        if value.__class__ is not self._plain:
            value = self._cells.admit(value)
        if identity not in self._live:
            self._admit_key(identity)
        self._live[identity] = value
        self._dirty[identity] = self._context.key

    def _load(self) -> Any:
        data = self._store.get(self._current_head())
        cell = None if data is None else self._cells.revive(data)
        self._access.make_room()
        self._live[self._context.identity] = cell
        return cell

    def _load_many(self, identities: Sequence[Hashable], keys: Sequence[Any]) -> None:
        """Have all of them in the cache. To make room may empty it."""
        if not self._make_room_for(identities):
            return
        live = self._live
        missing = {identity: key for identity, key in zip(identities, keys, strict=True) if identity not in live}
        found = self._store.get_many(self._heads(self._space, missing))
        if self._remembers_absent:
            self._space.absent.update(i for i, data in zip(missing, found, strict=True) if data is None)
        revive = self._cells.revive
        live.update(zip(missing, (None if data is None else revive(data) for data in found), strict=True))

    def _make_room_for(self, identities: Sequence[Hashable]) -> int:
        """How many of them are not in the cache. To make room may empty it."""
        missing = len(identities) - sum(map(self._live.__contains__, identities))
        if missing:
            self._access.make_room(missing)
        return missing

    def _admit_key(self, identity: Hashable) -> None:
        """A key that is written without having been read."""
        if identity is NO_KEY:
            self._current_head()
        self._access.make_room()


class KeyedValueState(SingleValue, ValueState[Any]):
    """See ValueState."""

    # The two methods below are called per row: they repeat _get and _put to save a call.

    def value(self) -> Any:
        try:
            cell = self._live[self._context.identity]
        except KeyError:
            cell = self._load()
        return cell if cell.__class__ is not Encoded else self._decode(cell.data)

    def update(self, value: Any) -> None:
        if value.__class__ is not self._plain:
            if value is None:
                return self.clear()
            value = self._cells.admit(value)
        identity = self._context.identity
        if identity not in self._live:
            self._admit_key(identity)
        self._live[identity] = value
        self._dirty[identity] = self._context.key
        return None


    def get_many(self, keys: pa.Array) -> pa.Array:
        values: list[Any] = []
        for identities, their_keys in self._access.keys.slices(keys, _AT_ONCE):
            self._load_many(identities, their_keys)
            values += map(self._cells.open, map(self._live.__getitem__, identities))
        return self._column.write(values)

    def put_many(self, keys: pa.Array, values: pa.Array) -> None:
        if len(keys) != len(values):
            raise StateTypeError(
                f"put_many() of state '{self.name}' of operator '{self._access.operator_name}' was given {len(keys)} "
                f"keys and {len(values)} values; give one value for each key."
            )
        remaining = iter(self._column.read(values))
        for identities, their_keys in self._access.keys.slices(keys, _AT_ONCE):
            self._access.make_room(len(identities))
            cells = list(islice(remaining, len(identities)))
            if not set(map(type, cells)) <= {self._plain, NoneType}:
                cells = [None if value is None else self._cells.admit(value) for value in cells]
            self._live.update(zip(identities, cells, strict=True))
            self._dirty.update(zip(identities, their_keys, strict=True))

    @cached_property
    def _column(self) -> Column:
        return Column(self._cells.serializer.type_info, f"state '{self.name}'")


class _Combining(SingleValue, MergingNamespaces):
    """A single value that two namespaces can combine."""

    def keep_copy(self) -> None:
        """Whoever has what ``get`` gave of an owned value may change it from now on."""
        value = self._get()
        if value is not None:
            self._live[self._context.identity] = self._cells.copy(value)

    def _take(self) -> list[Any]:
        value = self._get()
        if value is None:
            return []
        self.clear()
        return [value]

    def _absorb(self, parts: list[Any]) -> None:
        for part in parts:
            value = self._get()
            self._put(part if value is None else self._combine(value, part))

    @abstractmethod
    def _combine(self, left: Any, right: Any) -> Any:
        """One value of two."""


class KeyedReducingState(_Combining, ReducingState[Any]):
    """See ReducingState."""

    def __init__(
        self,
        access: StateAccess,
        meta: StateMeta,
        namespaces: KeyCodec | None,
        cells: Cells,
        reduce: Callable[[Any, Any], Any],
    ) -> None:
        super().__init__(access, meta, namespaces, cells)
        self._reduce = reduce

    def get(self) -> Any:
        return self._get()

    def add(self, value: Any) -> None:
        if value is None:
            return self.clear()
        current = self._get()
        reduced = value if current is None else self._reduce(current, value)
        self._put(self._cells.copy(value) if reduced is value else reduced)
        return None

    def _combine(self, left: Any, right: Any) -> Any:
        return self._reduce(left, right)


class KeyedAggregatingState(_Combining, AggregatingState[Any, Any]):
    """See AggregatingState."""

    _remembers_absent = True

    def __init__(
        self, access: StateAccess, meta: StateMeta, namespaces: KeyCodec | None, cells: Cells, function: Any
    ) -> None:
        super().__init__(access, meta, namespaces, cells)
        self._function = function

    def get(self) -> Any:
        accumulator = self._get()
        return None if accumulator is None else self._function.get_result(accumulator)

    def add(self, value: Any) -> None:
        if value is None:
            return self.clear()
        accumulator = self._get()
        if accumulator is None:
            accumulator = self._function.create_accumulator()
        self._put(self._function.add(value, accumulator))
        return None

    def accumulators(self, identities: Sequence[Hashable], keys: Sequence[Any]) -> list[Any]:
        """Those of several keys, which are known by their identities too; None for a key without one."""
        found: list[Any] = []
        for start in range(0, len(keys), _AT_ONCE):
            some = identities[start : start + _AT_ONCE]
            self._load_many(some, keys[start : start + _AT_ONCE])
            found += map(self._cells.open, map(self._live.__getitem__, some))
        return found

    def put_accumulators(
        self, identities: Sequence[Hashable], keys: Sequence[Any], accumulators: Sequence[Any]
    ) -> None:
        """Set those of several keys. For an operator that owns them."""
        for start in range(0, len(keys), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            self._make_room_for(identities[some])
            self._live.update(zip(identities[some], accumulators[some], strict=True))
            self._dirty.update(zip(identities[some], keys[some], strict=True))

    def remove_accumulators(self, identities: Sequence[Hashable], keys: Sequence[Any]) -> None:
        """Of those that were never stored nothing is left to write."""
        absent = self._space.absent
        for identity, key in zip(identities, keys, strict=True):
            if identity in absent:
                absent.discard(identity)
                self._dirty.pop(identity, None)
                if self._live.pop(identity, None) is not None:
                    self._access.room += 1
            else:
                self._live[identity] = None
                self._dirty[identity] = key

    def is_absent(self, identity: Hashable) -> bool:
        """Whether the store is known to have nothing of a key."""
        return identity in self._space.absent

    def _combine(self, left: Any, right: Any) -> Any:
        return self._function.merge(left, right)
