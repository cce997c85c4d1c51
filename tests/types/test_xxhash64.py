from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import ProgramError
from holdfast.types.xxhash64 import (
    big_integer_bytes,
    hash_columns,
    hash_int,
    hash_ints,
    hash_long,
    hash_longs,
    hash_string,
)

SEEDS = st.integers(0, 2**64 - 1)


def signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), SEEDS), min_size=1, max_size=20))
def test_vectorised_longs_with_a_seed_for_each_row_equal_the_library(rows: list[tuple[int, int]]) -> None:
    values, seeds = zip(*rows, strict=True)
    hashed = hash_longs(np.array(values, np.int64), np.array(seeds, np.uint64))
    expected = [xxhash.xxh64_intdigest(value.to_bytes(8, "little", signed=True), seed) for value, seed in rows]
    assert hashed.tolist() == expected


@given(st.lists(st.tuples(st.integers(-(2**31), 2**31 - 1), SEEDS), min_size=1, max_size=20))
def test_vectorised_ints_with_a_seed_for_each_row_equal_the_library(rows: list[tuple[int, int]]) -> None:
    values, seeds = zip(*rows, strict=True)
    hashed = hash_ints(np.array(values, np.int32), np.array(seeds, np.uint64))
    expected = [xxhash.xxh64_intdigest(value.to_bytes(4, "little", signed=True), seed) for value, seed in rows]
    assert hashed.tolist() == expected


def test_more_rows_than_are_hashed_at_once() -> None:
    values = np.arange(-20_000, 20_001)
    seeds = values.view(np.uint64)
    rows = values.tolist()
    assert hash_columns([pa.array(values)]).tolist() == [hash_long(value) for value in rows]
    chained = hash_longs(values, seeds).view(np.int64).tolist()
    assert chained == [hash_long(value, seed=value) for value in rows]
    narrow = hash_ints(values.astype(np.int32), seeds).view(np.int64).tolist()
    assert narrow == [hash_int(value, seed=value) for value in rows]


def test_sliced_chunked_and_dictionary_columns_hash_as_their_values() -> None:
    words = ["", "ä", "b", "a", "b"]
    expected = [hash_string(word) for word in words]
    column = pa.array(["x", *words, "y"])
    assert hash_columns([column.slice(1, 5)]).tolist() == expected
    assert hash_columns([column.slice(1, 5).dictionary_encode()]).tolist() == expected
    assert hash_columns([pa.chunked_array([words[:2], words[2:]])]).tolist() == expected
    decimals = pa.array([None, 1, -1, 3], pa.int64()).cast(pa.decimal128(20, 0))
    whole, part = hash_columns([decimals]).tolist(), hash_columns([decimals.slice(1, 2)]).tolist()
    assert part == whole[1:3]


def test_nulls_leave_the_seed_unchanged() -> None:
    first, second = pa.array([1, None, None], pa.int64()), pa.array(["x", "x", None])
    x = hash_string("x")
    assert hash_columns([first, second]).tolist() == [hash_string("x", hash_long(1)), x, 42]
    assert hash_columns([pa.StructArray.from_arrays([first, second], names=["a", "b"])]).tolist()[1:] == [x, 42]
    structs = pa.array([{"a": 1}, None], pa.struct([("a", pa.int64())]))
    assert hash_columns([structs, pa.array(["x", "x"])]).tolist()[1] == x
    assert hash_columns([pa.array([None, None], pa.binary())]).tolist() == [42, 42]


def test_empty_columns_have_no_hashes() -> None:
    nested = [pa.list_(pa.int64()), pa.struct([("a", pa.int32())])]
    for kind in (pa.int64(), pa.string(), pa.bool_(), pa.decimal128(30, 2), *nested):
        assert hash_columns([pa.array([], kind)]).tolist() == []


def test_columns_that_cannot_be_keys_are_errors() -> None:
    with pytest.raises(ProgramError, match="map<int64, int64> cannot be a key"):
        hash_columns([pa.array([[(1, 2)]], pa.map_(pa.int64(), pa.int64()))])
    with pytest.raises(ProgramError, match="too many digits"):
        hash_columns([pa.array([1]).cast(pa.decimal256(40, 0))])
    with pytest.raises(ProgramError, match="one column at least"):
        hash_columns([])


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, "00"), (127, "7f"), (128, "0080"), (-1, "ff"), (-128, "80"), (-129, "ff7f"), (255, "00ff"), (256, "0100")],
)
def test_big_integer_bytes_are_javas(value: int, expected: str) -> None:
    assert big_integer_bytes(value).hex() == expected
