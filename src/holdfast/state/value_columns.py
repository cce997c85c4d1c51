"""The values of one state as columns, a row for each key, for whoever reads and writes many keys at once.

For numbers, and for tuples and rows of numbers. Between two epochs nothing of a key is a Python object but the bytes of
its stored key: what an epoch pays for each of its keys is the step from a column to stored bytes, and back where the
store has to be asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.state.serializers import Serializer
from holdfast.types.typeinfo import INTEGERS, BasicType, BasicTypeInfo, FieldsTypeInfo, TypeInformation

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_NUMBERS = (*INTEGERS, BasicType.FLOAT, BasicType.DOUBLE, BasicType.BOOLEAN)
_KEYS = (*INTEGERS, BasicType.STRING, BasicType.BYTES)
#: In front of the number of elements, in four bytes: an array of msgpack.
_ARRAY = b"\xdd"

_encode = msgspec.msgpack.Encoder().encode


def fits_columns(key_type: TypeInformation, value_type: TypeInformation) -> bool:
    """Whether equal keys are equal to Arrow, and values are numbers, or fields that are."""
    fields = value_type.field_types if isinstance(value_type, FieldsTypeInfo) else [value_type]
    return _is_one_of(key_type, _KEYS) and len(fields) > 0 and all(_is_one_of(field, _NUMBERS) for field in fields)


def _is_one_of(type_info: TypeInformation, basics: Sequence[BasicType]) -> bool:
    return isinstance(type_info, BasicTypeInfo) and type_info.basic in basics


class _Field:
    """One column: numbers, and where there are any."""

    def __init__(self, arrow_type: pa.DataType) -> None:
        self._type = arrow_type
        self._values: npt.NDArray[Any] = np.empty(0, arrow_type.to_pandas_dtype())
        self._valid: Mask = np.empty(0, np.bool_)

    def reorder(self, order: Positions, rows: int) -> None:
        """With so many new rows, in another order."""
        self._values = np.concatenate([self._values, np.zeros(rows, self._values.dtype)])[order]
        self._valid = np.concatenate([self._valid, np.zeros(rows, np.bool_)])[order]

    def take(self, rows: Positions) -> pa.Array:
        valid = self._valid[rows]
        return pa.array(self._values[rows], self._type, mask=None if valid.all() else ~valid)

    def set(self, rows: Positions, column: pa.Array) -> None:
        if column.null_count:
            self._valid[rows] = column.is_valid().to_numpy(zero_copy_only=False)
            column = column.fill_null(False if pa.types.is_boolean(self._type) else 0)
        else:
            self._valid[rows] = True
        self._values[rows] = column.to_numpy(zero_copy_only=False)


class ValueColumns:
    """Rows are in the order of their stored keys, in which stores write fastest. Their positions, which ``find`` gives,
    hold until rows are added or dropped.
    """

    def __init__(self, key_type: pa.DataType, serializer: Serializer) -> None:
        value_type = serializer.type_info.arrow_type()
        self._is_struct = pa.types.is_struct(value_type)
        self._type: pa.DataType = value_type
        self._parts = list(value_type) if self._is_struct else [pa.field("value", value_type)]
        self._decode = msgspec.msgpack.Decoder(list.__class_getitem__(serializer.form.stored_type)).decode
        self._key_type = key_type
        #: The keys that were looked for last, and where they are: who reads values mostly writes them next.
        self._asked: pa.Array | None = None
        self._found: Positions = np.empty(0, np.int64)
        self.clear()

    def clear(self) -> None:
        self._keys: pa.Array = pa.array([], self._key_type)
        self._heads: npt.NDArray[np.object_] = np.empty(0, object)
        self._fields = [_Field(part.type) for part in self._parts]
        self._set_flags(np.empty((3, 0), np.bool_))

    def __len__(self) -> int:
        return len(self._heads)

    def find(self, keys: pa.Array) -> Positions:
        """The row of each key; -1 where there is none."""
        if keys is not self._asked:
            found = pc.index_in(keys, value_set=self._keys).fill_null(-1)
            self._asked, self._found = keys, found.to_numpy(zero_copy_only=False).astype(np.int64)
        return self._found

    def add(self, keys: pa.Array, heads: Sequence[bytes]) -> None:
        """Rows of keys that have none, with their stored keys."""
        all_heads = [*self._heads, *heads]
        order = np.array(sorted(range(len(all_heads)), key=all_heads.__getitem__), np.int64)
        self._keys = pa.concat_arrays([self._keys, keys]).take(pa.array(order))
        self._heads = _objects(all_heads)[order]
        for field in self._fields:
            field.reorder(order, len(heads))
        self._set_flags(np.concatenate([self._flags, np.zeros((3, len(heads)), np.bool_)], axis=1)[:, order])

    def unknown(self, rows: Positions) -> Positions:
        """Those of some rows, each once, of which the store has to be asked."""
        return np.unique(rows[~self._known[rows]])

    def heads(self, rows: Positions) -> list[bytes]:
        found: list[bytes] = self._heads[rows].tolist()
        return found

    def fill(self, rows: Positions, stored: Sequence[bytes | None]) -> None:
        """What the store has of some rows."""
        self._known[rows] = True
        self._present[rows] = there = np.array([data is not None for data in stored], np.bool_)
        values = [data for data in stored if data is not None]
        if values:
            for field, column in zip(self._fields, self._decoded(values), strict=True):
                field.set(rows[there], column)

    def take(self, rows: Positions) -> pa.Array:
        """The values of rows that are known."""
        present = self._present[rows]
        columns = [field.take(rows) for field in self._fields]
        absent = None if present.all() else pa.array(~present)
        if self._is_struct:
            return pa.StructArray.from_arrays(columns, fields=self._parts, mask=absent)
        return columns[0] if absent is None else pc.if_else(absent, pa.scalar(None, self._type), columns[0])

    def put(self, rows: Positions, values: pa.Array) -> None:
        """Give rows other values; null is none. Of a row that is there twice, the last one counts."""
        for field, column in zip(self._fields, values.flatten() if self._is_struct else [values], strict=True):
            field.set(rows, column)
        self._present[rows] = values.is_valid().to_numpy(zero_copy_only=False) if values.null_count else True
        self._known[rows] = self._changed[rows] = True

    def take_changes(self) -> list[tuple[bytes, bytes | None]]:
        """Stored keys, in order, and values of the rows that were changed since the last call; None is no value."""
        rows = np.flatnonzero(self._changed)
        self._changed[rows] = False
        present = self._present[rows]
        encoded: Iterable[bytes | None] = map(_encode, self._plain(rows))
        if not present.all():
            encoded = [data if there else None for data, there in zip(encoded, present.tolist(), strict=True)]
        return list(zip(self.heads(rows), encoded, strict=True))

    def forget_values(self) -> None:
        """The store has others by now."""
        self._known[:] = self._changed[:] = False

    def drop_first(self, rows: int) -> None:
        """Forget some rows, which must be written."""
        self._keys, self._heads = self._keys.slice(rows), self._heads[rows:]
        for field in self._fields:
            field.reorder(np.arange(rows, self._flags.shape[1]), 0)
        self._set_flags(self._flags[:, rows:])

    def _set_flags(self, flags: Mask) -> None:
        self._flags = flags
        #: Whether a key has a value, whether that is known, and whether it is to be written.
        self._present, self._known, self._changed = flags
        self._asked = None

    def _plain(self, rows: Positions) -> Iterator[Any]:
        """The values of rows as they are stored."""
        columns = [field.take(rows).to_pylist() for field in self._fields]
        return zip(*columns, strict=True) if self._is_struct else iter(columns[0])

    def _decoded(self, stored: Sequence[bytes]) -> list[pa.Array]:
        """Stored values as columns, decoded together."""
        values = self._decode(b"".join((_ARRAY, len(stored).to_bytes(4, "big"), *stored)))
        columns = zip(*values, strict=True) if self._is_struct else [values]
        return [pa.array(column, part.type) for column, part in zip(columns, self._parts, strict=True)]


def _objects(values: Sequence[Any]) -> npt.NDArray[np.object_]:
    found = np.empty(len(values), object)
    found[:] = values
    return found
