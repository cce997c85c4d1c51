"""Rows of streams as Spark's SQL sees them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from holdfast.common import Row, Types
from holdfast.errors import ProgramError
from holdfast.runtime.batch import Batch
from holdfast.runtime.query import View
from holdfast.spark.view_columns import ViewColumns
from holdfast.types.arrow import row_reader, row_writer
from holdfast.types.instant import Instant
from holdfast.types.resolve import resolve


def batch_of(rows: list[Any], row_type: Any, times: Any = None) -> Batch:
    written = row_writer(resolve(row_type))(rows)
    return Batch.of_arrow(written, row_reader(resolve(row_type))).timed(times, times)


def columns_of(row_type: Any, time: str | None = None) -> ViewColumns:
    return ViewColumns(View("v", resolve(row_type), time))


def test_every_type_that_sql_has() -> None:
    row_type = resolve(
        "b boolean, y byte, s short, i int, l long, f float, d double, t string, n binary, a date, m timestamp, "
        "z timestamp_ntz, e decimal(10,2), r array<int>, p map<string,int>, q struct<x:int,y:array<string>>"
    )
    columns = columns_of(row_type)
    assert columns.spark.simpleString() == (
        "struct<b:boolean,y:tinyint,s:smallint,i:int,l:bigint,f:float,d:double,t:string,n:binary,a:date,m:timestamp,"
        "z:timestamp_ntz,e:decimal(10,2),r:array<int>,p:map<string,int>,q:struct<x:int,y:array<string>>>"
    )
    given = Row.factory(row_type.field_names)(  # type: ignore[attr-defined]  # a row type
        [
            True, 1, 2, 3, 4, 0.5, 0.25, "text", b"bytes", date(2026, 1, 2), datetime(2026, 1, 2, 3, tzinfo=UTC),
            datetime(2026, 1, 2, 3), Decimal("1.25"), [1, None], {"k": 1}, Row(x=1, y=["a"]),
        ]
    )  # fmt: skip
    (row,) = columns.of(batch_of([given], row_type)).to_pylist()
    assert row["m"] == datetime(2026, 1, 2, 3, tzinfo=UTC)
    assert (row["e"], row["r"], row["p"], row["q"]) == (Decimal("1.25"), [1, None], [("k", 1)], {"x": 1, "y": ["a"]})


def test_values_without_fields_and_tuples_are_named_as_in_flink() -> None:
    assert columns_of(Types.LONG()).spark.names == ["f0"]
    assert columns_of(Types.TUPLE([Types.LONG(), Types.STRING()])).spark.names == ["f0", "f1"]


def test_event_time_is_the_last_column() -> None:
    columns = columns_of(Types.LONG(), "at")
    assert columns.spark.simpleString() == "struct<f0:bigint,at:timestamp>"
    rows = columns.of(batch_of([1, 2], Types.LONG(), [1_500, None])).to_pylist()
    assert rows == [{"f0": 1, "at": datetime.fromtimestamp(1.5, UTC)}, {"f0": 2, "at": None}]


def test_a_time_that_spark_cannot_hold_is_an_error() -> None:
    with pytest.raises(ProgramError, match="view 'v' is not one of Spark's"):
        columns_of(Types.LONG(), "at").of(batch_of([1], Types.LONG(), [(1 << 63) - 1]))
    instants = columns_of(Types.INSTANT())
    whole, finer = Instant(1, 5_000), Instant(1, 5_001)
    assert instants.of(batch_of([whole], Types.INSTANT())).num_rows == 1
    with pytest.raises(ProgramError, match="microseconds"):
        instants.of(batch_of([finer], Types.INSTANT()))


@pytest.mark.parametrize(
    ("row_type", "message"),
    [
        (None, "values are pickled"),
        (Types.ROW_NAMED(["a"], [Types.PICKLED_BYTE_ARRAY()]), "values are pickled"),
        (Types.ROW_NAMED(["a"], [Types.LIST(Types.BIG_DEC())]), "no numbers without limit"),
        (Types.BIG_INT(), "no numbers without limit"),
        (Types.ROW_NAMED(["a"], [Types.SQL_TIME()]), "SQL has no type for"),
    ],
)
def test_what_sql_would_take_for_something_else_is_refused(row_type: Any, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        columns_of(row_type)
