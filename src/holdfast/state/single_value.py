"""What states of one stored value per key share: value, reducing and aggregating state."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, cast

from holdfast.errors import StateTypeError
from holdfast.state.cells import UNREAD, Cells, Encoded
from holdfast.state.handles import StateMeta
from holdfast.state.keyed_state import Cached, KeyedState, Pending, StateAccess
from holdfast.state.keys import KeyCodec

#: Keys are read ahead where more than one of so many rows had to read its state on its own,
_FEW_LOADS = 16
#: and for so many announcements of keys.
_PIECES_AHEAD = 32
#: Keys that bulk access takes at a time; the cache can take in so many.
AT_ONCE = 100_000


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
            self.cached_many(identities, keys, read=True)

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
            raise self._placed(error, cached) from error.__cause__

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
        try:
            self._set(value if value.__class__ is self._plain else self._cells.admit(value))
        except StateTypeError as error:
            raise error.at(state=self.label) from error.__cause__

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

    def cached_many(self, identities: Sequence[Hashable], keys: Sequence[Any], read: bool) -> list[CachedValue]:
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

    def write_many(self, written: Sequence[CachedValue], cells: Sequence[Any]) -> None:
        flush, dirty = self._flush, self._dirty
        for cached, cell in zip(written, cells, strict=True):
            cached.cell = cell
            if cached.changed_in != flush:
                cached.changed_in = flush
                dirty.append(cached)
