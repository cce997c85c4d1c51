"""Keys whose type nobody declared: what Python says they are."""

from __future__ import annotations

import datetime as dt
import reprlib
from collections.abc import Hashable, Mapping
from decimal import Decimal
from enum import Enum
from typing import Any, NoReturn

import msgspec
import numpy as np
import pyarrow as pa

from holdfast.errors import StateTypeError
from holdfast.types import xxhash64
from holdfast.types.date_times import timestamp_of, utc_timestamp_of
from holdfast.types.instant import Instant
from holdfast.types.key_composites import ElementsForm
from holdfast.types.key_forms import (
    BigDecimalForm,
    BigIntegerForm,
    BooleanForm,
    BytesForm,
    FloatForm,
    IntegerForm,
    KeyForm,
    StringForm,
)
from holdfast.types.key_times import DateForm, InstantForm, TimeForm, TimestampForm
from holdfast.types.row import Row, key_parts

_encode_row = msgspec.msgpack.Encoder().encode
_decode_row = msgspec.msgpack.Decoder(tuple[list[str] | None, bytes]).decode

#: Keys of these classes are equal only to keys of their own class.
_PLAIN = frozenset((int, str, bytes))


class UndeclaredRowForm(KeyForm):
    """Rows: their names belong to the key, their row kind does not."""

    def __init__(self, values: KeyForm) -> None:
        super().__init__("")
        self._values = values

    def normalise(self, key: Row) -> Row:
        names, values = key_parts(key)
        return Row.factory(names)(self._values.normalise(values))

    def hash(self, key: Row, seed: int = xxhash64.SEED) -> int:
        return self._values.hash(key_parts(key)[1], seed)

    def encode(self, key: Row) -> bytes:
        names, values = key_parts(key)
        return _encode_row((names, self._values.encode(values)))

    def decode(self, data: bytes) -> Row:
        names, values = _decode_row(data)
        return Row.factory(names)(self._values.decode(values))


class UndeclaredForm(KeyForm):
    """Keys without a declared type: a tag byte tells 1, 1.0, True, "1" and b"1" apart. Ints are long, floats double."""

    normal = frozenset([int, str])
    hashed_together: Mapping[type, pa.DataType] = {int: pa.int64(), str: pa.string()}
    casts_columns = False

    def __init__(self) -> None:
        super().__init__("")
        self._elements = ElementsForm("", self)
        self._forms: dict[type, tuple[bytes, KeyForm]] = {
            int: (b"i", IntegerForm("LONG", "q")),
            bool: (b"b", BooleanForm("BOOLEAN")),
            float: (b"d", FloatForm("DOUBLE", "d")),
            str: (b"s", StringForm("STRING")),
            bytes: (b"y", BytesForm("BYTES")),
            Decimal: (b"n", BigDecimalForm("BIG_DEC")),
            dt.date: (b"D", DateForm("SQL_DATE")),
            dt.time: (b"t", TimeForm("SQL_TIME")),
            Instant: (b"N", InstantForm("INSTANT")),
            tuple: (b"(", self._elements),
            list: (b"(", self._elements),
        }
        self._big = (b"I", BigIntegerForm("BIG_INT"))
        self._naive = (b"T", TimestampForm("SQL_TIMESTAMP", timestamp_of))
        self._aware = (b"Z", TimestampForm("TIMESTAMP_LTZ", utc_timestamp_of))
        self._row = (b"R", UndeclaredRowForm(self._elements))
        tagged = [*self._forms.values(), self._big, self._naive, self._aware, self._row]
        self._by_tag = {tag[0]: form for tag, form in tagged}

    def _form(self, key: Any) -> tuple[bytes, KeyForm]:
        found = self._forms.get(type(key))
        if found is None:
            return self._other(key)
        if type(key) is int and not -(2**63) <= key < 2**63:
            return self._big
        return found

    def _other(self, key: Any) -> tuple[bytes, KeyForm]:
        if isinstance(key, dt.datetime):
            return self._naive if key.tzinfo is None else self._aware
        if isinstance(key, Row):
            return self._row
        if isinstance(key, np.generic):
            return self._form(key.item())
        if isinstance(key, (bytearray, memoryview)):
            return self._forms[bytes]
        for base in (int, float, str, bytes, Decimal, tuple):
            if isinstance(key, base) and not isinstance(key, Enum):
                return self._forms[base]
        self.reject(key)

    def reject(self, key: Any) -> NoReturn:
        if key is None:
            super().reject(key)
        raise StateTypeError(
            f"The key {reprlib.repr(key)} is a {type(key).__name__}, which cannot be a key without a declared type. "
            f"Return a number, text, bytes, a date or time, or a tuple of these, or declare the key's type "
            f"(key_type=...), which may be a dataclass."
        )

    def normalise(self, key: Any) -> Any:
        return self._form(key)[1].normalise(key)

    def hash(self, key: Any, seed: int = xxhash64.SEED) -> int:
        return self._form(key)[1].hash(key, seed)

    def encode(self, key: Any) -> bytes:
        tag, form = self._form(key)
        return tag + form.encode(key)

    def decode(self, data: bytes) -> Any:
        return self._by_tag[data[0]].decode(data[1:])

    def identity(self, key: Any) -> Hashable:
        if type(key) in _PLAIN:
            plain: Hashable = key
            return plain
        normal = self.normalise(key)
        # No key holds a type, so the pair is never equal to a key.
        return normal if type(normal) in _PLAIN else (type(None), self.encode(normal))

    def hash_array(self, column: pa.Array) -> pa.Array:
        """A column's values as the Python keys that they are: ints are long, floats double."""
        if pa.types.is_integer(column.type):
            return column.cast(pa.int64())
        return column.cast(pa.float64()) if pa.types.is_floating(column.type) else column
