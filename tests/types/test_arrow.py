"""Rows survive the way through Arrow, and rows of another type are refused with their position."""

from __future__ import annotations

import datetime
import pickle
import sys
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import RowTypeError
from holdfast.types.arrow import row_reader, row_writer, schema_of
from holdfast.types.instant import Instant
from holdfast.types.resolve import resolve
from holdfast.types.row import Row
from holdfast.types.typeinfo import TypeInformation, Types

ZONE = datetime.timezone(datetime.timedelta(hours=2))


@dataclass
class Point:
    x: int
    label: str


@dataclass
class Keywords:
    x: int
    size: float = field(kw_only=True, default=1.0)


def round_trip(type_info: TypeInformation, rows: list) -> list:
    batch = row_writer(type_info)(rows)
    assert batch.schema == schema_of(type_info)
    return row_reader(type_info)(batch)


INTEGERS = {Types.BYTE(): 8, Types.SHORT(): 16, Types.INT(): 32, Types.LONG(): 64}

SCALARS: dict[TypeInformation, st.SearchStrategy] = {
    **{t: st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for t, bits in INTEGERS.items()},
    Types.STRING(): st.text(),
    Types.BYTES(): st.binary(),
    Types.BOOLEAN(): st.booleans(),
    Types.FLOAT(): st.floats(width=32, allow_nan=False),
    Types.DOUBLE(): st.floats(allow_nan=False),
    Types.CHAR(): st.characters(exclude_categories=["Cs"]),
    Types.BIG_INT(): st.integers(),
    Types.BIG_DEC(): st.decimals(allow_nan=False),
    Types.DECIMAL(20, 3): st.decimals(-(10**9), 10**9, places=3),
    Types.INSTANT(): st.integers(-(2**62), 2**62).map(Instant.of_epoch_nano),
    Types.SQL_DATE(): st.dates(),
    Types.SQL_TIME(): st.times(),
    Types.SQL_TIMESTAMP(): st.datetimes(),
    Types.TIMESTAMP_LTZ(): st.datetimes(timezones=st.just(datetime.UTC)),
    Types.PICKLED_BYTE_ARRAY(): st.one_of(st.integers(), st.text(), st.tuples(st.integers(), st.none())),
}


def _typed_row(parts):
    row = Types.ROW([type_info for type_info, _ in parts])
    return row, st.tuples(*(values for _, values in parts)).map(row.maker())


def nested(children: st.SearchStrategy) -> st.SearchStrategy:
    """(type, strategy of its values) pairs, one level deeper."""
    many = st.lists(children, min_size=1, max_size=3)
    return st.one_of(
        children.map(lambda c: (Types.LIST(c[0]), st.lists(c[1], max_size=3))),
        children.map(lambda c: (Types.MAP(Types.STRING(), c[0]), st.dictionaries(st.text(), c[1], max_size=3))),
        many.map(lambda cs: (Types.TUPLE([c[0] for c in cs]), st.tuples(*(c[1] for c in cs)))),
        many.map(_typed_row),
    )


SCALAR_PAIRS = st.sampled_from([(t, st.none() | s) for t, s in SCALARS.items()])
ANY_TYPE = st.recursive(SCALAR_PAIRS, nested, max_leaves=4)


@given(st.data())
def test_every_value_of_every_type_comes_back(data):
    type_info, values = data.draw(ANY_TYPE)
    rows = data.draw(st.lists(values, max_size=5))
    assert round_trip(type_info, rows) == rows


@given(st.data(), st.integers(0, 5), st.integers(0, 5))
def test_a_slice_of_a_batch_reads_as_the_slice_of_its_rows(data, start, length):
    """Arrow children of a sliced batch keep the whole data behind an offset."""
    type_info, values = data.draw(ANY_TYPE)
    rows = data.draw(st.lists(values, min_size=start, max_size=8))
    batch = row_writer(type_info)(rows).slice(start, length)
    assert row_reader(type_info)(batch) == rows[start : start + length]


def test_types_with_fields_are_columns_and_others_one_value():
    assert schema_of(Types.TUPLE([Types.LONG(), Types.STRING()])).names == ["f0", "f1"]
    assert schema_of(Types.ROW_NAMED(["a"], [Types.INT()])) == pa.schema([("a", pa.int32())])
    assert schema_of(resolve(Point)).names == ["x", "label"]
    assert schema_of(Types.LIST(Types.LONG())) == pa.schema([("value", pa.list_(pa.int64()))])
    assert schema_of(Types.PICKLED_BYTE_ARRAY()) == pa.schema([("value", pa.binary())])


def test_nulls_inside_nested_values():
    inner = Types.TUPLE([Types.LONG(), Types.SQL_DATE()])
    rows = [([(1, datetime.date(2020, 1, 1)), None], None), (None, {"k": None, "m": (None, None)}), ([], {})]
    assert round_trip(Types.TUPLE([Types.LIST(inner), Types.MAP(Types.STRING(), inner)]), rows) == rows


def test_rows_have_names_and_dataclasses_are_instances():
    named = Types.ROW_NAMED(["b", "a"], [Types.LONG(), Types.STRING()])
    (row,) = round_trip(named, [Row(a="x", b=1)])
    assert (row.a, row.b, list(row)) == ("x", 1, [1, "x"])
    assert round_trip(named, [(1, "x")]) == [row]
    assert round_trip(resolve(Point), [Point(1, "p")]) == [Point(1, "p")]
    assert round_trip(resolve(Keywords), [Keywords(1, size=2.5)]) == [Keywords(1, size=2.5)]


def test_rows_with_other_names_are_taken_by_position():
    named = Types.ROW_NAMED(["a", "b"], [Types.LONG(), Types.STRING()])
    (row,) = round_trip(named, [Row("x", "y")(1, "z")])
    assert row == Row(a=1, b="z")


def test_times_are_turned_to_utc():
    local = datetime.datetime(2024, 5, 1, 12, tzinfo=ZONE)
    assert round_trip(Types.SQL_TIMESTAMP(), [local]) == [datetime.datetime(2024, 5, 1, 10)]
    assert round_trip(Types.TIMESTAMP_LTZ(), [local])[0].tzinfo is datetime.UTC
    other_zone = pa.RecordBatch.from_arrays([pa.array([local], pa.timestamp("us", "Europe/Athens"))], ["value"])
    assert row_reader(Types.TIMESTAMP_LTZ())(other_zone) == [local]


def test_numpy_scalars_are_numbers():
    assert round_trip(Types.LONG(), [np.int32(3)]) == [3]
    assert round_trip(Types.DOUBLE(), [np.float32(0.5), 2]) == [0.5, 2.0]
    assert round_trip(Types.BOOLEAN(), [np.bool_(True)]) == [True]


@pytest.mark.parametrize(
    ("type_info", "good", "bad"),
    [
        (Types.LONG(), 1, 1.5),
        (Types.LONG(), 1, True),
        (Types.INT(), 1, 2**31),
        (Types.STRING(), "a", b"a"),
        (Types.STRING(), "a", "\ud800"),
        (Types.BYTES(), b"a", "a"),
        (Types.CHAR(), "a", "ab"),
        (Types.BOOLEAN(), True, 1),
        (Types.DOUBLE(), 1.0, "1"),
        (Types.DECIMAL(4, 1), Decimal("1.5"), Decimal("1.55")),
        (Types.SQL_DATE(), datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1)),
        (Types.SQL_TIMESTAMP(), datetime.datetime(2020, 1, 1), 5),
        (Types.LIST(Types.LONG()), [1], [1, 2.5]),
        (Types.LIST(Types.STRING()), ["ab"], "ab"),
        (Types.MAP(Types.STRING(), Types.LONG()), {"a": 1}, {None: 1}),
        (Types.MAP(Types.STRING(), Types.LONG()), {"a": 1}, [("a", 1)]),
        (Types.TUPLE([Types.STRING(), Types.STRING()]), ("a", "b"), "ab"),
        (Types.TUPLE([Types.LONG(), Types.LONG()]), (1, 2), (1,)),
        (Types.TUPLE([Types.LONG(), Types.LONG()]), (1, 2), None),
        (resolve(Point), Point(1, "a"), Keywords(1)),
        (resolve(Point), Point(1, "a"), Point(1, 2)),
    ],
)
def test_a_row_of_another_type_is_named_with_its_position(type_info, good, bad):
    with pytest.raises(RowTypeError) as raised:
        row_writer(type_info)([good, good, bad, good])
    message = str(raised.value)
    assert message.startswith("Row 2 of a batch, ")
    assert repr(bad) in message and type_info.describe() in message


def test_rows_of_pickled_type_may_be_anything():
    rows = [None, Point(1, "a"), {"a": {1, 2}}]
    assert round_trip(resolve(None), rows) == rows
    assert pickle.loads(row_writer(resolve(None))(rows).column(0)[1].as_py()) == Point(1, "a")


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_that_were_written_are_let_go(kind: Any) -> None:
    """Workers write values for as long as a job runs."""
    data = b"x" * 1000
    before = sys.getrefcount(data)
    for _ in range(5):
        values = [kind(data), None]
        assert Types.BYTES().column_writer()(values).to_pylist() == [data, None]
    del values
    assert sys.getrefcount(data) == before
