from __future__ import annotations

import datetime as dt
import math
import pickle
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import NullKeyError, ProgramError, StateMigrationError, StateTypeError
from holdfast.state.keys import KEY_HASH, KeyCodec
from holdfast.types.instant import Instant
from holdfast.types.resolve import resolve
from holdfast.types.row import Row
from holdfast.types.typeinfo import TypeInformation, Types
from tests.kit.properties import examples

NAN = float("nan")
UTC = dt.UTC
KARACHI = dt.timezone(dt.timedelta(hours=5))
STAMP = dt.datetime(2024, 2, 29, 12, 34, 56, 789012)
TEXT = "Grüße, 世界 🌍"
LONG_TEXT = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEF"
BIG = Decimal("12345678901234567890.123456789012345678")
PAIR = Types.TUPLE([Types.LONG(), Types.STRING()])
TRIPLE = Types.TUPLE([Types.INT(), Types.DOUBLE(), Types.BOOLEAN()])
NESTED = Types.TUPLE([PAIR, Types.SQL_DATE()])

#: what Spark 4.3's xxhash64 gave: (type, key, hash)
GOLDEN: list[tuple[TypeInformation, Any, int]] = [
    (Types.BYTE(), 0, 3614696996920510707),
    (Types.BYTE(), -128, 4160238337661960656),
    (Types.BYTE(), 127, 8632298611707923906),
    (Types.SHORT(), -1, 2017008487422258757),
    (Types.SHORT(), 32767, 8952525448871805501),
    (Types.INT(), 0, 3614696996920510707),
    (Types.INT(), 1, -6698625589789238999),
    (Types.INT(), -1, 2017008487422258757),
    (Types.INT(), 42, -387659249110444264),
    (Types.INT(), 2147483647, 1508894993788531228),
    (Types.INT(), -2147483648, 2073849959933241805),
    (Types.LONG(), 0, -5252525462095825812),
    (Types.LONG(), 1, -7001672635703045582),
    (Types.LONG(), -1, 3858142552250413010),
    (Types.LONG(), 42, -6876166290308861218),
    (Types.LONG(), 9223372036854775807, -3246596055638297850),
    (Types.LONG(), -9223372036854775808, -8619748838626508300),
    (Types.FLOAT(), 0.0, 3614696996920510707),
    (Types.FLOAT(), -0.0, 3614696996920510707),
    (Types.FLOAT(), 1.5, 6163473420726370430),
    (Types.FLOAT(), NAN, 2692338816207849720),
    (Types.FLOAT(), math.inf, -5940311692336719973),
    (Types.DOUBLE(), 0.0, -5252525462095825812),
    (Types.DOUBLE(), -0.0, -5252525462095825812),
    (Types.DOUBLE(), 1.5, 7738255526519901366),
    (Types.DOUBLE(), 0.1, -4684694357984311926),
    (Types.DOUBLE(), NAN, -3127944061524951246),
    (Types.DOUBLE(), -math.inf, 5326262080505358431),
    (Types.BOOLEAN(), True, -6698625589789238999),
    (Types.BOOLEAN(), False, 3614696996920510707),
    (Types.STRING(), "", -7444071767201028348),
    (Types.STRING(), "a", -8582455328737087284),
    (Types.STRING(), "hello", -4367754540140381902),
    (Types.STRING(), TEXT, -4620278235296315928),
    (Types.STRING(), LONG_TEXT, 1498839116691236264),
    (Types.CHAR(), "a", -8582455328737087284),
    (Types.BYTES(), b"abc", 1423657621850124518),
    (Types.BYTES(), b"", -7444071767201028348),
    (Types.BYTES(), b"\x00\xff\x80", 7869338589911211550),
    (Types.DECIMAL(10, 2), Decimal(0), -5252525462095825812),
    (Types.DECIMAL(10, 2), Decimal("123.45"), 8791244235932249694),
    (Types.DECIMAL(10, 2), Decimal("-123.45"), -4814648695243699264),
    (Types.DECIMAL(18, 0), Decimal(999999999999999999), 2162198894918931945),
    (Types.DECIMAL(19, 0), Decimal(1), 6668291691252061002),
    (Types.DECIMAL(20, 2), Decimal(0), -8959994473701255385),
    (Types.DECIMAL(38, 18), Decimal(-1), 8980542177169482622),
    (Types.DECIMAL(38, 0), Decimal(128), 6715097930120473301),
    (Types.DECIMAL(38, 0), Decimal(-128), -7898411661632158123),
    (Types.DECIMAL(38, 18), BIG, -4207986725797954644),
    (Types.DECIMAL(38, 0), Decimal("-" + "9" * 38), -2254039905620870768),
    (Types.SQL_DATE(), dt.date(1970, 1, 1), 3614696996920510707),
    (Types.SQL_DATE(), dt.date(2024, 2, 29), 4183429117450946631),
    (Types.SQL_DATE(), dt.date(1969, 12, 31), 2017008487422258757),
    (Types.SQL_DATE(), dt.date(1, 1, 1), 6773727150484150602),
    (Types.SQL_DATE(), dt.date(9999, 12, 31), 7061898801283288394),
    (Types.TIMESTAMP_LTZ(), dt.datetime(1970, 1, 1, tzinfo=UTC), -5252525462095825812),
    (Types.TIMESTAMP_LTZ(), STAMP.replace(tzinfo=UTC), -2021281541725647388),
    (Types.TIMESTAMP_LTZ(), dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), 3858142552250413010),
    (Types.SQL_TIMESTAMP(), STAMP, -2021281541725647388),
    (Types.INSTANT(), Instant(1709210096, 789012000), -2021281541725647388),
    (Types.SQL_TIME(), dt.time(12, 34, 56, 789012), -8115057001718591065),
    (PAIR, (1, "x"), 6158280145716684778),
    (PAIR, (None, "x"), -5636050478767222463),
    (TRIPLE, (1, 2.5, True), -5254825967734803283),
    (NESTED, ((1, "y"), dt.date(2024, 2, 29)), -7401561674539602101),
    (Types.ROW_NAMED(["a", "b"], [Types.LONG(), Types.STRING()]), Row(a=1, b="x"), 6158280145716684778),
    (Types.LIST(Types.LONG()), [1, 2, 3], 4904562767517797033),
    (Types.LIST(Types.STRING()), ["a", None, "b"], -7357372313250070212),
]


def arrow_value(key: Any) -> Any:
    if isinstance(key, Instant):
        return pa.scalar(key.to_epoch_nano(), pa.timestamp("ns", "UTC"))
    if isinstance(key, Row):
        return key.as_dict()
    if isinstance(key, tuple):
        return {f"f{index}": arrow_value(value) for index, value in enumerate(key)}
    return key


def ids(case: Any) -> str:
    return f"{case[0]}-{case[1]!r}".replace(" ", "")


@pytest.mark.parametrize("case", GOLDEN, ids=ids)
def test_scalar_and_vectorised_hashes_equal_sparks(case: tuple[TypeInformation, Any, int]) -> None:
    type_info, key, expected = case
    codec = KeyCodec.for_type(type_info)
    assert codec.hash(key) == expected
    column = pa.array([arrow_value(key)] * 2, type_info.arrow_type())
    assert codec.hash_array(column).tolist() == [expected] * 2
    assert codec.hash_many([key, key]).tolist() == [expected] * 2


@pytest.mark.parametrize("case", GOLDEN, ids=ids)
def test_stored_keys_come_back_normalised(case: tuple[TypeInformation, Any, int]) -> None:
    type_info, key, _ = case
    codec = KeyCodec.for_type(type_info)
    normal = codec.normalise(key)
    for form in (key, normal):
        assert codec.hash(form) == case[2]
        back = codec.decode(codec.encode(form))
        assert (back == normal or math.isnan(key)) and type(back) is type(normal)
        assert {codec.identity(form)} == {codec.identity(back)}  # as a dict sees it, NaN included
        assert not codec.trivial_identity or codec.identity(form) is form


def test_undeclared_keys_that_python_takes_for_equal_or_alike_stay_apart() -> None:
    codec = KeyCodec.for_type(None)
    alike: list[Any] = [1, 1.0, True, "1", b"1", Decimal(1), (1,), (1.0,), (True,), ("1",), (b"1",), ((1,),)]
    alike += [
        (1, None),
        (None, 1),
        0,
        0.0,
        False,
        "",
        b"",
        (),
        (None,),
        2**63,
        Row(1),
        Row(a=1),
        Row(b=1),
        b"i" + bytes(7) + b"\x01",
    ]
    alike += [dt.date(1970, 1, 1), dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 1, tzinfo=UTC), dt.time(0), Instant(0)]
    assert len({codec.encode(key) for key in alike}) == len(alike)
    assert len({codec.identity(key) for key in alike}) == len(alike)
    for key in alike:
        back = codec.decode(codec.encode(key))
        assert back == codec.normalise(key)
        assert type(back) is type(codec.normalise(key))


def test_undeclared_ints_are_long_and_floats_double() -> None:
    codec = KeyCodec.for_type(None)
    assert codec.hash(42) == KeyCodec.for_type(Types.LONG()).hash(42)
    assert codec.hash(0.1) == KeyCodec.for_type(Types.DOUBLE()).hash(0.1)
    assert codec.hash((1, "x")) == KeyCodec.for_type(PAIR).hash((1, "x"))
    assert codec.hash_array(pa.array([42], pa.int32())).tolist() == [codec.hash(42)]
    assert codec.hash_array(pa.array([0.5], pa.float32())).tolist() == [codec.hash(0.5)]
    assert codec.hash_array([pa.array([1]), pa.array(["x"])]).tolist() == [codec.hash((1, "x"))]
    mixed = [1, "a", 2.5, (1, 2)]
    assert codec.hash_many(mixed).tolist() == [codec.hash(key) for key in mixed]
    assert codec.hash_many([1, 2**70]).tolist() == [codec.hash(1), codec.hash(2**70)]


@pytest.mark.parametrize(
    ("type_like", "same"),
    [
        ("bigint", [1, True, 1.0, np.int32(1), np.int64(1), Decimal("1.0")]),
        ("double", [0.0, -0.0, 0, False, np.float32(0)]),
        ("double", [NAN, -NAN, float("nan"), np.float64("nan")]),
        ("float", [0.1, np.float32(0.1), float(np.float32(0.1))]),
        ("decimal(10,2)", [Decimal("1.5"), Decimal("1.50"), Decimal("1.504"), Decimal("1.495")]),
        ("decimal(10,2)", [Decimal("-0.00"), Decimal(0), 0]),
        (Types.BIG_DEC(), [Decimal("100"), Decimal("1E+2"), Decimal("100.00"), 100]),
        (Types.BIG_DEC(), [Decimal("0"), Decimal("-0E+5")]),
        ("timestamp", [STAMP, STAMP.replace(tzinfo=UTC), STAMP.replace(tzinfo=UTC).astimezone(KARACHI)]),
        ("timestamp_ntz", [STAMP, STAMP.replace(tzinfo=UTC), STAMP.replace(tzinfo=UTC).astimezone(KARACHI)]),
        ("boolean", [True, 1, np.bool_(True)]),
        ("binary", [b"ab", bytearray(b"ab"), memoryview(b"ab")]),
        (tuple[int, str], [(1, "a"), [1, "a"], (1.0, "a")]),
        (None, [0.0, -0.0]),
        (None, [NAN, float("nan")]),
        (None, [(1, (2,)), [1, [2]]]),
        (None, [Decimal("1.0"), Decimal("1.00")]),
        (None, [5, np.int64(5)]),
    ],
)
def test_keys_that_are_one_key(type_like: Any, same: list[Any]) -> None:
    codec = KeyCodec.for_type(resolve(type_like))
    assert len({codec.encode(key) for key in same}) == 1
    assert len({codec.hash(key) for key in same}) == 1
    if not codec.trivial_identity:
        assert len({codec.identity(key) for key in same}) == 1


@pytest.mark.parametrize(
    ("type_like", "key"),
    [
        ("bigint", "1"),
        ("bigint", 1.5),
        ("bigint", NAN),
        ("bigint", 2**63),
        ("int", 2**31),
        ("tinyint", -129),
        ("string", b"a"),
        ("string", "\ud800"),
        ("binary", "a"),
        ("boolean", 2),
        ("double", "1"),
        ("float", 1e39),
        ("double", 10**400),
        ("date", STAMP),
        ("timestamp", dt.date(2024, 1, 1)),
        ("decimal(4,2)", Decimal("100")),
        ("decimal(4,2)", Decimal("NaN")),
        ("decimal(4,2)", 1.5),
        (Types.CHAR(), "ab"),
        (Types.SQL_TIME(), dt.time(1, tzinfo=UTC)),
        (Types.BIG_INT(), 1.5),
        (Types.INSTANT(), 5),
        (tuple[int, str], (1,)),
        (tuple[int, str], 1),
        (tuple[int, str], ("a", "a")),
        (list[int], 1),
    ],
)
def test_keys_that_cannot_be_cast_name_key_and_type(type_like: Any, key: Any) -> None:
    codec = KeyCodec.for_type(resolve(type_like))
    for call in (codec.normalise, codec.hash, codec.encode):
        if call == codec.normalise and key == "\ud800":
            continue
        with pytest.raises(StateTypeError, match="cannot be cast to the declared key type"):
            call(key)


class Colour(Enum):
    RED = 1


@dataclass
class Device:
    site: str
    number: int


@pytest.mark.parametrize("key", [Colour.RED, Device("a", 1), object(), {1: 2}, {1}, (1, {2})])
def test_undeclared_keys_of_other_classes_ask_for_a_type(key: Any) -> None:
    with pytest.raises(StateTypeError, match="cannot be a key without a declared type"):
        KeyCodec.for_type(None).encode(key)


def test_dataclass_keys() -> None:
    codec = KeyCodec.for_type(resolve(Device))
    key = Device("a", 1)
    assert codec.decode(codec.encode(key)) == key
    assert codec.hash(key) == KeyCodec.for_type(resolve(tuple[str, int])).hash(("a", 1))
    assert codec.identity(key) == codec.identity(Device("a", 1)) != codec.identity(Device("a", 2))


def test_row_keys_are_read_by_name() -> None:
    codec = KeyCodec.for_type(Types.ROW_NAMED(["b", "a"], [Types.STRING(), Types.LONG()]))
    assert codec.encode(Row(a=1, b="x")) == codec.encode(("x", 1))
    assert codec.decode(codec.encode(("x", 1))).as_dict() == {"b": "x", "a": 1}


@pytest.mark.parametrize(
    "type_like", [None, "bigint", "string", "double", "date", tuple[int, str], list[int], "decimal(9,1)"]
)
def test_no_key_is_an_error(type_like: Any) -> None:
    codec = KeyCodec.for_type(resolve(type_like))
    for call in (codec.normalise, codec.hash, codec.encode):
        with pytest.raises(NullKeyError, match="key of a row is None"):
            call(None)
    with pytest.raises(NullKeyError, match=r"1 of 3 rows have no key \(the first is row 1"):
        KeyCodec.for_type(Types.LONG()).hash_array(pa.array([1, None, 3]))


def test_fields_of_a_composite_may_be_none() -> None:
    codec = KeyCodec.for_type(PAIR)
    assert codec.decode(codec.encode((None, "a"))) == (None, "a")
    assert codec.encode((None, "a")) != codec.encode((0, "a"))
    columns = [pa.array([None, 1], pa.int64()), pa.array(["x", None])]
    assert codec.hash_array(columns).tolist() == [codec.hash((None, "x")), codec.hash((1, None))]


def test_columns_are_cast_to_the_declared_type() -> None:
    codec = KeyCodec.for_type(Types.INT())
    assert codec.hash_array(pa.array([7], pa.int64())).tolist() == [codec.hash(7)]
    assert codec.hash_array([pa.array([7], pa.int8())]).tolist() == [codec.hash(7)]
    with pytest.raises(StateTypeError, match="int64 cannot be cast to the declared key type INT"):
        codec.hash_array(pa.array([2**40]))
    with pytest.raises(ProgramError, match="has 2 fields, and 3 columns"):
        KeyCodec.for_type(PAIR).hash_array([pa.array([1])] * 3)


def test_big_numbers_hash_alike_in_their_text_columns() -> None:
    whole = KeyCodec.for_type(Types.BIG_INT())
    assert whole.hash_array(pa.array([str(2**80), "-5"])).tolist() == [whole.hash(2**80), whole.hash(-5)]
    decimal = KeyCodec.for_type(Types.BIG_DEC())
    assert decimal.hash_array(pa.array(["1.500"])).tolist() == [decimal.hash(Decimal("1.5"))]
    pair = KeyCodec.for_type(Types.TUPLE([Types.BIG_DEC(), Types.LIST(Types.BIG_INT())]))
    columns = [pa.array(["1.0", None]), pa.array([["7", None], None], pa.list_(pa.string()))]
    assert pair.hash_array(columns).tolist() == [pair.hash((Decimal(1), [7, None])), pair.hash((None, None))]


def test_maps_cannot_be_keys() -> None:
    with pytest.raises(ProgramError, match="MAP<LONG, LONG> cannot be the type of a key"):
        KeyCodec.for_type(Types.TUPLE([Types.MAP(Types.LONG(), Types.LONG())]))


def test_only_the_same_key_type_is_the_same() -> None:
    stored = KeyCodec.for_type(Types.INT()).snapshot()
    KeyCodec.for_type(Types.INT()).require_same(stored, "counter")
    with pytest.raises(StateMigrationError, match=r"key type of operator 'counter' was INT .* is LONG now"):
        KeyCodec.for_type(Types.LONG()).require_same(stored, "counter")
    with pytest.raises(StateMigrationError, match=f"hash 'murmur'.*{KEY_HASH}"):
        KeyCodec.for_type(Types.INT()).require_same({**stored, "hash": "murmur"}, "counter")


def test_codecs_can_be_pickled() -> None:
    codec = pickle.loads(pickle.dumps(KeyCodec.for_type(PAIR)))
    assert codec.encode((1, "a")) == KeyCodec.for_type(PAIR).encode((1, "a"))


NUMBERS = st.integers() | st.floats() | st.booleans() | st.decimals(allow_nan=False, allow_infinity=False)
SCALARS = NUMBERS | st.text() | st.binary() | st.dates() | st.datetimes() | st.times()
KEYS = st.recursive(SCALARS, lambda inner: st.tuples(inner) | st.tuples(inner, st.none() | inner), max_leaves=5)


def same_key(left: Any, right: Any) -> bool:
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(same_key, left, right))
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    return type(left) is type(right) and bool(left == right)


@settings(max_examples=examples(500))
@given(KEYS, KEYS)
def test_undeclared_encoding_is_canonical(left: Any, right: Any) -> None:
    codec = KeyCodec.for_type(None)
    same = same_key(left, right)
    assert (codec.encode(left) == codec.encode(right)) == same
    assert (codec.identity(left) == codec.identity(right)) == same
    assert same_key(codec.decode(codec.encode(left)), left)
    if same:
        assert codec.hash(left) == codec.hash(right)


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1) | st.none(), st.text() | st.none()), min_size=1))
def test_composite_columns_hash_as_their_rows(rows: list[tuple[int | None, str | None]]) -> None:
    codec = KeyCodec.for_type(PAIR)
    numbers, words = zip(*rows, strict=True)
    hashed = codec.hash_array([pa.array(numbers, pa.int64()), pa.array(words, pa.string())])
    assert hashed.tolist() == [codec.hash(row) for row in rows]


@pytest.mark.parametrize("seconds", [2**62, -(2**62), 9_223_372_036_855])
def test_an_instant_that_no_timestamp_can_be_is_no_key(seconds: int) -> None:
    with pytest.raises(StateTypeError, match=r"beyond the times of a Spark timestamp.*another key"):
        KeyCodec.for_type(Types.INSTANT()).hash(Instant(seconds))
