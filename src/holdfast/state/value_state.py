"""Value state, key by key and for many keys at once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from itertools import islice
from types import NoneType
from typing import Any

import numpy as np
import pyarrow as pa

from holdfast.errors import StateTypeError
from holdfast.state.cells import Encoded
from holdfast.state.columnar_values import Positions, ValueColumns, fits_columns
from holdfast.state.keyed_state import Pending
from holdfast.state.single_value import AT_ONCE, CachedValue, SingleValue
from holdfast.state.states import ValueState
from holdfast.types.columns import Column


class KeyedValueState(SingleValue, ValueState[Any]):
    """Value state of keys; see ValueState. Bulk access works on columns where the types allow it and no key is used by
    itself, otherwise on the objects that all other access works on. One of both is empty at any time.
    """

    _columns: ValueColumns | None = None
    #: The keys that were looked for in them last, and where they are.
    _asked: tuple[pa.Array, Positions] | None = None

    # The two methods below are called per row: they repeat _get, _put and _mark to save a call.

    def value(self) -> Any:
        try:
            cell = self._live[self._context.identity].cell
        except KeyError:
            cell = self._load().cell
        return cell if cell.__class__ is not Encoded else self._open(cell)

    def update(self, value: Any) -> None:
        if value.__class__ is not self._plain and value is not None:
            try:
                value = self._cells.admit(value)
            except StateTypeError as error:
                raise error.at(state=self.label) from error.__cause__
        try:
            cached = self._live[self._context.identity]
        except KeyError:
            cached = self._admit_key()
        cached.cell = value
        if cached.changed_in != self._flush:
            cached.changed_in = self._flush
            self._dirty.append(cached)

    def get_many(self, keys: pa.Array) -> pa.Array:
        columns = self._enter_columns()
        if columns is not None:
            pieces = self._access.keys.pieces(keys, AT_ONCE)
            found = [columns.take(self._rows(columns, piece, read=True)) for piece in pieces]
            return found[0] if len(found) == 1 else pa.concat_arrays(found)
        values: list[Any] = []
        for identities, their_keys in self._access.keys.slices(keys, AT_ONCE):
            found = self._cached_many(identities, their_keys, read=True)
            values += [self._cells.open(cached.cell) for cached in found]
        return self._column.write(values)

    def put_many(self, keys: pa.Array, values: pa.Array) -> None:
        if len(keys) != len(values):
            raise StateTypeError(
                f"put_many() of state '{self.name}' of operator '{self._access.operator_name}' was given {len(keys)} "
                f"keys and {len(values)} values; give one value for each key."
            )
        columns = self._enter_columns()
        if columns is not None:
            values, start = self._column.conform(values), 0
            for piece in self._access.keys.pieces(keys, AT_ONCE):
                columns.put(self._rows(columns, piece, read=False), values.slice(start, len(piece)))
                start += len(piece)
            return
        remaining = iter(self._column.read(values))
        for identities, their_keys in self._access.keys.slices(keys, AT_ONCE):
            cells = list(islice(remaining, len(identities)))
            if not set(map(type, cells)) <= {self._plain, NoneType}:
                cells = [None if value is None else self._cells.admit(value) for value in cells]
            self._write_many(self._cached_many(identities, their_keys, read=False), cells)

    def collect(self, pending: Pending) -> None:
        super().collect(pending)
        if self._columns is not None:
            pending.writes += self._columns.take_changes()

    def expect(self, identities: Sequence[Hashable], keys: Sequence[Any]) -> None:
        # What the columns have changed is not in the store yet.
        if self._columns is None:
            super().expect(identities, keys)

    def adopt_keys(self, older: SingleValue) -> None:
        if self._columns is not None:
            return
        super().adopt_keys(older)
        if (
            isinstance(older, KeyedValueState)
            and older._columns is not None
            and self._id == older._id
            and not self._live
        ):
            self._columns = older._columns
            self._columns.forget_values()
            self._access.room -= len(self._columns)

    def drop_caches(self) -> None:
        super().drop_caches()
        if self._columns is not None:
            self._columns.clear()
            self._asked = None

    def cached_entries(self) -> int:
        return super().cached_entries() + (0 if self._columns is None else len(self._columns))

    def trim(self, entries: int) -> int:
        left = super().trim(entries)
        if left == 0 or self._columns is None:
            return left
        dropped = min(left, len(self._columns))
        self._columns.drop_first(dropped)
        self._asked = None
        return left - dropped

    def _load(self) -> CachedValue:
        self._leave_columns()
        return super()._load()

    def _admit_key(self) -> CachedValue:
        self._leave_columns()
        return super()._admit_key()

    def _enter_columns(self) -> ValueColumns | None:
        """What bulk access works on. None where that is the cache of objects: for types that are not for columns, and
        where the state is used key by key as well.
        """
        if self._columns is None and not self._live and self._namespaces is None and self._fits_columns:
            self._columns = ValueColumns(self._cells.serializer)
        return self._columns

    def _leave_columns(self) -> None:
        """A key is used by itself: go on with objects."""
        if self._columns is not None:
            self._access.empty_caches()
            self._columns = self._asked = None

    def _rows(self, columns: ValueColumns, keys: pa.Array, read: bool) -> Positions:
        """Where the columns have keys, having taken in those that they did not have; ``read``: and their values. Who
        reads keys mostly writes them next: they are looked for once then.
        """
        if self._asked is None or self._asked[0] is not keys:
            self._asked = keys, self._places(columns, keys)
        rows = self._asked[1]
        unknown = columns.unknown(rows) if read else rows[:0]
        if len(unknown):
            columns.fill(unknown, self._store.get_many(columns.heads(unknown)))
        return rows

    def _places(self, columns: ValueColumns, keys: pa.Array) -> Positions:
        ((identities, their_keys),) = self._access.keys.slices(keys, len(keys) or 1)
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

    @cached_property
    def _fits_columns(self) -> bool:
        return fits_columns(self._cells.serializer.type_info)

    @cached_property
    def _column(self) -> Column:
        return Column(self._cells.serializer.type_info, f"state '{self.name}'")
