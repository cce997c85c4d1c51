"""Value state, key by key and for many keys at once."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from holdfast.errors import StateTypeError
from holdfast.state.cells import Cells, Encoded
from holdfast.state.columnar_values import ValueColumns, fits_columns
from holdfast.state.handles import StateMeta
from holdfast.state.keyed_state import Pending, StateAccess
from holdfast.state.keys import KeyCodec
from holdfast.state.single_value import AT_ONCE, CachedValue, SingleValue
from holdfast.state.states import ValueState
from holdfast.state.value_caches import ColumnCache, ObjectCache, ValueCache
from holdfast.types.columns import Column


class KeyedValueState(SingleValue, ValueState[Any]):
    """Value state of keys; see ValueState. Bulk access goes to a cache strategy: columns where the types allow it and
    no key is used by itself, otherwise the objects that all other access works on.
    """

    def __init__(self, access: StateAccess, meta: StateMeta, namespaces: KeyCodec | None, cells: Cells) -> None:
        super().__init__(access, meta, namespaces, cells)
        self._objects = ObjectCache(self, cells)
        self._cache: ValueCache = self._objects

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

    # Many keys at once

    def get_many(self, keys: pa.Array) -> pa.Array:
        return self._cache_for_many().get_many(keys)

    def put_many(self, keys: pa.Array, values: pa.Array) -> None:
        if len(keys) != len(values):
            raise StateTypeError(
                f"put_many() of state '{self.name}' of operator '{self._access.operator_name}' was given {len(keys)} "
                f"keys and {len(values)} values; give one value for each key."
            )
        self._cache_for_many().put_many(keys, values)

    def slices(self, keys: pa.Array) -> Iterator[tuple[Sequence[Hashable], list[Any]]]:
        """The identities and the keys of a column, as many at a time as the cache can take in."""
        return self._access.keys.slices(keys, AT_ONCE)

    @cached_property
    def column(self) -> Column:
        """Reads and writes columns of values."""
        return Column(self._cells.serializer.type_info, f"state '{self.name}'")

    # The choice

    def _cache_for_many(self) -> ValueCache:
        """The objects for types that are not for columns, and where the state is used key by key as well."""
        if self._cache is self._objects and not self._live and self._namespaces is None and self._fits_columns:
            self._cache = self._column_cache(ValueColumns(self._cells.serializer))
        return self._cache

    def _column_cache(self, columns: ValueColumns) -> ColumnCache:
        return ColumnCache(columns, self.column, self._access, self._heads)

    def _use_objects(self) -> None:
        """A key is used by itself: go on with objects."""
        if self._cache is not self._objects:
            self._access.empty_caches()
            self._cache = self._objects

    @cached_property
    def _fits_columns(self) -> bool:
        return fits_columns(self._cells.serializer.type_info)

    # What a cache has beside the objects

    def collect(self, pending: Pending) -> None:
        super().collect(pending)
        self._cache.collect(pending)

    def expect(self, identities: Sequence[Hashable], keys: Sequence[Any]) -> None:
        if self._cache.reads_ahead:
            super().expect(identities, keys)

    def adopt_keys(self, older: SingleValue) -> None:
        if self._cache is not self._objects:
            return
        super().adopt_keys(older)
        if not isinstance(older, KeyedValueState) or self._id != older._id or self._live:
            return
        if isinstance(older._cache, ColumnCache):
            self._cache = self._column_cache(older._cache.take_columns())
            self._access.room -= self._cache.entries()

    def drop_caches(self) -> None:
        super().drop_caches()
        self._cache.drop()

    def cached_entries(self) -> int:
        return super().cached_entries() + self._cache.entries()

    def trim(self, entries: int) -> int:
        return self._cache.trim(super().trim(entries))

    def _load(self) -> CachedValue:
        self._use_objects()
        return super()._load()

    def _admit_key(self) -> CachedValue:
        self._use_objects()
        return super()._admit_key()
