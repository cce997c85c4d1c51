"""The values of one state as columns, a row for each key, for whoever reads and writes many keys at once.

For numbers, and for tuples and rows of numbers. What an epoch pays for each of its keys is one look into a dict and the
step from a column to stored bytes, and back where the store has to be asked.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.state.serializers import Serializer
from holdfast.types.typeinfo import FieldsTypeInfo, TypeInformation

Positions = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

#: In front of the number of elements, in four bytes: an array of msgpack.
_ARRAY = b"\xdd"
#: Rows that there is room for at first.
_FIRST_ROOM = 64

_encode = msgspec.msgpack.Encoder().encode


def fits_columns(value_type: TypeInformation) -> bool:
    """Whether values are numbers, or have fields that are."""
    fields = value_type.field_types if isinstance(value_type, FieldsTypeInfo) else (value_type,)
    return all(field.in_numpy for field in fields)


class _Growing:
    """An array with room for more rows."""

    def __init__(self, dtype: Any) -> None:
        self.all: npt.NDArray[Any] = np.zeros(_FIRST_ROOM, dtype)

    def make_room(self, rows: int) -> None:
        if rows > len(self.all):
            larger = np.zeros(max(rows, 2 * len(self.all)), self.all.dtype)
            larger[: len(self.all)] = self.all
            self.all = larger

    def drop_first(self, rows: int) -> None:
        kept = np.zeros_like(self.all)
        kept[: len(self.all) - rows] = self.all[rows:]
        self.all = kept


class _Field:
    """One column: numbers, and where there are any."""

    def __init__(self, arrow_type: pa.DataType) -> None:
        self._type = arrow_type
        self.numbers = _Growing(arrow_type.to_pandas_dtype())
        self.there = _Growing(np.bool_)

    def take(self, rows: Positions) -> pa.Array:
        there = self.there.all[rows]
        return pa.array(self.numbers.all[rows], self._type, mask=None if there.all() else ~there)

    def put(self, rows: Positions, column: pa.Array) -> None:
        if column.null_count:
            self.there.all[rows] = column.is_valid().to_numpy(zero_copy_only=False)
            column = column.fill_null(False if pa.types.is_boolean(self._type) else 0)
        else:
            self.there.all[rows] = True
        self.numbers.all[rows] = column.to_numpy(zero_copy_only=False)


class ValueColumns:
    """Rows by the identities of their keys. Their positions hold until rows are dropped."""

    def __init__(self, serializer: Serializer) -> None:
        value_type = serializer.type_info.arrow_type()
        self._is_struct = pa.types.is_struct(value_type)
        self._type: pa.DataType = value_type
        self._parts = list(value_type) if self._is_struct else [pa.field("value", value_type)]
        self._decode = msgspec.msgpack.Decoder(list.__class_getitem__(serializer.form.stored_type)).decode
        self.clear()

    def clear(self) -> None:
        self._places: dict[Hashable, int] = {}
        self._fields = [_Field(part.type) for part in self._parts]
        self._heads = _Growing(object)
        #: Whether a key has a value, whether that is known, and whether it is to be written.
        self._present, self._known, self._changed = (_Growing(np.bool_) for _ in range(3))
        #: The places of rows in the order of their stored keys, in which stores write fastest; None: to be found out.
        self._ranks: Positions | None = None

    def __len__(self) -> int:
        return len(self._places)

    def find(self, identities: Sequence[Hashable]) -> Positions:
        """The row of each key; -1 where there is none."""
        return np.fromiter(map(self._places.get, identities, repeat(-1)), np.int64, len(identities))

    def add(self, identities: Iterable[Hashable], heads: Sequence[bytes]) -> None:
        """Rows of keys that have none, with their stored keys."""
        first, end = len(self), len(self) + len(heads)
        for one in self._arrays():
            one.make_room(end)
        self._heads.all[first:end] = _objects(heads)
        self._places.update(zip(identities, range(first, end), strict=True))
        self._ranks = None

    def unknown(self, rows: Positions) -> Positions:
        """Rows of which the store has to be asked, each once: in the order of their stored keys where it
        is at hand, in which stores read fastest.
        """
        asked = np.zeros(len(self), np.bool_)
        asked[rows] = True
        found = np.flatnonzero(asked & ~self._known.all[: len(self)])
        return found if self._ranks is None else found[np.argsort(self._ranks[found])]

    def heads(self, rows: Positions) -> list[bytes]:
        found: list[bytes] = self._heads.all[rows].tolist()
        return found

    def fill(self, rows: Positions, stored: Sequence[bytes | None]) -> None:
        """What the store has of some rows."""
        self._known.all[rows] = True
        self._present.all[rows] = there = np.array([data is not None for data in stored], np.bool_)
        for field in self._fields:
            field.there.all[rows] = False
        values = [data for data in stored if data is not None]
        if values:
            for field, column in zip(self._fields, self._decoded(values), strict=True):
                field.put(rows[there], column)

    def take(self, rows: Positions) -> pa.Array:
        """The values of rows that are known."""
        present = self._present.all[rows]
        columns = [field.take(rows) for field in self._fields]
        absent = None if present.all() else pa.array(~present)
        if self._is_struct:
            return pa.StructArray.from_arrays(columns, fields=self._parts, mask=absent)
        return columns[0] if absent is None else pc.if_else(absent, pa.scalar(None, self._type), columns[0])

    def put(self, rows: Positions, values: pa.Array) -> None:
        """Give rows other values; null is none. Of a row that is there twice, the last one counts."""
        for field, column in zip(self._fields, values.flatten() if self._is_struct else [values], strict=True):
            field.put(rows, column)
        self._present.all[rows] = values.is_valid().to_numpy(zero_copy_only=False) if values.null_count else True
        self._known.all[rows] = self._changed.all[rows] = True

    def take_changes(self) -> list[tuple[bytes, bytes | None]]:
        """Stored keys, in order, and values of the rows that were changed since the last call; None is no value."""
        rows = self._in_order(np.flatnonzero(self._changed.all))
        self._changed.all[rows] = False
        present = self._present.all[rows]
        encoded: Iterable[bytes | None] = map(_encode, self._plain(rows))
        if not present.all():
            encoded = [data if there else None for data, there in zip(encoded, present.tolist(), strict=True)]
        return list(zip(self.heads(rows), encoded, strict=True))

    def forget_values(self) -> None:
        """The store has others by now."""
        self._known.all[:] = self._changed.all[:] = False

    def drop_first(self, rows: int) -> None:
        """Forget the rows that were added first, which must be written."""
        kept = list(self._places)[rows:]
        self._places = dict(zip(kept, range(len(kept)), strict=True))
        for one in self._arrays():
            one.drop_first(rows)
        self._ranks = None

    def _arrays(self) -> Iterator[_Growing]:
        yield from (self._heads, self._present, self._known, self._changed)
        for field in self._fields:
            yield from (field.numbers, field.there)

    def _in_order(self, rows: Positions) -> Positions:
        """Rows in the order of their stored keys. That of all rows is kept where most of them are asked for."""
        if self._ranks is None and 2 * len(rows) >= len(self):
            self._ranks = np.empty(len(self), np.int64)
            self._ranks[_sorted_by(self._heads.all[: len(self)].tolist())] = np.arange(len(self))
        if self._ranks is not None:
            return rows[np.argsort(self._ranks[rows])]
        return rows[_sorted_by(self.heads(rows))]

    def _plain(self, rows: Positions) -> Iterator[Any]:
        """The values of rows as they are stored."""
        columns = [field.take(rows).to_pylist() for field in self._fields]
        return zip(*columns, strict=True) if self._is_struct else iter(columns[0])

    def _decoded(self, stored: Sequence[bytes]) -> list[pa.Array]:
        """Stored values as columns, decoded together."""
        values = self._decode(b"".join((_ARRAY, len(stored).to_bytes(4, "big"), *stored)))
        columns = zip(*values, strict=True) if self._is_struct else [values]
        return [pa.array(column, part.type) for column, part in zip(columns, self._parts, strict=True)]


def _sorted_by(heads: Sequence[bytes]) -> Positions:
    return np.array(sorted(range(len(heads)), key=heads.__getitem__), np.int64)


def _objects(values: Sequence[Any]) -> npt.NDArray[np.object_]:
    found = np.empty(len(values), object)
    found[:] = values
    return found
