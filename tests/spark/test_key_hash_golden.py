"""The key hash in Python against the JVM's, for random keys of every type."""

from __future__ import annotations

import datetime as dt
import math
import random
import struct
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from holdfast.spark.session_settings import changed_settings
from holdfast.state.keygroups import key_group
from holdfast.state.keys import KeyCodec
from holdfast.types.resolve import resolve

KEYS = 300
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
ALPHABET = "abcxyz019 _-äöüßéñ世界漢字Жшก🌍🎉\u0000\u07ff\uffff"


@pytest.fixture(scope="module")
def spark(holdfast_spark: SparkSession) -> Iterator[SparkSession]:
    """The session that all tests share, as it was before when these are done."""
    settings = {"spark.sql.session.timeZone": "America/New_York", "spark.sql.shuffle.partitions": "1"}
    with changed_settings(holdfast_spark, settings):
        yield holdfast_spark


def integers(bits: int) -> Callable[[random.Random], int]:
    """Integers of all sizes, the extremes included."""

    def draw(rng: random.Random) -> int:
        size = rng.randint(1, bits - 1)
        return rng.choice([-(1 << size), (1 << size) - 1, rng.randrange(-(1 << size), 1 << size), 0, -1])

    return draw


def doubles(rng: random.Random) -> float:
    special = [0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324]
    any_bits = float(struct.unpack("<d", rng.randbytes(8))[0])
    return rng.choice([rng.gauss(0, 1e6), any_bits, *special])


def floats(rng: random.Random) -> float:
    return float(struct.unpack("<f", rng.randbytes(4))[0]) if rng.random() < 0.7 else rng.choice([0.0, -0.0, math.nan])


def text(rng: random.Random) -> str:
    return "".join(rng.choices(ALPHABET, k=rng.choice([0, 1, 3, 7, 8, 15, 31, 32, 33, 70])))


def binary(rng: random.Random) -> bytes:
    return rng.randbytes(rng.choice([0, 1, 4, 8, 31, 32, 33, 64, 100]))


def decimals(precision: int, scale: int) -> Callable[[random.Random], Decimal]:
    def draw(rng: random.Random) -> Decimal:
        digits = rng.randint(1, precision)
        return Decimal((rng.randint(0, 1), tuple(rng.choices(range(10), k=digits)), -scale))

    return draw


def timestamps(rng: random.Random) -> dt.datetime:
    return EPOCH + dt.timedelta(microseconds=rng.randrange(-(10**16), 10**17))


def naive_timestamps(rng: random.Random) -> dt.datetime:
    return timestamps(rng).replace(tzinfo=None)


def dates(rng: random.Random) -> dt.date:
    return dt.date.fromordinal(rng.randint(1, dt.date.max.toordinal()))


def booleans(rng: random.Random) -> bool:
    return rng.random() < 0.5


LONG = integers(64)
DRAWS: dict[str, Callable[[random.Random], Any]] = {
    "tinyint": integers(8),
    "smallint": integers(16),
    "int": integers(32),
    "bigint": LONG,
    "float": floats,
    "double": doubles,
    "boolean": booleans,
    "string": text,
    "binary": binary,
    "decimal(9,3)": decimals(9, 3),
    "decimal(18,0)": decimals(18, 0),
    "decimal(19,4)": decimals(19, 4),
    "decimal(38,18)": decimals(38, 18),
    "date": dates,
    "timestamp": timestamps,
    "timestamp_ntz": naive_timestamps,
    "struct<a:bigint,b:string>": lambda rng: {"a": rng.choice([None, LONG(rng)]), "b": rng.choice([None, text(rng)])},
    "struct<a:struct<b:int,c:double>,d:decimal(20,2)>": lambda rng: {
        "a": rng.choice([None, {"b": integers(32)(rng), "c": doubles(rng)}]),
        "d": decimals(20, 2)(rng),
    },
    "array<string>": lambda rng: [rng.choice([None, text(rng)]) for _ in range(rng.randint(0, 4))],
}


def as_key(value: Any) -> Any:
    """What a key selector would return for the column's value."""
    return tuple(as_key(field) for field in value.values()) if isinstance(value, dict) else value


VALUES = {ddl: [draw(rng) for _ in range(KEYS)] for rng in [random.Random(11)] for ddl, draw in DRAWS.items()}


def column_of(ddl: str) -> pa.Array:
    return pa.array(VALUES[ddl], resolve(ddl).arrow_type())


@pytest.fixture(scope="module")
def jvm_hashes(spark: SparkSession) -> dict[str, list[int]]:
    """What the JVM says, for all types in one job."""
    names = {ddl: f"k{position}" for position, ddl in enumerate(DRAWS)}
    rows_of_values = zip(*VALUES.values(), strict=True)
    frame = spark.createDataFrame(list(rows_of_values), ", ".join(f"{name} {ddl}" for ddl, name in names.items()))
    rows = frame.selectExpr(*[f"xxhash64({name})" for name in names.values()]).collect()
    return {ddl: [row[position] for row in rows] for position, ddl in enumerate(names)}


@pytest.mark.parametrize("ddl", DRAWS)
def test_python_and_jvm_agree(jvm_hashes: dict[str, list[int]], ddl: str) -> None:
    codec = KeyCodec.for_type(resolve(ddl))
    assert codec.hash_array(column_of(ddl)).tolist() == jvm_hashes[ddl]
    assert [codec.hash(as_key(value)) for value in VALUES[ddl]] == jvm_hashes[ddl]


def test_key_groups_are_pmod(spark: SparkSession) -> None:
    codec = KeyCodec.for_type(resolve("bigint"))
    rows = spark.range(-50, 50).selectExpr("id", "pmod(xxhash64(id), 100)").collect()
    assert [key_group(codec.hash(row[0]), 100) for row in rows] == [row[1] for row in rows]


def test_several_columns_are_a_composite_key(spark: SparkSession) -> None:
    rng = random.Random(7)
    numbers, words = [LONG(rng) for _ in range(KEYS)], [text(rng) for _ in range(KEYS)]
    frame = spark.createDataFrame(list(zip(numbers, words, strict=True)), "a bigint, b string")
    jvm = [row[0] for row in frame.selectExpr("xxhash64(a, b)").collect()]
    codec = KeyCodec.for_type(resolve(tuple[int, str]))
    assert codec.hash_array([pa.array(numbers, pa.int64()), pa.array(words)]).tolist() == jvm
    assert [codec.hash(key) for key in zip(numbers, words, strict=True)] == jvm
    assert [KeyCodec.for_type(None).hash(key) for key in zip(numbers, words, strict=True)] == jvm
