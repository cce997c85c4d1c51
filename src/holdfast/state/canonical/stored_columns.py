"""Values of states as columns: from stored bytes to a column of the declared type, and back to the same bytes.

Stored values are not made into the program's own objects on the way, so that a class which cannot be imported where the
savepoint is written, or no longer exists, is no obstacle.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa

from holdfast.types.storage_forms import form_of
from holdfast.types.table_columns import Column, counted, elements, mapping, plain
from holdfast.types.table_columns import struct as struct_column
from holdfast.types.typeinfo import (
    BasicType,
    BasicTypeInfo,
    DecimalTypeInfo,
    ElementsTypeInfo,
    FieldsTypeInfo,
    MapTypeInfo,
    PickledBytesTypeInfo,
    TypeInformation,
)
from holdfast.types.xxhash64 import big_integer_bytes

_encode = msgspec.msgpack.Encoder().encode
_ARRAY = struct.Struct(">BI")
_ARRAY_32 = 0xDD


def value_column(type_info: TypeInformation) -> Column:
    """The column of values as a serializer of this type stores them."""
    if isinstance(type_info, PickledBytesTypeInfo):
        return plain(pa.binary())
    read = msgspec.msgpack.Decoder(list.__class_getitem__(form_of(type_info).stored_type)).decode

    def decoded(values: Sequence[bytes]) -> list[Any]:
        # All of them as one array: one call for a whole column.
        found: list[Any] = read(_ARRAY.pack(_ARRAY_32, len(values)) + b"".join(values))
        return found

    return _column(type_info).mapped(decoded, lambda values: list(map(_encode, values)))


def big_integers() -> Column:
    """Integers of any size as two's complement bytes; their column is decimal text."""

    # Through Decimal, because Python converts no more than some thousand digits between int and str.
    def to_text(values: Sequence[bytes]) -> list[str]:
        return [str(Decimal(int.from_bytes(one, "big", signed=True))) for one in values]

    return plain(pa.string()).mapped(to_text, lambda texts: [big_integer_bytes(int(Decimal(one))) for one in texts])


def instants() -> Column:
    """(seconds, nanoseconds). A timestamp of nanoseconds ends in the year 2262, which is too early."""
    return struct_column(["seconds", "nanos"], [plain(pa.int64()), plain(pa.int32())])


#: FLOAT is a double here: a state gives back what was put in, and so does its column.
_BASIC: dict[BasicType, Column] = {
    BasicType.STRING: plain(pa.string()),
    BasicType.BYTES: plain(pa.binary()),
    BasicType.BOOLEAN: plain(pa.bool_()),
    BasicType.BYTE: plain(pa.int8()),
    BasicType.SHORT: plain(pa.int16()),
    BasicType.INT: plain(pa.int32()),
    BasicType.LONG: plain(pa.int64()),
    BasicType.FLOAT: plain(pa.float64()),
    BasicType.DOUBLE: plain(pa.float64()),
    BasicType.CHAR: plain(pa.string()),
    BasicType.BIG_INT: big_integers(),
    BasicType.BIG_DEC: plain(pa.string()),
    BasicType.INSTANT: instants(),
    BasicType.SQL_DATE: counted(pa.date32(), pa.int32()),
    BasicType.SQL_TIME: counted(pa.time64("us"), pa.int64()),
    BasicType.SQL_TIMESTAMP: counted(pa.timestamp("us"), pa.int64()),
    BasicType.TIMESTAMP_LTZ: counted(pa.timestamp("us", "UTC"), pa.int64()),
}


def _column(type_info: TypeInformation) -> Column:
    """The column of stored values (see types/storage_forms.py)."""
    if isinstance(type_info, BasicTypeInfo):
        return _BASIC[type_info.basic]
    if isinstance(type_info, DecimalTypeInfo):
        return _decimals(type_info)
    if isinstance(type_info, PickledBytesTypeInfo):
        return plain(pa.binary())
    if isinstance(type_info, ElementsTypeInfo):
        return elements(_column(type_info.element_type))
    if isinstance(type_info, MapTypeInfo):
        return _map(type_info)
    if isinstance(type_info, FieldsTypeInfo):
        return _fields(type_info)
    raise TypeError(f"{type_info!r} has no column")


def _decimals(type_info: DecimalTypeInfo) -> Column:
    """Not exact: 1.0 and 1.00 are different stored values, and the same one in a column of fixed scale."""
    column = plain(type_info.arrow_type())
    return replace(
        column.mapped(lambda texts: list(map(Decimal, texts)), lambda numbers: list(map(str, numbers))), exact=False
    )


def _map(type_info: MapTypeInfo) -> Column:
    pairs = mapping(_column(type_info.key_type), _column(type_info.value_type))
    if form_of(type_info.key_type).plain is None:
        return pairs
    return pairs.mapped(lambda maps: [one.items() for one in maps], lambda found: list(map(dict, found)))


def _fields(type_info: FieldsTypeInfo) -> Column:
    return struct_column(type_info.field_names, [_column(field) for field in type_info.field_types])
