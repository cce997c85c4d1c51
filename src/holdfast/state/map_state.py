"""Map state: one stored entry per map key, under the head of its key."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any
from weakref import WeakSet

from holdfast.errors import StateTypeError
from holdfast.state.cells import Cells
from holdfast.state.handles import StateMeta
from holdfast.state.keyed_state import Cached, KeyedState, Pending, StateAccess
from holdfast.state.keys import KeyCodec
from holdfast.state.layout import prefix_end
from holdfast.state.states import MapState

#: Maps up to this size are kept whole in the cache once they were read to the end.
_CACHED_ENTRIES = 256
#: In a cell's place: the entry does not exist.
ABSENT = object()
#: The stored form of a None; no serializer gives empty bytes.
_NONE = b""


class _CachedMap(Cached):
    """Entries by identity of their map keys: (map key, cell), the ``dirty`` ones not yet written.

    ``complete``: entries that are not here do not exist. ``cleared``: what is stored is to be deleted first. ``order``:
    the map keys of the entries, sorted, from the first read of a range on.
    """

    __slots__ = ("cleared", "complete", "dirty", "entries", "order")

    def __init__(self, head: bytes) -> None:
        super().__init__(head)
        self.entries: dict[Hashable, tuple[Any, Any]] = {}
        self.dirty: set[Hashable] = set()
        self.cleared = False
        self.complete = False
        self.order: list[Any] | None = None

    def forget(self, identity: Hashable) -> None:
        del self.entries[identity]
        if self.order is not None:
            del self.order[bisect_left(self.order, identity)]


class _Iteration(Iterator[tuple[Any, Any]]):
    """Entries that are read from the store one by one. Before others are written there, the rest is read."""

    def __init__(self, entries: Iterator[tuple[Any, Any]]) -> None:
        self._entries = entries

    def __next__(self) -> tuple[Any, Any]:
        return next(self._entries)

    def read_rest(self) -> None:
        self._entries = iter(list(self._entries))


class KeyedMapState(KeyedState, MapState[Any, Any]):
    """Map state of keys, an entry for each map key; see MapState."""

    def __init__(
        self, access: StateAccess, meta: StateMeta, namespaces: KeyCodec | None, map_keys: KeyCodec, cells: Cells
    ) -> None:
        super().__init__(access, meta, namespaces)
        self._map_keys = map_keys
        self._trivial = map_keys.trivial_identity
        self._cells = cells
        #: Iterations that read the store and are not at their end; who forgets one ends it.
        self._iterations: WeakSet[_Iteration] = WeakSet()

    def get(self, key: Any) -> Any:
        cell = self._cell(key)
        return None if cell is ABSENT else self._cells.open(cell)

    def put(self, key: Any, value: Any) -> None:
        try:
            self._set(key, None if value is None else self._cells.admit(value))
        except StateTypeError as error:
            raise error.at(state=self.label) from error.__cause__

    def put_all(self, dict_value: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
        for key, value in dict(dict_value).items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        self._set(key, ABSENT)

    def contains(self, key: Any) -> bool:
        return self._cell(key) is not ABSENT

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Entries as they are now. Whatever is changed meanwhile, the iteration does not see."""
        open_cell = self._cells.open
        return ((key, open_cell(cell)) for key, cell in self._entries())

    def between(self, first: int, last: int) -> list[tuple[Any, Any]]:
        """The entries with map keys from ``first`` to ``last``, both included, in their order. For maps of LONG: what
        is read is what is given, however large the map is.
        """
        open_cell = self._cells.open
        return [(key, open_cell(cell)) for key, cell in self._range(first, last)]

    def keys(self) -> Iterator[Any]:
        return (key for key, _ in self._entries())

    def is_empty(self) -> bool:
        return next(self._entries(), None) is None

    def clear(self) -> None:
        cached = self._cached()
        cached.entries = {}
        cached.dirty = set()
        cached.order = None
        cached.cleared = cached.complete = True
        self._mark(cached)

    def collect(self, pending: Pending) -> None:
        for iteration in self._iterations:
            iteration.read_rest()
        self._iterations.clear()
        super().collect(pending)

    def _collect(self, changed: list[Any], pending: Pending) -> None:
        for cached in changed:
            try:
                self._collect_map(cached, pending)
            except StateTypeError as error:
                raise self._placed(error, cached) from error.__cause__

    def _collect_map(self, cached: _CachedMap, pending: Pending) -> None:
        head = cached.head
        if cached.cleared:
            pending.ranges.append((head, prefix_end(head)))
            cached.cleared = False
        encode_key = self._map_keys.encode
        for identity in cached.dirty:
            key, cell = cached.entries[identity]
            stored = head + encode_key(key)
            if cell is ABSENT:
                pending.writes.append((stored, None))
                # What is not in the cache may be anything, unless the whole map is.
                if cached.complete:
                    cached.forget(identity)
            else:
                pending.writes.append((stored, _NONE if cell is None else self._cells.pack([cell])[0]))
        cached.dirty.clear()

    def _is_empty(self, cached: _CachedMap) -> bool:
        return cached.complete and not cached.entries

    def _weigh(self, cached: _CachedMap) -> int:
        return 1 + len(cached.entries)

    def _identity(self, key: Any) -> Hashable:
        if key is None:
            raise StateTypeError("None cannot be a key of a map state.").at(state=self.label)
        identity: Hashable = key if self._trivial else self._map_keys.identity(key)
        return identity

    def _cached(self) -> _CachedMap:
        cached: _CachedMap | None = self._live.get(self._context.identity)
        if cached is None:
            head = self._current_head()
            self._access.make_room()
            cached = self._live[self._context.identity] = _CachedMap(head)
        return cached

    def _cell(self, key: Any) -> Any:
        identity = self._identity(key)
        cached = self._cached()
        found = cached.entries.get(identity)
        if found is not None:
            return found[1]
        if cached.complete:
            return ABSENT
        cell = self._revive(self._store.get(cached.head + self._map_keys.encode(key)))
        self._access.make_room()
        self._remember(self._cached(), identity, (self._normal(key), cell))
        return cell

    @staticmethod
    def _remember(cached: _CachedMap, identity: Hashable, entry: tuple[Any, Any]) -> None:
        """A new entry of the cache."""
        cached.entries[identity] = entry
        if cached.order is not None:
            insort(cached.order, identity)

    def _set(self, key: Any, cell: Any) -> None:
        identity = self._identity(key)
        cached = self._cached()
        known = cached.entries.get(identity)
        if known is None:
            self._access.make_room()
            cached = self._cached()
            # Making room may have emptied the cache, but has brought nothing into it.
            self._remember(cached, identity, (self._normal(key), cell))
        else:
            cached.entries[identity] = (known[0], cell)
        cached.dirty.add(identity)
        self._mark(cached)

    def _normal(self, key: Any) -> Any:
        return key if self._trivial else self._map_keys.normalise(key)

    def _revive(self, data: bytes | None) -> Any:
        if data is None:
            return ABSENT
        return None if data == _NONE else self._cells.revive(data)

    def _entries(self) -> Iterator[tuple[Any, Any]]:
        """Map keys and cells, as they are now: the stored ones in the order of their encoded keys, then those that are
        only cached."""
        cached = self._cached()
        if cached.complete:
            return iter([entry for entry in cached.entries.values() if entry[1] is not ABSENT])
        iteration = _Iteration(self._merged(cached, dict(cached.entries)))
        self._iterations.add(iteration)
        return iteration

    def _merged(self, cached: _CachedMap, overrides: dict[Hashable, tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
        head = cached.head
        read: list[tuple[Hashable, tuple[Any, Any]]] = []
        for stored, data in self._store.scan(head, prefix_end(head)):
            key = self._map_keys.decode(stored[len(head) :])
            identity = self._identity(key)
            entry = overrides.pop(identity, None) or (key, self._revive(data))
            if len(read) <= _CACHED_ENTRIES:
                read.append((identity, entry))
            if entry[1] is not ABSENT:
                yield entry
        self._complete(cached, read)
        yield from [entry for entry in overrides.values() if entry[1] is not ABSENT]

    def _complete(self, cached: _CachedMap, read: list[tuple[Hashable, tuple[Any, Any]]]) -> None:
        """All stored entries were read: keep them if they are few. Newer entries of the cache stay as they are."""
        if len(read) <= _CACHED_ENTRIES and not cached.complete:
            self._access.room -= len(read)
            cached.entries = {**dict(read), **cached.entries}
            cached.order = None
            cached.complete = True

    def _range(self, first: int, last: int) -> Iterator[tuple[Any, Any]]:
        """Map keys and cells of a range, in the order of the map keys."""
        cached = self._cached()
        if cached.order is None:
            # A map of few entries is read whole, and then known.
            for _ in islice(KeyedMapState._entries(self), _CACHED_ENTRIES + 1):
                pass
            cached = self._cached()
            cached.order = sorted(key for key, _ in cached.entries.values())
        order, entries = cached.order, cached.entries
        found = [entries[key] for key in order[bisect_left(order, first) : bisect_right(order, last)]]
        if not cached.complete:
            found = sorted([*found, *self._stored_range(first, last, entries)], key=_map_key)
        return (entry for entry in found if entry[1] is not ABSENT)

    def _stored_range(self, first: int, last: int, known: Container[Hashable]) -> Iterator[tuple[Any, Any]]:
        """Stored entries of a range that are not ``known``. Encoded numbers have the order of the numbers within those
        of one sign.
        """
        head, encode = self._current_head(), self._map_keys.encode
        for low, high in ((max(first, 0), last), (first, min(last, -1))):
            if low <= high:
                for stored, data in self._store.scan(head + encode(low), head + encode(high) + b"\0"):
                    key = self._map_keys.decode(stored[len(head) :])
                    if key not in known:
                        yield key, self._revive(data)


def _map_key(entry: tuple[Any, Any]) -> Any:
    return entry[0]
