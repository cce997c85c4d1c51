"""Keys and namespaces as columns: from the bytes that stand in stored keys to a typed column, and back."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from holdfast.state.canonical.stored_columns import big_integers
from holdfast.state.keys import KeyCodec
from holdfast.types.table_columns import Column, elements, fixed_width, packed, plain, struct, text
from holdfast.types.typeinfo import (
    BasicType,
    BasicTypeInfo,
    DecimalTypeInfo,
    ElementsTypeInfo,
    FieldsTypeInfo,
    PickledBytesTypeInfo,
    TypeInformation,
)
from holdfast.types.xxhash64 import big_integer_bytes

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[bytes | None]).decode
_INSTANT = np.dtype([("seconds", ">i8"), ("nanos", ">i4")])
_DECIMAL_BYTES = 16
#: Wide enough that no decimal is rounded.
_EXACT = Context(prec=100)


def key_column(type_info: TypeInformation) -> Column:
    """The column of keys as a KeyCodec of this type encodes them."""
    if isinstance(type_info, BasicTypeInfo):
        return _BASIC[type_info.basic]
    if isinstance(type_info, DecimalTypeInfo):
        return _decimals(type_info)
    if isinstance(type_info, PickledBytesTypeInfo):
        return plain(pa.binary())
    if isinstance(type_info, ElementsTypeInfo):
        return _composite(elements(key_column(type_info.element_type)))
    if isinstance(type_info, FieldsTypeInfo):
        return _composite(struct(type_info.field_names, [key_column(field) for field in type_info.field_types]))
    raise TypeError(f"{type_info!r} is no type of keys")


def readable(codec: KeyCodec, keys: Sequence[bytes | None]) -> pa.Array:
    """Keys of no declared type as text, for people."""

    def text_of(key: Any) -> str:
        return key if isinstance(key, str) else reprlib.repr(key) if isinstance(key, bytes) else str(key)

    return pa.array([None if key is None else text_of(codec.decode(key)) for key in keys], pa.string())


def _composite(column: Column) -> Column:
    return column.mapped(lambda keys: list(map(_decode, keys)), lambda parts: list(map(_encode, parts)))


def _instants() -> Column:
    arrow_type = pa.struct([("seconds", pa.int64()), ("nanos", pa.int32())])

    def write(values: Sequence[bytes]) -> pa.Array:
        parts = np.frombuffer(b"".join(values), _INSTANT)
        arrays = [pa.array(parts["seconds"].astype("i8")), pa.array(parts["nanos"].astype("i4"))]
        return pa.StructArray.from_arrays(arrays, fields=list(arrow_type))

    def read(array: pa.Array) -> list[Any]:
        parts = np.empty(len(array), _INSTANT)
        for name, child in zip(_INSTANT.names or (), array.flatten(), strict=True):
            parts[name] = child.to_numpy()
        return fixed_width(parts.tobytes(), _INSTANT.itemsize)

    return Column(arrow_type, write, read)


def _decimals(type_info: DecimalTypeInfo) -> Column:
    """Keys are cast to the scale of their type: what is stored is how many units of it."""
    arrow_type, scale = type_info.arrow_type(), type_info.scale

    def write(values: Sequence[bytes]) -> pa.Array:
        wide = [
            int.from_bytes(one, "big", signed=True).to_bytes(_DECIMAL_BYTES, "little", signed=True) for one in values
        ]
        return pa.Array.from_buffers(arrow_type, len(values), [None, pa.py_buffer(b"".join(wide))])

    def read(array: pa.Array) -> list[Any]:
        return [big_integer_bytes(_unscaled(number, scale)) for number in array.to_pylist()]

    return Column(arrow_type, write, read)


def _unscaled(number: Decimal, scale: int) -> int:
    return int(number.scaleb(scale, _EXACT))


_BASIC: dict[BasicType, Column] = {
    BasicType.STRING: text(),
    BasicType.BYTES: plain(pa.binary()),
    BasicType.BOOLEAN: plain(pa.bool_()).mapped(
        lambda keys: [key == b"\x01" for key in keys], lambda found: [b"\x01" if one else b"\x00" for one in found]
    ),
    BasicType.BYTE: packed(pa.int8(), ">i1", "i1"),
    BasicType.SHORT: packed(pa.int16(), ">i2", "i2"),
    BasicType.INT: packed(pa.int32(), ">i4", "i4"),
    BasicType.LONG: packed(pa.int64(), ">i8", "i8"),
    BasicType.FLOAT: packed(pa.float32(), ">f4", "f4"),
    BasicType.DOUBLE: packed(pa.float64(), ">f8", "f8"),
    BasicType.CHAR: text(),
    BasicType.BIG_INT: big_integers(),
    BasicType.BIG_DEC: text(),
    BasicType.INSTANT: _instants(),
    BasicType.SQL_DATE: packed(pa.date32(), ">i4", "i4", pa.int32()),
    BasicType.SQL_TIME: packed(pa.time64("us"), ">i8", "i8", pa.int64()),
    BasicType.SQL_TIMESTAMP: packed(pa.timestamp("us"), ">i8", "i8", pa.int64()),
    BasicType.TIMESTAMP_LTZ: packed(pa.timestamp("us", "UTC"), ">i8", "i8", pa.int64()),
}
