from __future__ import annotations

import datetime as dt
import math
import pickle
import threading
from collections import OrderedDict, namedtuple
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import StateMigrationError, StateTypeError
from holdfast.state.serializers import serializer_for, serializer_from_snapshot
from holdfast.types.instant import Instant
from holdfast.types.resolve import resolve
from holdfast.types.row import Row
from holdfast.types.typeinfo import TypeInformation, Types

UTC = dt.UTC
STAMP = dt.datetime(2024, 2, 29, 12, 34, 56, 789012)


@dataclass
class Inner:
    when: dt.date
    amounts: list[Decimal]


@dataclass
class Outer:
    name: str
    inner: Inner | None
    counts: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Point:
    x: int
    y: int


Pair = namedtuple("Pair", "a b")

VALUES: list[tuple[Any, list[Any]]] = [
    (Types.STRING(), ["", "a", "Grüße 🌍"]),
    (Types.BYTES(), [b"", b"\x00\xff"]),
    (Types.BOOLEAN(), [True, False]),
    (Types.BYTE(), [-128, 0, 127]),
    (Types.SHORT(), [-32768, 32767]),
    (Types.INT(), [-(2**31), 2**31 - 1]),
    (Types.LONG(), [-(2**63), -1, 2**63 - 1]),
    (Types.FLOAT(), [0.1, -math.inf]),
    (Types.DOUBLE(), [0.1, 1e308, -0.0]),
    (Types.CHAR(), ["ä"]),
    (Types.BIG_INT(), [0, -1, 2**200, -(2**200)]),
    (Types.BIG_DEC(), [Decimal("1.50"), Decimal("-1E+50")]),
    (Types.DECIMAL(10, 2), [Decimal("12345678.90"), Decimal("-0.1"), Decimal(0), Decimal("1E+3")]),
    (Types.INSTANT(), [Instant(-1, 999_999_999), Instant(5)]),
    (Types.SQL_DATE(), [dt.date(1, 1, 1), dt.date(2024, 2, 29)]),
    (Types.SQL_TIME(), [dt.time(0), dt.time(23, 59, 59, 999999)]),
    (Types.SQL_TIMESTAMP(), [STAMP, dt.datetime(1, 1, 1), dt.datetime.max]),
    (Types.TIMESTAMP_LTZ(), [STAMP.replace(tzinfo=UTC)]),
    (Types.TUPLE([Types.LONG(), Types.STRING()]), [(1, "a"), (None, None)]),
    (Types.TUPLE([Types.SQL_DATE(), Types.TUPLE([Types.LONG()])]), [(dt.date(2024, 1, 1), (1,)), (None, (None,))]),
    (Types.ROW([Types.LONG(), Types.STRING()]), [Row(f0=1, f1="a"), Row(f0=None, f1=None)]),
    (
        Types.ROW_NAMED(["a", "b"], [Types.LONG(), Types.SQL_DATE()]),
        [Row(a=1, b=dt.date(2024, 1, 1)), Row(a=1, b=None)],
    ),
    (Types.LIST(Types.LONG()), [[], [1, None, 3]]),
    (Types.LIST(Types.ROW_NAMED(["a"], [Types.LONG()])), [[Row(a=1), None]]),
    (Types.BASIC_ARRAY(Types.STRING()), [["a", None]]),
    (Types.MAP(Types.STRING(), Types.LONG()), [{}, {"a": 1, "b": None}]),
    (Types.MAP(Types.LONG(), Types.LIST(Types.SQL_DATE())), [{1: [dt.date(2024, 1, 1)], 2: None}]),
    (Types.MAP(Types.SQL_DATE(), Types.LONG()), [{dt.date(2024, 1, 1): 5}]),
    (Types.MAP(Types.TUPLE([Types.LONG(), Types.STRING()]), Types.LONG()), [{(1, "a"): 5}]),
    (Types.MAP(resolve(Point), Types.LONG()), [{Point(1, 2): 5}]),
    (Outer, [Outer("a", Inner(dt.date(2024, 1, 1), [Decimal("1.5")]), {1: 0.5}), Outer("b", None)]),
    (Types.LIST(resolve(Point)), [[Point(1, 2), None]]),
    (Types.PICKLED_BYTE_ARRAY(), [None, {1, 2}, Point(1, 2), (1, [2])]),
    (Types.TUPLE([Types.LONG(), Types.PICKLED_BYTE_ARRAY()]), [(1, {2, 3}), (1, None)]),
]
CASES = [(resolve(type_like), value) for type_like, values in VALUES for value in values]


@pytest.mark.parametrize(("type_info", "value"), CASES, ids=lambda case: str(case).replace(" ", "")[:60])
def test_values_come_back_equal_and_of_the_same_class(type_info: TypeInformation, value: Any) -> None:
    serializer = serializer_for(type_info)
    back = serializer.decode(serializer.encode(value))
    assert back == value
    assert isinstance(back, (type(value), Row))
    assert repr(back) == repr(value)
    old = serializer_from_snapshot(serializer.snapshot())
    assert old.decode(serializer.encode(value)) == value
    assert serializer.decode_many(serializer.encode_many([value, value])) == [value, value]


_FIELDS = st.sampled_from([0, -1, 2**63 - 1, 2**63, 2**64, True, 1.5, "a", "\ud800", b"b", None, np.int64(3), (1,)])


@given(
    st.sampled_from(
        [
            Types.LONG(),
            Types.BYTE(),
            Types.DOUBLE(),
            Types.STRING(),
            Types.TUPLE([Types.LONG(), Types.LONG()]),
            Types.TUPLE([Types.STRING(), Types.DOUBLE()]),
        ]
    ),
    st.lists(_FIELDS | st.tuples(_FIELDS, _FIELDS) | st.tuples(st.integers(-5, 5), st.integers(-5, 5)), max_size=4),
)
def test_many_values_are_encoded_and_checked_as_each_of_them(type_info: TypeInformation, values: list[Any]) -> None:
    serializer = serializer_for(type_info)
    # Few are encoded one by one.
    values = values * 16
    try:
        expected = [serializer.encode(value) for value in values]
    except StateTypeError as error:
        with pytest.raises(StateTypeError) as raised:
            serializer.encode_many(values)
        assert str(raised.value) == str(error)
    else:
        assert serializer.encode_many(values) == expected


def test_nan_comes_back() -> None:
    serializer = serializer_for(Types.DOUBLE())
    assert math.isnan(serializer.decode(serializer.encode(math.nan)))


@pytest.mark.parametrize(
    ("type_like", "value", "expected"),
    [
        ("double", 1, 1.0),
        ("double", np.float32(0.5), 0.5),
        ("bigint", np.int32(7), 7),
        ("boolean", np.bool_(True), True),
        ("string", np.str_("a"), "a"),
        ("binary", bytearray(b"a"), b"a"),
        (tuple[int, float], (np.int64(1), 2), (1, 2.0)),
        (tuple[int, int], Pair(1, 2), (1, 2)),
        (list[int], [np.int8(1)], [1]),
        (dict[str, int], OrderedDict(a=1), {"a": 1}),
        (dict[str, float], {"a": 1}, {"a": 1.0}),
        ("a INT, b STRING", (1, "x"), Row(a=1, b="x")),
        (Types.ROW_NAMED(["b", "a"], [Types.STRING(), Types.LONG()]), Row(a=1, b="x"), Row("b", "a")("x", 1)),
        ("timestamp", STAMP, STAMP.replace(tzinfo=UTC)),
        ("timestamp_ntz", STAMP.replace(tzinfo=dt.timezone(dt.timedelta(hours=1))), STAMP - dt.timedelta(hours=1)),
    ],
)
def test_what_is_cast_without_loss(type_like: Any, value: Any, expected: Any) -> None:
    serializer = serializer_for(resolve(type_like))
    back = serializer.decode(serializer.encode(value))
    assert back == expected
    assert type(back) is type(expected) or isinstance(back, Row)


@pytest.mark.parametrize(
    ("type_like", "value"),
    [
        ("tinyint", 128),
        ("smallint", -32769),
        ("int", 2**31),
        ("bigint", 2**63),
        ("bigint", 2**64),
        ("bigint", True),
        ("bigint", 1.0),
        ("bigint", "1"),
        ("bigint", None),
        ("double", "1"),
        ("double", True),
        ("double", 10**400),
        ("boolean", 1),
        ("string", b"a"),
        ("string", dt.date(2024, 1, 1)),
        ("string", Decimal(1)),
        ("string", "\ud800"),
        ("binary", "abcd"),
        ("date", "2024-01-01"),
        ("date", STAMP),
        ("timestamp", dt.date(2024, 1, 1)),
        ("decimal(4,2)", 1.5),
        ("decimal(4,2)", Decimal("1.234")),
        ("decimal(4,2)", Decimal("100")),
        ("decimal(4,2)", Decimal("1E+2")),
        ("decimal(4,2)", Decimal("NaN")),
        (Types.CHAR(), "ab"),
        (Types.BIG_INT(), True),
        (Types.SQL_TIME(), dt.time(1, tzinfo=UTC)),
        (tuple[int, int], (1,)),
        (tuple[int, int], (1, 2, 3)),
        (tuple[int, int], [1, 2]),
        (tuple[int, int], (1, "2")),
        (tuple[int, int], (1, 2**63)),
        (tuple[tuple[int], int], ([1], 1)),
        (list[int], (1, 2)),
        (list[int], {1, 2}),
        (list[int], [1, "2"]),
        (list[int], [2**63]),
        (dict[str, int], [("a", 1)]),
        (dict[str, int], {1: 1}),
        (dict[str, int], {None: 1}),
        (dict[str, int], {"a": "1"}),
        ("a INT, b STRING", Row(a=1, c="x")),
        ("a INT, b STRING", Row(1)),
        ("a INT, b STRING", Row(a="x", b=1)),
        ("a INT, b STRING", 5),
        (Point, (1, 2)),
        (Point, Inner(dt.date(2024, 1, 1), [])),
        (Point, Point("1", 2)),  # type: ignore[arg-type]  # what is refused
        pytest.param(Types.PICKLED_BYTE_ARRAY(), threading.Lock(), id="lock"),
        pytest.param(Types.LIST(Types.PICKLED_BYTE_ARRAY()), [threading.Lock()], id="list of locks"),
    ],
    ids=lambda case: str(case)[:50],
)
def test_values_of_another_type_are_errors_that_name_the_type(type_like: Any, value: Any) -> None:
    type_info = resolve(type_like)
    with pytest.raises(StateTypeError, match="is not of the declared type") as caught:
        serializer_for(type_info).encode(value)
    assert type_info.describe() in str(caught.value)
    assert type(value).__name__ in str(caught.value)


def test_the_message_shows_the_part_that_is_wrong() -> None:
    serializer = serializer_for(Types.TUPLE([Types.LONG(), Types.LIST(Types.STRING())]))
    with pytest.raises(
        StateTypeError, match=r"declared type TUPLE<LONG, LIST<STRING>>: expected STRING, got 5 \(int\)"
    ):
        serializer.encode((1, ["a", 5]))
    with pytest.raises(StateTypeError, match=r"<= 9223372036854775807 - at `\$\[0\]`"):
        serializer.encode((2**63, []))


def test_immutable_types_and_values() -> None:
    assert serializer_for(resolve(tuple[int, str])).immutable
    assert not serializer_for(resolve(list[int])).immutable
    pickled = serializer_for(Types.PICKLED_BYTE_ARRAY())
    assert not pickled.immutable
    assert pickled.is_immutable((1, "a", (None, 2.5)))
    assert not pickled.is_immutable((1, []))
    assert not pickled.is_immutable(Point(1, 2))


def test_decoded_values_are_new_objects() -> None:
    serializer = serializer_for(resolve(list[int]))
    data = serializer.encode([1])
    first = serializer.decode(data)
    first.append(2)
    assert serializer.decode(data) == [1]


def test_instances_of_classes_are_stored_as_rows_of_their_fields() -> None:
    as_rows = serializer_for(resolve("x BIGINT, y BIGINT"))
    assert serializer_for(resolve(Point)).encode(Point(1, 2)) == as_rows.encode(Row(x=1, y=2))


def test_serializers_can_be_pickled() -> None:
    serializer = pickle.loads(pickle.dumps(serializer_for(resolve(Point))))
    assert serializer.decode(serializer.encode(Point(1, 2))) == Point(1, 2)


def test_a_later_version_is_not_read() -> None:
    stored = {**serializer_for(Types.LONG()).snapshot(), "version": 99}
    with pytest.raises(StateMigrationError, match="version 99"):
        serializer_from_snapshot(stored)


SCALARS: list[tuple[TypeInformation, st.SearchStrategy[Any]]] = [
    (Types.LONG(), st.integers(-(2**63), 2**63 - 1)),
    (Types.STRING(), st.text()),
    (Types.BYTES(), st.binary()),
    (Types.DOUBLE(), st.floats(allow_nan=False)),
    (Types.BOOLEAN(), st.booleans()),
    (Types.BIG_INT(), st.integers()),
    (Types.BIG_DEC(), st.decimals(allow_nan=False, allow_infinity=False)),
    (Types.SQL_DATE(), st.dates()),
    (Types.SQL_TIME(), st.times()),
    (Types.SQL_TIMESTAMP(), st.datetimes()),
]


@st.composite
def typed_values(draw: st.DrawFn, depth: int = 2) -> tuple[TypeInformation, st.SearchStrategy[Any]]:
    """A type and the strategy of its values."""
    shape = draw(st.sampled_from(["scalar", "tuple", "list", "map", "row"])) if depth else "scalar"
    if shape == "scalar":
        return draw(st.sampled_from(SCALARS))
    if shape == "list":
        type_info, values = draw(typed_values(depth - 1))
        return Types.LIST(type_info), st.lists(values | st.none(), max_size=4)
    if shape == "map":
        key_type, keys = draw(st.sampled_from(SCALARS))
        type_info, values = draw(typed_values(depth - 1))
        return Types.MAP(key_type, type_info), st.dictionaries(keys, values | st.none(), max_size=4)
    fields = [draw(typed_values(depth - 1)) for _ in range(draw(st.integers(1, 3)))]
    types = [type_info for type_info, _ in fields]
    parts = st.tuples(*[values | st.none() for _, values in fields])
    return (Types.TUPLE(types), parts) if shape == "tuple" else (Types.ROW(types), parts.map(Types.ROW(types).maker()))


@given(st.data())
def test_random_types_and_values_come_back(data: st.DataObject) -> None:
    type_info, values = data.draw(typed_values())
    value = data.draw(values)
    serializer = serializer_for(type_info)
    assert serializer.decode(serializer.encode(value)) == value
    assert TypeInformation.from_json(serializer.snapshot()["type"]) == type_info


@pytest.mark.parametrize("value", [(1 << 53) + 1, -(1 << 53) - 1, (1 << 63) - 1, 1 << 2000, np.int64((1 << 53) + 1)])
def test_an_int_that_no_double_is_is_refused(value: Any) -> None:
    for type_info in (Types.DOUBLE(), Types.FLOAT()):
        with pytest.raises(StateTypeError, match=r"expected (DOUBLE|FLOAT), got "):
            serializer_for(type_info).encode(value)


@pytest.mark.parametrize("value", [1 << 53, 1 << 60, -(1 << 62), 7, np.int32(-7)])
def test_an_int_that_is_a_double_is_cast(value: Any) -> None:
    serializer = serializer_for(Types.DOUBLE())
    assert serializer.decode(serializer.encode(value)) == float(value)
