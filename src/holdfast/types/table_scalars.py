"""Columns of single values in the tables of savepoints: of stored values, and of encoded keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Context, Decimal
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from holdfast.types.table_columns import Column, fixed_width, plain, struct
from holdfast.types.xxhash64 import big_integer_bytes

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[bytes | None]).decode
_INSTANT = np.dtype([("seconds", ">i8"), ("nanos", ">i4")])
_DECIMAL_BYTES = 16
#: Wide enough that no decimal is rounded.
_EXACT = Context(prec=100)


def big_integers() -> Column:
    """Integers of any size as two's complement bytes; their column is decimal text."""

    # Through Decimal, because Python converts no more than some thousand digits between int and str.
    def to_text(values: Sequence[bytes]) -> list[str]:
        return [str(Decimal(int.from_bytes(one, "big", signed=True))) for one in values]

    return plain(pa.string()).mapped(to_text, lambda texts: [big_integer_bytes(int(Decimal(one))) for one in texts])


def instants() -> Column:
    """(seconds, nanoseconds). A timestamp of nanoseconds ends in the year 2262, which is too early."""
    return struct(["seconds", "nanos"], [plain(pa.int64()), plain(pa.int32())])


def decimals(arrow_type: pa.DataType) -> Column:
    """Not exact: 1.0 and 1.00 are different stored values, and the same one in a column of fixed scale."""
    column = plain(arrow_type)
    return replace(
        column.mapped(lambda texts: list(map(Decimal, texts)), lambda numbers: list(map(str, numbers))), exact=False
    )


def composite_key(column: Column) -> Column:
    """Keys of several parts."""
    return column.mapped(lambda keys: list(map(_decode, keys)), lambda parts: list(map(_encode, parts)))


def key_instants() -> Column:
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


def key_decimals(arrow_type: pa.DataType, scale: int) -> Column:
    """Keys are cast to the scale of their type: what is stored is how many units of it."""

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
