"""States of one stored value per key: value, reducing and aggregating state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from itertools import islice
from types import NoneType
from typing import Any, cast

import pyarrow as pa

from holdfast.errors import StateTypeError
from holdfast.state.cells import UNREAD, Cells, Encoded
from holdfast.state.handles import StateMeta
from holdfast.state.keyed_state import Cached, KeyedState, MergingNamespaces, Pending, StateAccess
from holdfast.state.keys import KeyCodec
from holdfast.state.states import AggregatingState, ReducingState, ValueState
from holdfast.types.columns import Column

#: Keys are read ahead where more than one of so many rows had to read its state on its own,
_FEW_LOADS = 16
#: and for so many announcements of keys.
_PIECES_AHEAD = 32
#: Keys that bulk access takes at a time; the cache can take in so many.
_AT_ONCE = 100_000


class CachedValue(Cached):
    """The cell of a key; None is a key without a value."""

    __slots__ = ("absent_in", "cell")

    def __init__(self, head: bytes, cell: Any) -> None:
        # Not by super(): one is made for every key that an epoch touches.
        self.head = head
        self.changed_in = -1
        self.cell = cell
        #: Until the flush of this number the store is known to have nothing of the key.
        self.absent_in = -1


class SingleValue(KeyedState):
    """One cell per key.

    Once a key is in the cache, reading and writing it is a dict operation each. Everything else happens when a key
    is touched first in an epoch, and in ``collect``.
    """

    def __init__(self, access: StateAccess, meta: StateMeta, namespaces: KeyCodec | None, cells: Cells) -> None:
        super().__init__(access, meta, namespaces)
        self._cells = cells
        self._plain = cells.plain
        #: Keys that were read one by one since keys were announced, and how many rows were.
        self._loads = self._announced = 0
        #: For so many more announcements keys are read ahead.
        self._ahead = 0

    def clear(self) -> None:
        self._set(None)

    def expect(self, identities: Sequence[Hashable], keys: Sequence[Any]) -> None:
        """Reads ahead for a while if many keys were read one by one: after a restore or a change of the worker process,
        or where there are more keys than the caches hold. From time to time it looks again whether they still are.
        """
        if self._loads * _FEW_LOADS > self._announced:
            self._ahead = _PIECES_AHEAD
        self._loads, self._announced = 0, len(identities)
        if self._ahead and self._namespaces is None:
            self._ahead -= 1
            self._cached_many(identities, keys, read=True)

    def adopt_keys(self, older: SingleValue) -> None:
        if self._id == older._id and self._namespaces is None and not self._live:
            for cached in older._live.values():
                cached.cell = UNREAD
                cached.changed_in = cached.absent_in = -1
            self._spaces[None].live = self._live = older._live
            self._access.room -= len(self._live)

    def cached_entries(self) -> int:
        return sum(len(space.live) for space in self._spaces.values())

    def _weigh(self, cached: CachedValue) -> int:
        return 1

    def _is_empty(self, cached: CachedValue) -> bool:
        return cached.cell is None

    def _collect(self, changed: list[CachedValue], pending: Pending) -> None:
        # By identity: owned values may be of classes with an equality of their own, as arrays are.
        if not all([cached.cell is not None for cached in changed]):
            # What came and went since the last flush was never stored.
            changed = [one for one in changed if one.cell is not None or one.absent_in != self._flush]
            packed = iter(self._pack([cached for cached in changed if cached.cell is not None]))
            pending.writes += [(cached.head, None if cached.cell is None else next(packed)) for cached in changed]
        else:
            pending.writes += zip([cached.head for cached in changed], self._pack(changed), strict=True)

    def _pack(self, changed: list[CachedValue]) -> list[bytes]:
        try:
            return self._cells.pack([cached.cell for cached in changed])
        except StateTypeError:
            for cached in changed:
                self._check(cached)
            raise

    def _check(self, cached: CachedValue) -> None:
        try:
            self._cells.pack([cached.cell])
        except StateTypeError as error:
            key = self._key_of(cached.head)
            raise StateTypeError(
                f"State '{self.name}' of operator '{self._access.operator_name}', key {key!r:.100}: {error}"
            ) from error

    def _get(self) -> Any:
        try:
            cell = self._live[self._context.identity].cell
        except KeyError:
            cell = self._load().cell
        return cell if cell.__class__ is not Encoded else self._open(cell)

    def _open(self, cell: Encoded) -> Any:
        """The value of the current key's cell."""
        if cell is UNREAD:
            cell = self._load().cell
        return self._cells.open(cell)

    def _put(self, value: Any) -> None:
        self._set(value if value.__class__ is self._plain else self._cells.admit(value))

    def _set(self, cell: Any) -> None:
        """Give the current key another cell."""
        try:
            cached = self._live[self._context.identity]
        except KeyError:
            cached = self._admit_key()
        cached.cell = cell
        self._mark(cached)

    def _load(self) -> CachedValue:
        """A key that is read first, or first again."""
        self._loads += 1
        head = self._current_head()
        data = self._store.get(head)
        cached = CachedValue(head, None if data is None else self._cells.revive(data))
        if data is None:
            cached.absent_in = self._flush
        return self._remember(cached)

    def _admit_key(self) -> CachedValue:
        """A key that is written without having been read."""
        return self._remember(CachedValue(self._current_head(), None))

    def _remember(self, cached: CachedValue) -> CachedValue:
        self._access.make_room()
        self._live[self._context.identity] = cached
        return cached

    def _cached_many(self, identities: Sequence[Hashable], keys: Sequence[Any], read: bool) -> list[CachedValue]:
        """What the cache has of keys, having taken in those that it did not have: as they are stored, or without a cell
        for who sets them all.
        """
        found = cast(list[CachedValue], list(map(self._live.get, identities)))
        if not all(found):
            self._access.make_room(len(found) - sum(map(bool, found)))
            # That may have emptied the cache.
            live = self._live
            missing = {identity: key for identity, key in zip(identities, keys, strict=True) if identity not in live}
            added = [CachedValue(head, UNREAD if read else None) for head in self._heads(missing)]
            live.update(zip(missing, added, strict=True))
            found = list(map(live.__getitem__, identities))
        if read:
            self._read({cached.head: cached for cached in found if cached.cell is UNREAD})
        return found

    def _read(self, unread: dict[bytes, CachedValue]) -> None:
        """Give keys the cells that are stored, by their heads."""
        revive = self._cells.revive
        for cached, data in zip(unread.values(), self._store.get_many(list(unread)), strict=True):
            if data is None:
                cached.cell, cached.absent_in = None, self._flush
            else:
                cached.cell = revive(data)

    def _write_many(self, written: Sequence[CachedValue], cells: Sequence[Any]) -> None:
        flush, dirty = self._flush, self._dirty
        for cached, cell in zip(written, cells, strict=True):
            cached.cell = cell
            if cached.changed_in != flush:
                cached.changed_in = flush
                dirty.append(cached)


class KeyedValueState(SingleValue, ValueState[Any]):
    """See ValueState."""

    # The two methods below are called per row: they repeat _get, _put and _mark to save a call.

    def value(self) -> Any:
        try:
            cell = self._live[self._context.identity].cell
        except KeyError:
            cell = self._load().cell
        return cell if cell.__class__ is not Encoded else self._open(cell)

    def update(self, value: Any) -> None:
        if value.__class__ is not self._plain and value is not None:
            value = self._cells.admit(value)
        try:
            cached = self._live[self._context.identity]
        except KeyError:
            cached = self._admit_key()
        cached.cell = value
        if cached.changed_in != self._flush:
            cached.changed_in = self._flush
            self._dirty.append(cached)

    def get_many(self, keys: pa.Array) -> pa.Array:
        values: list[Any] = []
        for identities, their_keys in self._access.keys.slices(keys, _AT_ONCE):
            found = self._cached_many(identities, their_keys, read=True)
            values += [self._cells.open(cached.cell) for cached in found]
        return self._column.write(values)

    def put_many(self, keys: pa.Array, values: pa.Array) -> None:
        if len(keys) != len(values):
            raise StateTypeError(
                f"put_many() of state '{self.name}' of operator '{self._access.operator_name}' was given {len(keys)} "
                f"keys and {len(values)} values; give one value for each key."
            )
        remaining = iter(self._column.read(values))
        for identities, their_keys in self._access.keys.slices(keys, _AT_ONCE):
            cells = list(islice(remaining, len(identities)))
            if not set(map(type, cells)) <= {self._plain, NoneType}:
                cells = [None if value is None else self._cells.admit(value) for value in cells]
            self._write_many(self._cached_many(identities, their_keys, read=False), cells)

    @cached_property
    def _column(self) -> Column:
        return Column(self._cells.serializer.type_info, f"state '{self.name}'")


class CombiningState(SingleValue, MergingNamespaces):
    """A single value that two namespaces can combine."""

    def kept(self) -> Any:
        """What the current key has: an accumulator, or what values were reduced to; None for nothing."""
        return self._get()

    def keep(self, kept: Any) -> None:
        """Set it. For an operator that owns it."""
        self._set(kept)

    @abstractmethod
    def folded(self, value: Any, kept: Any) -> Any:
        """What is to be kept when a value comes to what was."""

    @abstractmethod
    def combined(self, left: Any, right: Any) -> Any:
        """One of two that were kept."""

    def keep_copy(self) -> None:
        """Whoever has what ``get`` gave of an owned value may change it from now on."""
        value = self._get()
        if value is not None:
            self._live[self._context.identity].cell = self._cells.copy(value)

    def _take(self) -> list[Any]:
        value = self._get()
        if value is None:
            return []
        self.clear()
        return [value]

    def _absorb(self, parts: list[Any]) -> None:
        for part in parts:
            value = self._get()
            self._put(part if value is None else self.combined(value, part))


class KeyedReducingState(CombiningState, ReducingState[Any]):
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
        self._put(self.folded(value, self._get()))
        return None

    def folded(self, value: Any, kept: Any) -> Any:
        reduced = value if kept is None else self._reduce(kept, value)
        return self._cells.copy(value) if reduced is value else reduced

    def combined(self, left: Any, right: Any) -> Any:
        return self._reduce(left, right)


class KeyedAggregatingState(CombiningState, AggregatingState[Any, Any]):
    """See AggregatingState."""

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
        self._put(self.folded(value, self._get()))
        return None

    def folded(self, value: Any, kept: Any) -> Any:
        return self._function.add(value, self._function.create_accumulator() if kept is None else kept)

    def accumulators(self, identities: Sequence[Hashable], keys: Sequence[Any]) -> list[Any]:
        """Those of several keys, which are known by their identities too; None for a key without one."""
        found: list[Any] = []
        for start in range(0, len(keys), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            cached = self._cached_many(identities[some], keys[some], read=True)
            found += [self._cells.open(one.cell) for one in cached]
        return found

    def put_accumulators(
        self, identities: Sequence[Hashable], keys: Sequence[Any], accumulators: Sequence[Any]
    ) -> None:
        """Set those of several keys. For an operator that owns them."""
        for start in range(0, len(keys), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            self._write_many(self._cached_many(identities[some], keys[some], read=False), accumulators[some])

    def remove_accumulators(self, identities: Sequence[Hashable], keys: Sequence[Any]) -> None:
        """Those of several keys, each once. Of those that were never stored nothing is left."""
        for start in range(0, len(keys), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            removed = self._cached_many(identities[some], keys[some], read=False)
            self._write_many(removed, [None] * len(removed))
            for identity, cached in zip(identities[some], removed, strict=True):
                if cached.absent_in == self._flush:
                    del self._live[identity]

    def is_absent(self, identity: Hashable) -> bool:
        """Whether the store is known to have nothing of a key."""
        cached = self._live.get(identity)
        return cached is not None and cached.absent_in == self._flush

    def combined(self, left: Any, right: Any) -> Any:
        return self._function.merge(left, right)
