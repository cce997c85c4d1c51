"""Keys of one scalar type each: cast to the type, hashed as Spark does, encoded so that equal keys are equal bytes.

The rules for a form: ``hash`` and ``encode`` take a key as a program gives it, equal keys have equal bytes and hashes,
and ``decode`` gives what ``normalise`` gives. Composites keep None to themselves: a form that sees it sees a null key.
"""

from __future__ import annotations

import reprlib
import struct
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from math import isnan
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.errors import NullKeyError, StateTypeError
from holdfast.types import xxhash64

_NAN = float("nan")
_INTEGERS = {"b": pa.int8(), "h": pa.int16(), "i": pa.int32(), "q": pa.int64()}
#: wide enough that no decimal of a key is rounded by the context
_EXACT = Context(prec=1000)


class KeyForm(ABC):
    """How keys of one type are cast, hashed, encoded and decoded."""

    #: True when a key as a program gives it can stand for itself in a dict.
    trivial_identity = False
    #: Classes of keys that are already what they are cast to.
    normal: frozenset[type] = frozenset()
    #: Classes of keys that are hashed together, as a column of a type.
    hashed_together: Mapping[type, pa.DataType] = {}
    #: The names of its fields, as which a composite key may come in several columns.
    names: tuple[str, ...] | None = None
    #: Whether a column of another type is cast to the declared one before it is hashed.
    casts_columns = True

    def __init__(self, declared: str) -> None:
        self.declared = declared

    @abstractmethod
    def normalise(self, key: Any) -> Any: ...

    @abstractmethod
    def hash(self, key: Any, seed: int = xxhash64.SEED) -> int: ...

    @abstractmethod
    def encode(self, key: Any) -> bytes: ...

    @abstractmethod
    def decode(self, data: bytes) -> Any: ...

    def identity(self, key: Any) -> Hashable:
        """Equal for the same stored key, and different for different ones."""
        identity: Hashable = self.normalise(key)
        return identity

    def hash_array(self, column: pa.Array) -> pa.Array:
        """The column whose Spark hash is that of these keys."""
        return column

    def same_column(self, column: pa.Array) -> pa.Array:
        """The keys of a column of the type as one in which equal keys are equal to Arrow too."""
        return column

    def reject(self, key: Any) -> NoReturn:
        if key is None:
            raise NullKeyError(
                "The key of a row is None. Filter such rows out before key_by, or give them a key of their own."
            )
        lone = isinstance(key, str) and any("\ud800" <= character <= "\udfff" for character in key)
        why = ": it has a lone surrogate, which UTF-8 cannot encode" if lone else ""
        raise StateTypeError(
            f"The key {reprlib.repr(key)} ({type(key).__name__}) cannot be cast to the declared key type "
            f"{self.declared}{why}. Return a key of that type, or declare the type of the keys that you return."
        )


class IntegerForm(KeyForm):
    """BYTE, SHORT, INT and LONG."""

    trivial_identity = True
    normal = frozenset([int])

    def __init__(self, declared: str, code: str) -> None:
        super().__init__(declared)
        packer = struct.Struct(">" + code)
        self._pack, self._unpack = packer.pack, packer.unpack
        self._limit = 1 << (8 * packer.size - 1)
        self._hash = xxhash64.hash_long if code == "q" else xxhash64.hash_int
        self.hashed_together = {int: _INTEGERS[code]}

    def normalise(self, key: Any) -> int:
        if type(key) is not int:
            key = self._cast(key)
        if not -self._limit <= key < self._limit:
            self.reject(key)
        return int(key)

    def _cast(self, key: Any) -> int:
        """Numbers that are equal to an int are that int, as they are in a dict."""
        if isinstance(key, (int, float, Decimal, np.number, np.bool_)):
            try:
                number = int(key)
            except (ValueError, OverflowError):
                self.reject(key)
            if number == key:
                return number
        self.reject(key)

    def hash(self, key: Any, seed: int = xxhash64.SEED) -> int:
        if type(key) is int and -self._limit <= key < self._limit:
            return self._hash(key, seed)
        return self._hash(self.normalise(key), seed)

    def encode(self, key: Any) -> bytes:
        if type(key) is int:
            try:
                return self._pack(key)
            except struct.error:
                self.reject(key)
        return self._pack(self.normalise(key))

    def decode(self, data: bytes) -> int:
        value: int = self._unpack(data)[0]
        return value


class BooleanForm(KeyForm):
    trivial_identity = True

    def normalise(self, key: Any) -> bool:
        if isinstance(key, (bool, int, np.bool_)) and key in (0, 1):
            return bool(key)
        self.reject(key)

    def hash(self, key: Any, seed: int = xxhash64.SEED) -> int:
        return xxhash64.hash_int(self.normalise(key), seed)

    def encode(self, key: Any) -> bytes:
        return b"\x01" if self.normalise(key) else b"\x00"

    def decode(self, data: bytes) -> bool:
        return data == b"\x01"


class FloatForm(KeyForm):
    """FLOAT and DOUBLE: both zeros are one key, and so are all NaNs: one object, which a dict finds."""

    def __init__(self, declared: str, code: str) -> None:
        super().__init__(declared)
        packer = struct.Struct(">" + code)
        self._pack, self._unpack = packer.pack, packer.unpack
        self._hash = xxhash64.hash_double if code == "d" else xxhash64.hash_float
        self._double = code == "d"

    def normalise(self, key: Any) -> float:
        if type(key) is not float:
            if not isinstance(key, (int, float, Decimal, np.number, np.bool_)):
                self.reject(key)
            try:
                key = float(key)
            except (OverflowError, ValueError):
                self.reject(key)
        if isnan(key):
            return _NAN
        try:
            return (key if self._double else self._unpack(self._pack(key))[0]) or 0.0
        except OverflowError:
            self.reject(key)

    def hash(self, key: Any, seed: int = xxhash64.SEED) -> int:
        return self._hash(self.normalise(key), seed)

    def encode(self, key: Any) -> bytes:
        return self._pack(self.normalise(key))

    def decode(self, data: bytes) -> float:
        value: float = self._unpack(data)[0]
        return _NAN if isnan(value) else value

    def same_column(self, column: pa.Array) -> pa.Array:
        zero, nan = pa.scalar(0.0, column.type), pa.scalar(_NAN, column.type)
        # A null is neither.
        positive = pc.if_else(pc.fill_null(pc.equal(column, zero), False), zero, column)
        return pc.if_else(pc.fill_null(pc.is_nan(positive), False), nan, positive)


class StringForm(KeyForm):
    """STRING, and CHAR, whose keys are one character long."""

    trivial_identity = True
    hashed_together: Mapping[type, pa.DataType] = {str: pa.string()}

    def __init__(self, declared: str, length: int | None = None) -> None:
        super().__init__(declared)
        self._length = length
        self.normal = frozenset([str]) if length is None else frozenset()

    def normalise(self, key: Any) -> str:
        if not isinstance(key, str) or (self._length is not None and len(key) != self._length):
            self.reject(key)
        return key if type(key) is str else str.__str__(key)

    def hash(self, key: Any, seed: int = xxhash64.SEED) -> int:
        return xxhash64.hash_bytes(self.encode(key), seed)

    def encode(self, key: Any) -> bytes:
        try:
            return self.normalise(key).encode()
        except UnicodeEncodeError:
            self.reject(key)

    def decode(self, data: bytes) -> str:
        return data.decode()


class BytesForm(KeyForm):
    trivial_identity = True

    def normalise(self, key: Any) -> bytes:
        if type(key) is bytes:
            return key
        if isinstance(key, (bytes, bytearray, memoryview)):
            return bytes(key)
        self.reject(key)

    def hash(self, key: Any, seed: int = xxhash64.SEED) -> int:
        return xxhash64.hash_bytes(self.normalise(key), seed)

    def encode(self, key: Any) -> bytes:
        return self.normalise(key)

    def decode(self, data: bytes) -> bytes:
        return bytes(data)


class DecimalForm(KeyForm):
    """DECIMAL(precision, scale): rounded to the scale as Spark's cast does; too many digits are an error."""

    def __init__(self, declared: str, precision: int, scale: int) -> None:
        super().__init__(declared)
        self._precision, self._scale = precision, scale
        self._unit = Decimal(1).scaleb(-scale)
        self._hash = xxhash64.hash_long if precision <= xxhash64.MAX_LONG_DIGITS else xxhash64.hash_big_integer

    def normalise(self, key: Any) -> Decimal:
        return self._from_unscaled(self._unscaled(key))

    def _unscaled(self, key: Any) -> int:
        if isinstance(key, (int, np.integer)):
            key = Decimal(int(key))
        if not isinstance(key, Decimal) or not key.is_finite():
            self.reject(key)
        try:
            unscaled = int(key.quantize(self._unit, ROUND_HALF_UP, _EXACT).scaleb(self._scale, _EXACT))
        except InvalidOperation:
            self.reject(key)
        if abs(unscaled) >= 10**self._precision:
            self.reject(key)
        return unscaled

    def _from_unscaled(self, unscaled: int) -> Decimal:
        return Decimal(unscaled).scaleb(-self._scale, _EXACT)

    def hash(self, key: Any, seed: int = xxhash64.SEED) -> int:
        return self._hash(self._unscaled(key), seed)

    def encode(self, key: Any) -> bytes:
        return xxhash64.big_integer_bytes(self._unscaled(key))

    def decode(self, data: bytes) -> Decimal:
        return self._from_unscaled(int.from_bytes(data, "big", signed=True))


class BigIntegerForm(KeyForm):
    """BIG_INT, whose column is its decimal text."""

    trivial_identity = True

    def normalise(self, key: Any) -> int:
        if isinstance(key, (int, np.integer)):
            return int(key)
        self.reject(key)

    def hash(self, key: Any, seed: int = xxhash64.SEED) -> int:
        return xxhash64.hash_string(str(self.normalise(key)), seed)

    def encode(self, key: Any) -> bytes:
        return xxhash64.big_integer_bytes(self.normalise(key))

    def decode(self, data: bytes) -> int:
        return int.from_bytes(data, "big", signed=True)

    def hash_array(self, column: pa.Array) -> pa.Array:
        return pa.array([None if text is None else str(int(text)) for text in column.to_pylist()], pa.string())

    def same_column(self, column: pa.Array) -> pa.Array:
        return self.hash_array(column)


class BigDecimalForm(KeyForm):
    """BIG_DEC, whose column is its decimal text: 1.0 and 1.00 are one key."""

    trivial_identity = True

    def normalise(self, key: Any) -> Decimal:
        if isinstance(key, (int, np.integer)):
            key = Decimal(int(key))
        if not isinstance(key, Decimal) or not key.is_finite():
            self.reject(key)
        if not key:
            return Decimal(0)
        sign, digits, exponent = key.as_tuple()
        kept = len(digits)
        while digits[kept - 1] == 0:
            kept -= 1
        return Decimal((sign, digits[:kept], int(exponent) + len(digits) - kept))

    def hash(self, key: Any, seed: int = xxhash64.SEED) -> int:
        return xxhash64.hash_bytes(self.encode(key), seed)

    def encode(self, key: Any) -> bytes:
        return str(self.normalise(key)).encode()

    def decode(self, data: bytes) -> Decimal:
        return Decimal(data.decode())

    def hash_array(self, column: pa.Array) -> pa.Array:
        return pa.array(
            [None if text is None else str(self.normalise(Decimal(text))) for text in column.to_pylist()], pa.string()
        )

    def same_column(self, column: pa.Array) -> pa.Array:
        return self.hash_array(column)
