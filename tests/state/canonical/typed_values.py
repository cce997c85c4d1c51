"""Types with strategies of their values: everything that a state may be declared with, and its awkward values."""

from __future__ import annotations

import datetime as dt
import math
import struct
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from holdfast.types.instant import Instant
from holdfast.types.resolve import resolve
from holdfast.types.row import Row
from holdfast.types.typeinfo import TypeInformation, Types

Typed = tuple[TypeInformation, st.SearchStrategy[Any]]


@dataclass
class Order:
    name: str
    amount: Decimal | None
    tags: list[str]


@dataclass(frozen=True)
class Place:
    street: str
    number: int


_INTEGERS = {Types.BYTE(): 8, Types.SHORT(): 16, Types.INT(): 32, Types.LONG(): 64}
_NAN = struct.unpack(">d", b"\x7f\xf8\x00\x00\x00\x00\x00\x00")[0]
_FLOATS = st.one_of(st.floats(allow_nan=False), st.sampled_from([_NAN, -0.0, 0.0, math.inf, 0.1]))
_ZONES = st.sampled_from([dt.UTC, dt.timezone(dt.timedelta(hours=5))])
#: A day away from both ends, so that no zone leads out of them.
_AWARE = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30), timezones=_ZONES)
_INSTANTS = st.builds(Instant, st.integers(-(2**62), 2**62), st.integers(0, 999_999_999))

SCALARS: dict[TypeInformation, st.SearchStrategy[Any]] = {
    **{t: st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for t, bits in _INTEGERS.items()},
    Types.STRING(): st.text(st.characters(exclude_categories=["Cs"])),
    Types.BYTES(): st.binary(),
    Types.BOOLEAN(): st.booleans(),
    Types.FLOAT(): _FLOATS,
    Types.DOUBLE(): _FLOATS,
    Types.CHAR(): st.characters(exclude_categories=["Cs"]),
    Types.BIG_INT(): st.one_of(st.integers(), st.sampled_from([10**4000, -(10**4000), 0])),
    Types.BIG_DEC(): st.decimals(),
    Types.DECIMAL(20, 3): st.one_of(
        st.decimals(-(10**9), 10**9, places=3),
        st.sampled_from([Decimal("1.0"), Decimal("1E+2"), Decimal("-0"), Decimal("0.00")]),
    ),
    Types.INSTANT(): _INSTANTS,
    Types.SQL_DATE(): st.dates(),
    Types.SQL_TIME(): st.times(),
    Types.SQL_TIMESTAMP(): st.datetimes(),
    Types.TIMESTAMP_LTZ(): _AWARE,
    Types.PICKLED_BYTE_ARRAY(): st.one_of(st.integers(), st.text(), st.tuples(st.integers(), st.none()), st.binary()),
}
_FINITE = st.decimals(allow_nan=False, allow_infinity=False)
_ORDERS: Typed = (
    resolve(Order),
    st.builds(Order, st.text("abc"), st.none() | _FINITE, st.lists(st.text("x"))),
)


def _row(parts: list[Typed]) -> Typed:
    row = Types.ROW([one for one, _ in parts])
    return row, st.tuples(*(st.none() | values for _, values in parts)).map(row.maker())


def _nested(children: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    """One level deeper. Fields and elements may be None."""
    many = st.lists(children, min_size=1, max_size=3)

    def fields(parts: list[Typed]) -> st.SearchStrategy[tuple[Any, ...]]:
        return st.tuples(*(st.none() | values for _, values in parts))

    def named(parts: list[Typed]) -> Typed:
        names = [f"field {number}" for number in range(len(parts))]
        row = Row.factory(names)
        return Types.ROW_NAMED(names, [one for one, _ in parts]), fields(parts).map(row)

    keys = st.sampled_from([Types.STRING(), Types.LONG(), Types.SQL_DATE()])
    return st.one_of(
        children.map(lambda c: (Types.LIST(c[0]), st.lists(st.none() | c[1], max_size=3))),
        st.tuples(keys, children).map(
            lambda pair: (
                Types.MAP(pair[0], pair[1][0]),
                st.dictionaries(SCALARS[pair[0]], st.none() | pair[1][1], max_size=3),
            )
        ),
        many.map(lambda parts: (Types.TUPLE([one for one, _ in parts]), fields(parts))),
        many.map(_row),
        many.map(named),
    )


#: Types of values, each with a strategy of values that are not None.
VALUE_TYPES: st.SearchStrategy[Typed] = st.recursive(
    st.one_of(st.sampled_from(list(SCALARS.items())), st.just(_ORDERS)), _nested, max_leaves=4
)

#: Keys are hashed by their microseconds, which have 64 bits.
_KEY_INSTANTS = st.builds(Instant, st.integers(-(2**43), 2**43 - 1), st.integers(0, 999_999_999))
_KEY_SCALARS = {
    **SCALARS,
    Types.BIG_DEC(): _FINITE,
    Types.FLOAT(): st.floats(width=32),
    Types.INSTANT(): _KEY_INSTANTS,
}
_KEY_SCALARS[Types.PICKLED_BYTE_ARRAY()] = st.one_of(
    st.integers(), st.text("abc"), st.binary(), st.booleans(), _FLOATS, _FINITE, st.dates(), st.tuples(st.integers())
)


def _nested_keys(children: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    many = st.lists(children, min_size=1, max_size=3)

    def fields(parts: list[Typed]) -> st.SearchStrategy[tuple[Any, ...]]:
        return st.tuples(*(st.none() | values for _, values in parts))

    return st.one_of(
        children.map(lambda c: (Types.LIST(c[0]), st.lists(st.none() | c[1], max_size=3))),
        many.map(lambda parts: (Types.TUPLE([one for one, _ in parts]), fields(parts))),
        many.map(_row),
    )


#: Types of keys, each with a strategy of keys.
KEY_TYPES: st.SearchStrategy[Typed] = st.recursive(
    st.one_of(
        st.sampled_from(list(_KEY_SCALARS.items())),
        st.just((resolve(Place), st.builds(Place, st.text("abc"), st.integers(-5, 5)))),
    ),
    _nested_keys,
    max_leaves=4,
)
