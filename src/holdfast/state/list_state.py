"""List state: chunks of elements under one head, numbered in the order in which they were written."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from holdfast.errors import StateTypeError
from holdfast.state.cells import Cells
from holdfast.state.handles import StateMeta
from holdfast.state.keyed_state import Cached, MergingNamespaces, Pending, StateAccess
from holdfast.state.keys import KeyCodec
from holdfast.state.layout import number_bytes, prefix_end, read_number
from holdfast.state.states import ListState

#: Lists up to this length are kept in the cache once they were read.
_CACHED_ELEMENTS = 256
_FIRST_CHUNK = 0


class _CachedList(Cached):
    """``added``: cells that are not yet written. ``stored``: the cells that are, where they are known.

    ``replaced``: what is stored is to be deleted first. ``next_chunk``: the number of the next chunk, where it is
    known.
    """

    __slots__ = ("added", "next_chunk", "replaced", "stored")

    def __init__(self, head: bytes) -> None:
        super().__init__(head)
        self.added: list[Any] = []
        self.stored: list[Any] | None = None
        self.replaced = False
        self.next_chunk: int | None = None


class StoredList(MergingNamespaces):
    """A list per key. A flush writes one new chunk per list, with what was added since the last one."""

    def __init__(self, access: StateAccess, meta: StateMeta, namespaces: KeyCodec | None, cells: Cells) -> None:
        super().__init__(access, meta, namespaces)
        self._cells = cells

    def get(self) -> list[Any]:
        open_cell = self._cells.open
        return [open_cell(cell) for cell in self._elements()]

    def add(self, value: Any) -> None:
        cell = self._admit(value)
        self._changing().added.append(cell)

    def add_all(self, values: Iterable[Any]) -> None:
        cells = list(map(self._admit, values))
        if cells:
            self._changing().added += cells

    def update(self, values: Iterable[Any]) -> None:
        self._replace(list(map(self._admit, values)))

    def clear(self) -> None:
        self._replace([])

    def copies(self, values: Iterable[Any]) -> list[Any]:
        """What ``get`` gives of values that were added: other objects, unless they cannot be changed in place."""
        open_cell, admit = self._cells.open, self._cells.admit
        return [open_cell(admit(value)) for value in values]

    def _collect(self, changed: list[Any], pending: Pending) -> None:
        for cached in changed:
            try:
                self._collect_list(cached, pending)
            except StateTypeError as error:
                raise self._placed(error, cached) from error.__cause__

    def _collect_list(self, cached: _CachedList, pending: Pending) -> None:
        head = cached.head
        if cached.replaced:
            pending.ranges.append((head, prefix_end(head)))
            cached.next_chunk = _FIRST_CHUNK
            cached.stored = []
            cached.replaced = False
        if not cached.added:
            return
        if cached.next_chunk is None:
            last = self._store.last_key(head, prefix_end(head))
            cached.next_chunk = _FIRST_CHUNK if last is None else read_number(last[len(head) :]) + 1
        pending.writes.append((head + number_bytes(cached.next_chunk), self._cells.pack_chunk(cached.added)))
        cached.next_chunk += 1
        self._remember(cached, None if cached.stored is None else cached.stored + cached.added)
        cached.added = []

    def _is_empty(self, cached: _CachedList) -> bool:
        return cached.stored == []

    def _weigh(self, cached: _CachedList) -> int:
        return 1 + len(cached.stored or ())

    def _admit(self, value: Any) -> Any:
        if value is None:
            raise StateTypeError("None cannot be an element of a list state; leave it out.").at(state=self.label)
        try:
            return self._cells.admit(value)
        except StateTypeError as error:
            raise error.at(state=self.label) from error.__cause__

    def _cached(self, identity: Hashable) -> _CachedList:
        cached: _CachedList | None = self._live.get(identity)
        if cached is None:
            head = self._current_head()
            self._access.make_room()
            cached = self._live[identity] = _CachedList(head)
        return cached

    def _changing(self) -> _CachedList:
        cached = self._cached(self._context.identity)
        self._mark(cached)
        return cached

    def _replace(self, cells: list[Any]) -> None:
        cached = self._changing()
        cached.added = cells
        cached.replaced = True

    def _elements(self) -> list[Any]:
        cached = self._cached(self._context.identity)
        if cached.replaced:
            return cached.added
        stored = cached.stored
        if stored is None:
            head = cached.head
            revive = self._cells.revive_chunk
            stored = [cell for _, data in self._store.scan(head, prefix_end(head)) for cell in revive(data)]
            self._access.room -= len(stored)
            self._remember(cached, stored)
        return stored + cached.added

    def _remember(self, cached: _CachedList, stored: list[Any] | None) -> None:
        cached.stored = stored if stored is not None and len(stored) <= _CACHED_ELEMENTS else None

    def _take(self) -> list[Any]:
        cells = list(self._elements())
        if cells:
            self.clear()
        return cells

    def _absorb(self, parts: list[Any]) -> None:
        self._changing().added += parts


class KeyedListState(StoredList, ListState[Any]):
    """List state of keys; see ListState."""
