"""The kinds of keyed state with a time to live. Values, elements of lists and entries of maps expire one by one.

Cells are timed (see ``ttl_cells.py``). What a read finds expired is removed, and a read that renews is a write. A state
that may return what has expired does so until it is removed: by that very read for most kinds, for elements of lists
when half of them have expired, since removing them means to write the others anew.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from holdfast.state.cells import Encoded
from holdfast.state.combining_state import StoredAccumulator, StoredReduction
from holdfast.state.keyed_state import KeyedState, Pending
from holdfast.state.list_state import StoredList
from holdfast.state.map_state import ABSENT, KeyedMapState
from holdfast.state.single_value import SingleValue
from holdfast.state.states import AggregatingState, ListState, ReducingState
from holdfast.state.ttl_cells import ExpiringCells
from holdfast.state.value_state import KeyedValueState


class ExpiringState(KeyedState):
    """What they share. ``accesses`` and ``written`` entries are counted for whoever cleans up, and reset by it."""

    #: ExpiringCells, where the states without a time to live have Cells.
    _cells: Any
    accesses: int = 0
    written: int = 0

    @property
    def cells(self) -> ExpiringCells:
        cells: ExpiringCells = self._cells
        return cells

    def collect(self, pending: Pending) -> None:
        before = len(pending.writes)
        super().collect(pending)
        self.written += len(pending.writes) - before

    def forget(self, entries: Iterable[tuple[bytes, Hashable]]) -> None:
        """Drop what is cached of keys, given by namespace and identity; nothing may be dirty."""
        spaces = {space.namespace: space for space in self._spaces.values()}
        for namespace, identity in entries:
            if namespace in spaces:
                spaces[namespace].live.pop(identity, None)

    def _at_access(self) -> int:
        """The time of this access."""
        self.accesses += 1
        now: int = self._cells.time.at_access()
        return now


class _ExpiringValue(ExpiringState, SingleValue):
    def adopt_keys(self, older: SingleValue) -> None:
        """Nothing: all cells have a time here."""

    def _get(self) -> Any:
        now = self._at_access()
        try:
            cell = self._live[self._context.identity].cell
        except KeyError:
            cell = self._load().cell
        if cell is None:
            return None
        value, touched = cell
        cells = self._cells
        if touched <= now - cells.ttl:
            self.clear()
            return cells.open(cell) if cells.returns_expired else None
        if cells.renews and touched < now:
            self._set((value, now))
        return value if value.__class__ is not Encoded else self._cells.decode(value.data)

    def _put(self, value: Any) -> None:
        self._at_access()
        self._set(self._cells.admit(value))


class ExpiringValueState(_ExpiringValue, KeyedValueState):
    """Value state with a time to live; see ValueState."""

    def value(self) -> Any:
        return self._get()

    def update(self, value: Any) -> None:
        if value is None:
            self.clear()
        else:
            self._put(value)

    def get_many(self, keys: pa.Array) -> pa.Array:
        return self.column.write([self.value() for _ in self._each(keys)])

    def put_many(self, keys: pa.Array, values: pa.Array) -> None:
        for value, _ in zip(self.column.read(values), self._each(keys), strict=True):
            self.update(value)

    def _each(self, keys: pa.Array) -> Iterator[None]:
        """Each key in turn as the current one: one may be expired and its neighbour not."""
        context = self._context
        before = context.identity, context.key
        try:
            for identities, their_keys in self._access.keys.slices(keys, len(keys) or 1):
                for context.identity, context.key in zip(identities, their_keys, strict=True):
                    yield
        finally:
            context.identity, context.key = before


class ExpiringReducingState(_ExpiringValue, StoredReduction, ReducingState[Any]):
    """Reducing state with a time to live. Begins anew with the first element after the value has expired."""


class ExpiringAggregatingState(_ExpiringValue, StoredAccumulator, AggregatingState[Any, Any]):
    """Aggregating state with a time to live. Begins anew with the first element after the accumulator has expired."""


class ExpiringListState(ExpiringState, StoredList, ListState[Any]):
    """List state with a time to live for each element; see ListState."""

    def _admit(self, value: Any) -> Any:
        self._at_access()
        return super()._admit(value)

    def _elements(self) -> list[Any]:
        now = self._at_access()
        cells, stored = self._cells, super()._elements()
        expired_at = now - cells.ttl
        present = [cell for cell in stored if cell[1] > expired_at]
        if cells.renews and any(touched < now for _, touched in present):
            present = [(value, now) for value, _ in present]
            self._replace(present)
        elif 2 * len(present) <= len(stored) and stored:
            self._replace(present)
        return stored if cells.returns_expired else present


class ExpiringMapState(ExpiringState, KeyedMapState):
    """Map state with a time to live for each entry; see MapState."""

    def put(self, key: Any, value: Any) -> None:
        self._at_access()
        self._set(key, self._cells.admit(value))

    def _revive(self, data: bytes | None) -> Any:
        return ABSENT if data is None else self._cells.revive(data)

    def _cell(self, key: Any) -> Any:
        now = self._at_access()
        cell = super()._cell(key)
        after = self._after_read(cell, now)
        if after is not cell:
            self._set(key, after)
        return self._seen(cell, after)

    def _entries(self) -> Iterator[tuple[Any, Any]]:
        return self._read_all(super()._entries(), self._at_access())

    def _range(self, first: int, last: int) -> Iterator[tuple[Any, Any]]:
        return self._read_all(super()._range(first, last), self._at_access())

    def _read_all(self, entries: Iterator[tuple[Any, Any]], now: int) -> Iterator[tuple[Any, Any]]:
        identity, space = self._context.identity, self._space
        for key, cell in entries:
            after = self._after_read(cell, now)
            # An iteration that goes on under another key only reads: a change would be that key's.
            if after is not cell and self._context.identity == identity and self._space is space:
                self._set(key, after)
            seen = self._seen(cell, after)
            if seen is not ABSENT:
                yield key, seen

    def _after_read(self, cell: Any, now: int) -> Any:
        """What a cell becomes by being read."""
        if cell is ABSENT:
            return cell
        value, touched = cell
        if touched <= now - self._cells.ttl:
            return ABSENT
        return (value, now) if self._cells.renews and touched < now else cell

    def _seen(self, cell: Any, after: Any) -> Any:
        """What the reader is given of a cell that has become ``after``."""
        return cell if self._cells.returns_expired else after
