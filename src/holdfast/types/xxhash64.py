"""Spark's ``xxhash64`` expression in Python, for single values and for Arrow columns.

Every function takes the seed, so that a composite chains: the hash of one field is the seed of the next, and a null
leaves the seed as it is. Hashes are signed 64-bit integers, as in the JVM.
"""

from __future__ import annotations

import struct
from math import isnan
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from holdfast.errors import ProgramError

#: The name of the function in stored metadata: state written under another one sits in other key groups.
KEY_HASH = "spark-xxhash64-42"
SEED = 42

Int64Array = npt.NDArray[np.int64]
UInt64Array = npt.NDArray[np.uint64]

_digest = xxhash.xxh64_intdigest
_pack_int = struct.Struct("<i").pack
_pack_long = struct.Struct("<q").pack
_pack_float = struct.Struct("<f").pack
_pack_double = struct.Struct("<d").pack

_MASK = 0xFFFFFFFFFFFFFFFF
_SIGN = 1 << 63
_TWO_64 = 1 << 64

#: Java's canonical NaNs: all NaNs are one key.
_FLOAT_NAN = b"\x00\x00\xc0\x7f"
_DOUBLE_NAN = b"\x00\x00\x00\x00\x00\x00\xf8\x7f"

MAX_DECIMAL_DIGITS = 38
#: Decimals of more digits are hashed by their bytes, up to here by their unscaled long.
MAX_LONG_DIGITS = 18


def hash_int(value: int, seed: int = SEED) -> int:
    """Spark's hash of a byte, short, int, date (days) or boolean (1 or 0)."""
    digest = _digest(_pack_int(value), seed & _MASK)
    return digest - _TWO_64 if digest >= _SIGN else digest


def hash_long(value: int, seed: int = SEED) -> int:
    """Spark's hash of a long, a timestamp (microseconds) or the unscaled value of a decimal of at most 18 digits."""
    digest = _digest(_pack_long(value), seed & _MASK)
    return digest - _TWO_64 if digest >= _SIGN else digest


def hash_bytes(value: bytes, seed: int = SEED) -> int:
    digest = _digest(value, seed & _MASK)
    return digest - _TWO_64 if digest >= _SIGN else digest


def hash_string(value: str, seed: int = SEED) -> int:
    digest = _digest(value.encode(), seed & _MASK)
    return digest - _TWO_64 if digest >= _SIGN else digest


def hash_float(value: float, seed: int = SEED) -> int:
    return hash_bytes(_FLOAT_NAN if isnan(value) else _pack_float(value or 0.0), seed)


def hash_double(value: float, seed: int = SEED) -> int:
    return hash_bytes(_DOUBLE_NAN if isnan(value) else _pack_double(value or 0.0), seed)


def hash_big_integer(unscaled: int, seed: int = SEED) -> int:
    """Spark's hash of the unscaled value of a decimal of more than 18 digits: of Java's ``BigInteger.toByteArray``."""
    return hash_bytes(big_integer_bytes(unscaled), seed)


def big_integer_bytes(value: int) -> bytes:
    """The shortest two's complement, big endian, that has room for the sign."""
    bits = (value if value >= 0 else ~value).bit_length()
    return value.to_bytes(bits // 8 + 1, "big", signed=True)


def hash_columns(columns: list[pa.Array]) -> Int64Array:
    """The chained hash of each row over ``columns``, as ``xxhash64(column, ...)`` in Spark."""
    seeds: UInt64Array | np.uint64 = np.uint64(SEED)
    for column in columns:
        seeds = _hash_column(column, seeds)
    if isinstance(seeds, np.uint64):
        raise ProgramError("A key needs one column at least.")
    return seeds.view(np.int64)


def _hash_column(column: pa.Array, seeds: UInt64Array | np.uint64) -> UInt64Array:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_struct(kind):
        hashed = seeds
        for index in range(kind.num_fields):
            hashed = _hash_column(pc.struct_field(column, [index]), hashed)
        result = hashed if isinstance(hashed, np.ndarray) else np.full(len(column), hashed, np.uint64)
    elif pa.types.is_list(kind):
        result = _hash_lists(column, seeds)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        result = _hash_variable(column.cast(pa.large_binary()), seeds)
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        result = _hash_variable(column, seeds)
    elif pa.types.is_decimal(kind):
        result = _hash_decimals(column, seeds)
    else:
        result = _hash_fixed(column, seeds)
    if column.null_count:
        result = np.where(_nulls(column), seeds, result)
    return result


def _hash_lists(column: pa.Array, seeds: UInt64Array | np.uint64) -> UInt64Array:
    """Chained over the elements of each list: all first elements, then all second ones, and so on."""
    result = seeds.copy() if isinstance(seeds, np.ndarray) else np.full(len(column), seeds, np.uint64)
    offsets = column.offsets.to_numpy()
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    for position in range(int(lengths.max(initial=0))):
        rows = np.flatnonzero(lengths > position)
        elements = column.values.take(pa.array(offsets[rows] + position))
        result[rows] = _hash_column(elements, result[rows])
    return result


def _hash_fixed(column: pa.Array, seeds: UInt64Array | np.uint64) -> UInt64Array:
    kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_int8(kind) or pa.types.is_int16(kind):
        lanes = _values(column.cast(pa.int32()))
    elif pa.types.is_floating(kind):
        lanes = _float_bits(column)
    elif pa.types.is_int32(kind) or pa.types.is_date32(kind):
        lanes = _values(column.view(pa.int32()))
    elif pa.types.is_int64(kind) or (pa.types.is_timestamp(kind) and kind.unit == "us"):
        lanes = _values(column.view(pa.int64()))
    elif pa.types.is_timestamp(kind):
        lanes = _to_micros(_values(column.view(pa.int64())), kind.unit)
    elif pa.types.is_time(kind):
        lanes = _values(column.cast(pa.time64("ns")).view(pa.int64()))
    else:
        raise ProgramError(
            f"A column of type {kind} cannot be a key: expected an integer, float, boolean, string, binary, decimal, "
            f"date, time or timestamp column, or a struct or list of these. Key by a function that returns one of them."
        )
    return hash_ints(lanes, seeds) if lanes.itemsize == 4 else hash_longs(lanes, seeds)


def _to_micros(values: npt.NDArray[Any], unit: str) -> npt.NDArray[Any]:
    micros: npt.NDArray[Any] = values // 1000 if unit == "ns" else values * (1000 if unit == "ms" else 1_000_000)
    return micros


def _float_bits(column: pa.Array) -> npt.NDArray[Any]:
    double = pa.types.is_float64(column.type)
    values = _values(column if double else column.cast(pa.float32())) + 0.0  # -0.0 + 0.0 is 0.0
    lanes: npt.NDArray[Any] = values.view(np.int64 if double else np.int32)
    nans = np.isnan(values)
    if nans.any():
        lanes[nans] = int.from_bytes(_DOUBLE_NAN if double else _FLOAT_NAN, "little")
    return lanes


def _hash_decimals(column: pa.Array, seeds: UInt64Array | np.uint64) -> UInt64Array:
    precision = column.type.precision
    if precision > MAX_DECIMAL_DIGITS:
        raise ProgramError(
            f"A key of type {column.type} has too many digits: Spark's decimals have {MAX_DECIMAL_DIGITS}."
        )
    column = column.cast(pa.decimal128(precision, column.type.scale))
    halves = np.frombuffer(column.buffers()[1] or b"", np.int64)[2 * column.offset : 2 * (column.offset + len(column))]
    if precision <= MAX_LONG_DIGITS:
        return hash_longs(np.ascontiguousarray(halves[0::2]), seeds)
    low, high = halves[0::2].view(np.uint64).tolist(), halves[1::2].tolist()
    unscaled = [big_integer_bytes((upper << 64) | lower) for lower, upper in zip(low, high, strict=True)]
    return _hash_variable(pa.array(unscaled, pa.binary()), seeds)


def _hash_variable(column: pa.Array, seeds: UInt64Array | np.uint64) -> UInt64Array:
    """Through the C library: once per distinct value when all rows have one seed, otherwise once per row."""
    if isinstance(seeds, np.ndarray):
        rows = zip(column.to_pylist(), seeds.tolist(), strict=True)
        return np.array([seed if value is None else _digest(value, seed) for value, seed in rows], np.uint64)
    encoded = column.dictionary_encode()
    seed = int(seeds)
    digests = np.array([_digest(value, seed) for value in encoded.dictionary.to_pylist()], np.uint64)
    if not len(digests):
        return np.full(len(column), seeds, np.uint64)
    taken: UInt64Array = digests[encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)]
    return taken


def _values(column: pa.Array) -> npt.NDArray[Any]:
    """The values as numpy sees them; what stands at a null is arbitrary."""
    if column.null_count:
        column = column.fill_null(0)
    values: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values


def _nulls(column: pa.Array) -> npt.NDArray[np.bool_]:
    mask: npt.NDArray[np.bool_] = column.is_null().to_numpy(zero_copy_only=False)
    return mask


_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
#: Rows that are hashed at once: the working set stays in the processor's cache.
_CHUNK = 8192


def hash_longs(values: npt.NDArray[Any], seeds: UInt64Array | np.uint64) -> UInt64Array:
    """XXH64 of each 8-byte value, with one seed for all or one for each."""
    lanes = np.ascontiguousarray(values).view(np.uint64)
    result = np.empty(len(lanes), np.uint64)
    scratch = np.empty(min(_CHUNK, len(lanes)), np.uint64)
    base = seeds + (_P5 + np.uint64(8))
    for start in range(0, len(lanes), _CHUNK):
        out = result[start : start + _CHUNK]
        tmp = scratch[: len(out)]
        np.multiply(lanes[start : start + _CHUNK], _P2, out=out)
        _rotate_left(out, 31, tmp)
        out *= _P1
        out ^= base[start : start + _CHUNK] if isinstance(base, np.ndarray) else base
        _rotate_left(out, 27, tmp)
        out *= _P1
        out += _P4
        _avalanche(out, tmp)
    return result


def hash_ints(values: npt.NDArray[Any], seeds: UInt64Array | np.uint64) -> UInt64Array:
    """XXH64 of each 4-byte value, with one seed for all or one for each."""
    lanes = np.ascontiguousarray(values).view(np.uint32)
    result = np.empty(len(lanes), np.uint64)
    scratch = np.empty(min(_CHUNK, len(lanes)), np.uint64)
    base = seeds + (_P5 + np.uint64(4))
    for start in range(0, len(lanes), _CHUNK):
        out = result[start : start + _CHUNK]
        tmp = scratch[: len(out)]
        np.multiply(lanes[start : start + _CHUNK], _P1, out=out)
        out ^= base[start : start + _CHUNK] if isinstance(base, np.ndarray) else base
        _rotate_left(out, 23, tmp)
        out *= _P2
        out += _P3
        _avalanche(out, tmp)
    return result


def _rotate_left(values: UInt64Array, bits: int, scratch: UInt64Array) -> None:
    np.right_shift(values, np.uint64(64 - bits), out=scratch)
    np.left_shift(values, np.uint64(bits), out=values)
    values |= scratch


def _avalanche(values: UInt64Array, scratch: UInt64Array) -> None:
    for bits, prime in ((33, _P2), (29, _P3), (32, None)):
        np.right_shift(values, np.uint64(bits), out=scratch)
        values ^= scratch
        if prime is not None:
            values *= prime
