"""The cache strategies of a value state for access to many keys at once: objects, and columns.

Access key by key works on the objects of the state itself, at the cost of one look into a dict. A state goes over to
columns, and back, with ``KeyedValueState``; whichever it has, the other one is empty.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from itertools import islice
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from holdfast.state.cells import Cells
from holdfast.state.columnar_values import Positions, ValueColumns
from holdfast.state.keyed_state import Pending, StateAccess
from holdfast.state.single_value import AT_ONCE
from holdfast.types.columns import Column

if TYPE_CHECKING:
    from holdfast.state.value_state import KeyedValueState


class ValueCache(ABC):
    """Where the values of many keys are found and left. Beside the objects of the state it may hold entries itself."""

    #: Whether keys that come one by one next may be read ahead into the objects of the state.
    reads_ahead: bool

    @abstractmethod
    def get_many(self, keys: pa.Array) -> pa.Array:
        """The value of each key; null where it has none."""

    @abstractmethod
    def put_many(self, keys: pa.Array, values: pa.Array) -> None:
        """Give each key its value; null is none. Of a key that is there twice, the last one counts."""

    @abstractmethod
    def collect(self, pending: Pending) -> None:
        """Hand over what it holds itself and is not written, and take it as written."""

    @abstractmethod
    def entries(self) -> int:
        """How many it holds itself."""

    @abstractmethod
    def trim(self, entries: int) -> int:
        """Forget so many of them, the oldest first; how many are left to forget elsewhere. Nothing may be dirty."""

    @abstractmethod
    def drop(self) -> None:
        """Forget them all. Nothing may be dirty."""


class ObjectCache(ValueCache):
    """The objects that access key by key works on. The state itself counts, writes and forgets them."""

    reads_ahead = True

    def __init__(self, state: KeyedValueState, cells: Cells) -> None:
        self._state = state
        self._cells = cells

    def get_many(self, keys: pa.Array) -> pa.Array:
        state, open_cell = self._state, self._cells.open
        values: list[Any] = []
        for identities, their_keys in state.slices(keys):
            values += [open_cell(cached.cell) for cached in state.cached_many(identities, their_keys, read=True)]
        return state.column.write(values)

    def put_many(self, keys: pa.Array, values: pa.Array) -> None:
        state, remaining = self._state, iter(self._state.column.read(values))
        plain = {self._cells.plain, NoneType}
        for identities, their_keys in state.slices(keys):
            cells = list(islice(remaining, len(identities)))
            if not set(map(type, cells)) <= plain:
                cells = [None if value is None else self._cells.admit(value) for value in cells]
            state.write_many(state.cached_many(identities, their_keys, read=False), cells)

    def collect(self, pending: Pending) -> None:
        """Nothing is its own."""

    def entries(self) -> int:
        return 0

    def trim(self, entries: int) -> int:
        return entries

    def drop(self) -> None:
        """Nothing is its own."""


class ColumnCache(ValueCache):
    """A row of columns for each key. What its rows have changed is not in the store yet, so nothing is read ahead."""

    reads_ahead = False

    def __init__(
        self,
        columns: ValueColumns,
        column: Column,
        access: StateAccess,
        heads: Callable[[dict[Hashable, Any]], list[bytes]],
    ) -> None:
        """``heads`` gives the stored keys of keys by identity."""
        self._columns = columns
        self._column = column
        self._access = access
        self._heads = heads
        #: The keys that were looked for last, and where they are.
        self._asked: tuple[pa.Array, Positions] | None = None

    def take_columns(self) -> ValueColumns:
        """The keys that are cached, for another object of the same state. Their values are others by now."""
        self._columns.forget_values()
        return self._columns

    def get_many(self, keys: pa.Array) -> pa.Array:
        pieces = self._access.keys.pieces(keys, AT_ONCE)
        found = [self._columns.take(self._rows(piece, read=True)) for piece in pieces]
        return found[0] if len(found) == 1 else pa.concat_arrays(found)

    def put_many(self, keys: pa.Array, values: pa.Array) -> None:
        values, start = self._column.conform(values), 0
        for piece in self._access.keys.pieces(keys, AT_ONCE):
            self._columns.put(self._rows(piece, read=False), values.slice(start, len(piece)))
            start += len(piece)

    def collect(self, pending: Pending) -> None:
        pending.writes += self._columns.take_changes()

    def entries(self) -> int:
        return len(self._columns)

    def trim(self, entries: int) -> int:
        if entries == 0:
            return 0
        dropped = min(entries, len(self._columns))
        self._columns.drop_first(dropped)
        self._asked = None
        return entries - dropped

    def drop(self) -> None:
        self._columns.clear()
        self._asked = None

    def _rows(self, keys: pa.Array, read: bool) -> Positions:
        """Where the columns have keys, having taken in those that they did not have; ``read``: and their values. Who
        reads keys mostly writes them next: they are looked for once then.
        """
        if self._asked is None or self._asked[0] is not keys:
            self._asked = keys, self._places(keys)
        columns, rows = self._columns, self._asked[1]
        unknown = columns.unknown(rows) if read else rows[:0]
        if len(unknown):
            columns.fill(unknown, self._access.store.get_many(columns.heads(unknown)))
        return rows

    def _places(self, keys: pa.Array) -> Positions:
        ((identities, their_keys),) = self._access.keys.slices(keys, len(keys) or 1)
        columns = self._columns
        rows = columns.find(identities)
        missing = int(np.count_nonzero(rows < 0))
        if missing:
            self._access.make_room(missing)
            # That may have emptied the columns.
            rows = columns.find(identities)
            new = {identities[at]: their_keys[at] for at in np.flatnonzero(rows < 0).tolist()}
            columns.add(new, self._heads(new))
            rows = columns.find(identities)
        return rows
