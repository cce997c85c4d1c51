"""A check is true of values that an exchange would not change, and of no others."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from holdfast.errors import RowTypeError
from holdfast.types.arrow import row_check, row_reader, row_writer
from holdfast.types.instant import Instant
from holdfast.types.resolve import resolve
from holdfast.types.row import Row, RowKind
from holdfast.types.typeinfo import TypeInformation, Types
from tests.state.canonical.distorted import distorted
from tests.state.canonical.typed_values import VALUE_TYPES
from tests.types.samples import TYPES


def exchanged(type_info: TypeInformation, rows: list[Any]) -> list[Any] | None:
    """What an exchange makes of rows; None where it refuses them."""
    try:
        return row_reader(type_info)(row_writer(type_info)(rows))
    except RowTypeError:
        return None


@given(st.data())
def test_what_a_check_says_is_so_comes_back_as_it_is(data: st.DataObject) -> None:
    type_info, values = data.draw(VALUE_TYPES)
    rows = data.draw(st.lists(distorted(values), max_size=4))
    if row_check(type_info)(rows):
        event("in form")
        assert repr(exchanged(type_info, rows)) == repr(rows)
    else:
        event("not in form")


@pytest.mark.parametrize("name", [name for name in TYPES if name != "DECIMAL"])
def test_usual_values_of_every_type_need_no_conversion(name: str) -> None:
    sample = TYPES[name]
    rows = row_reader(sample.type_info)(row_writer(sample.type_info)(list(sample.values)))
    assert row_check(sample.type_info)(rows)


@dataclass
class Point:
    x: int
    y: float


class Pair(NamedTuple):
    a: int
    b: str


NAMED = Types.ROW_NAMED(["a", "b"], [Types.LONG(), Types.STRING()])
MOMENT = dt.datetime(2024, 1, 2, 3, 4, 5)


@pytest.mark.parametrize(
    ("declared", "row", "in_form"),
    [
        (Types.LONG(), 2**63 - 1, True),
        (Types.LONG(), 2**63, False),
        (Types.LONG(), True, False),
        (Types.LONG(), 1.0, False),
        (Types.LONG(), None, True),
        (Types.BYTE(), -128, True),
        (Types.BYTE(), 128, False),
        (Types.DOUBLE(), 1, False),
        (Types.FLOAT(), 0.5, True),
        (Types.FLOAT(), 0.1, False),
        (Types.FLOAT(), 1e300, False),
        (Types.STRING(), "ü", True),
        (Types.STRING(), "\ud800", False),
        (Types.CHAR(), "ab", False),
        (Types.BYTES(), bytearray(b"a"), False),
        (Types.BIG_INT(), 2**100, True),
        (Types.BIG_INT(), 10**4100, False),
        (Types.DECIMAL(5, 2), Decimal("1.50"), True),
        (Types.DECIMAL(5, 2), Decimal("1.5"), False),
        (Types.DECIMAL(5, 2), Decimal("1000.00"), False),
        (Types.INSTANT(), Instant(1, 5), True),
        (Types.INSTANT(), Instant(1, 10**9), False),
        (Types.INSTANT(), Instant(2**40), False),
        (Types.SQL_DATE(), MOMENT, False),
        (Types.SQL_TIMESTAMP(), MOMENT, True),
        (Types.SQL_TIMESTAMP(), MOMENT.replace(tzinfo=dt.UTC), False),
        (Types.TIMESTAMP_LTZ(), MOMENT, False),
        (Types.TIMESTAMP_LTZ(), MOMENT.replace(tzinfo=dt.UTC), True),
        (Types.SQL_TIME(), dt.time(1, tzinfo=dt.UTC), False),
        (Types.LIST(Types.LONG()), (1, 2), False),
        (Types.LIST(Types.LONG()), [1, None], True),
        (Types.MAP(Types.STRING(), Types.LONG()), {"a": 1}, True),
        (Types.MAP(Types.STRING(), Types.LONG()), {"a": 1.5}, False),
        (Types.TUPLE([Types.LONG(), Types.STRING()]), (1, "a"), True),
        (Types.TUPLE([Types.LONG(), Types.STRING()]), (1, "a", 2), False),
        (Types.TUPLE([Types.LONG(), Types.STRING()]), Row(1, "a"), False),
        (Types.TUPLE([Types.LONG(), Types.STRING()]), None, False),
        (NAMED, Row(a=1, b="x"), True),
        (NAMED, Row(b="x", a=1), False),
        (NAMED, (1, "x"), False),
        (NAMED, Row(1, "x"), False),
        (NAMED, Row.of_kind(RowKind.DELETE, a=1, b="x"), False),
        (Types.ROW([Types.LONG()]), Row(f0=1), True),
        (Types.ROW([Types.LONG()]), Row(1), False),
        (Point, Point(1, 1.0), True),
        (Point, Point(1, 1), False),
        (Pair, Pair(1, "a"), True),
        (Pair, (1, "a"), False),
    ],
    ids=repr,
)
def test_what_is_in_form(declared: Any, row: Any, in_form: bool) -> None:
    assert row_check(resolve(declared))([row]) is in_form
