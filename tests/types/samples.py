"""Types with values, one row for each type of the tree and more for types of types: what tests of all facets run over.

A new type is a row of TYPES. A row says what cannot be asked of the type itself: values of it, and its other names.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec

from holdfast.types.instant import Instant
from holdfast.types.resolve import resolve
from holdfast.types.row import Row
from holdfast.types.typeinfo import TupleTypeInfo, TypeInformation, Types


@dataclass
class Order:
    name: str
    amount: Decimal | None = None
    tags: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Place:
    street: str
    number: int


class Point(NamedTuple):
    x: int
    y: float = 0.5


class Visit(msgspec.Struct, frozen=True):
    page: str
    seconds: int = 7


@dataclass(frozen=True)
class TypeSample:
    """A type with values, of which the first ``keys`` can be keys, and what else it is called."""

    type_info: TypeInformation
    values: Sequence[Any]
    #: None: all of them are keys.
    keys: int | None = None
    ddl: Sequence[str] = ()
    python: Sequence[Any] = ()
    avro: Sequence[Any] = ()


_DAY, _MOMENT = dt.date(2026, 2, 28), dt.datetime(2026, 2, 28, 12, 30, 15, 123456)
_ZONED = _MOMENT.replace(tzinfo=dt.UTC)

TYPES: dict[str, TypeSample] = {
    "STRING": TypeSample(
        Types.STRING(),
        ["a", "", "äöü", "x" * 40],
        ddl=["string", "varchar(9)", "char(3)"],
        python=[str],
        avro=[{"type": "string"}, {"type": "enum", "name": "E", "symbols": ["A"]}],
    ),
    "BYTES": TypeSample(
        Types.BYTES(),
        [b"a", b"", b"\x00\xff"],
        ddl=["binary"],
        python=[bytes],
        avro=[{"type": "bytes"}, {"type": "fixed", "name": "F", "size": 2}],
    ),
    "BOOLEAN": TypeSample(Types.BOOLEAN(), [True, False], ddl=["boolean"], python=[bool], avro=[{"type": "boolean"}]),
    "BYTE": TypeSample(Types.BYTE(), [1, -128, 127], ddl=["tinyint", "byte"]),
    "SHORT": TypeSample(Types.SHORT(), [1, -(2**15), 2**15 - 1], ddl=["smallint", "short"]),
    "INT": TypeSample(Types.INT(), [1, -(2**31), 2**31 - 1], ddl=["int", "integer"], avro=[{"type": "int"}]),
    "LONG": TypeSample(
        Types.LONG(), [1, -(2**63), 2**63 - 1], ddl=["bigint", "long"], python=[int], avro=[{"type": "long"}]
    ),
    "FLOAT": TypeSample(
        Types.FLOAT(), [0.5, -0.0, float("inf"), 1.25], ddl=["float", "real"], avro=[{"type": "float"}]
    ),
    "DOUBLE": TypeSample(
        Types.DOUBLE(), [0.5, -0.0, 0.1, 1e300], ddl=["double"], python=[float], avro=[{"type": "double"}]
    ),
    "CHAR": TypeSample(Types.CHAR(), ["a", "ß"]),
    "BIG_INT": TypeSample(Types.BIG_INT(), [1, -(10**40), 0]),
    "BIG_DEC": TypeSample(Types.BIG_DEC(), [Decimal("1.10"), Decimal("1E+3"), Decimal(0)], python=[Decimal]),
    "DECIMAL": TypeSample(
        Types.DECIMAL(10, 2),
        [Decimal("1.10"), Decimal("-99999999.99"), Decimal("0.1")],
        ddl=["decimal(10,2)", "dec(10, 2)", "numeric(10,2)"],
        avro=[{"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}],
    ),
    "DECIMAL of 38": TypeSample(Types.DECIMAL(38, 5), [Decimal("1.10"), Decimal("-12345678901234567890.5")]),
    "INSTANT": TypeSample(Types.INSTANT(), [Instant(5, 7), Instant(-5, 999_999_999)], python=[Instant]),
    "SQL_DATE": TypeSample(
        Types.SQL_DATE(),
        [_DAY, dt.date(1, 1, 1)],
        ddl=["date"],
        python=[dt.date],
        avro=[{"type": "int", "logicalType": "date"}],
    ),
    "SQL_TIME": TypeSample(
        Types.SQL_TIME(),
        [dt.time(1, 2, 3, 4), dt.time(0)],
        python=[dt.time],
        avro=[{"type": "int", "logicalType": "time-millis"}, {"type": "long", "logicalType": "time-micros"}],
    ),
    "SQL_TIMESTAMP": TypeSample(
        Types.SQL_TIMESTAMP(),
        [_MOMENT, dt.datetime(1969, 1, 1)],
        ddl=["timestamp_ntz"],
        python=[dt.datetime],
        avro=[
            {"type": "long", "logicalType": "local-timestamp-millis"},
            {"type": "long", "logicalType": "local-timestamp-micros"},
        ],
    ),
    "TIMESTAMP_LTZ": TypeSample(
        Types.TIMESTAMP_LTZ(),
        [_ZONED, dt.datetime(1969, 1, 1, tzinfo=dt.UTC)],
        ddl=["timestamp", "timestamp_ltz"],
        avro=[
            {"type": "long", "logicalType": "timestamp-millis"},
            {"type": "long", "logicalType": "timestamp-micros"},
        ],
    ),
    "PICKLED": TypeSample(
        Types.PICKLED_BYTE_ARRAY(), [1, "a", (1, "a"), [1, 2], {"k": 1}], keys=3, python=[None, object, Any]
    ),
    "LIST": TypeSample(
        Types.LIST(Types.LONG()),
        [[1, None, 2], []],
        ddl=["array<bigint>"],
        python=[list[int]],
        avro=[{"type": "array", "items": "long"}],
    ),
    "PRIMITIVE_ARRAY": TypeSample(Types.PRIMITIVE_ARRAY(Types.DOUBLE()), [[0.5, 1.5], []]),
    "BASIC_ARRAY": TypeSample(Types.BASIC_ARRAY(Types.STRING()), [["a", None], []]),
    "OBJECT_ARRAY": TypeSample(Types.OBJECT_ARRAY(Types.SQL_DATE()), [[_DAY, None], []]),
    "MAP": TypeSample(
        Types.MAP(Types.STRING(), Types.LONG()),
        [{"a": 1, "b": None}, {}],
        keys=0,
        ddl=["map<string,bigint>"],
        python=[dict[str, int]],
        avro=[{"type": "map", "values": "long"}],
    ),
    "MAP of dates": TypeSample(Types.MAP(Types.SQL_DATE(), Types.DECIMAL(5, 1)), [{_DAY: Decimal("1.5")}, {}], keys=0),
    "TUPLE": TypeSample(
        Types.TUPLE([Types.LONG(), Types.STRING()]), [(1, "a"), (None, None)], python=[tuple[int, str]]
    ),
    "TUPLE of bytes": TypeSample(Types.TUPLE([Types.BYTES(), Types.DOUBLE()]), [(b"a", 0.5), (None, -0.0)]),
    "TUPLE with names": TypeSample(
        TupleTypeInfo([Types.INT(), Types.TIMESTAMP_LTZ()], ["number", "at"]), [(1, _ZONED), (None, None)]
    ),
    "ROW": TypeSample(Types.ROW([Types.INT(), Types.CHAR()]), [Row(f0=1, f1="a"), Row(f0=None, f1=None)]),
    "ROW_NAMED": TypeSample(
        Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()]),
        [Row(a=1, b="x"), Row(a=None, b="y")],
        ddl=["a INT, b STRING", "struct<a:int,b:string>"],
        avro=[
            {
                "type": "record",
                "name": "R",
                "fields": [{"name": "a", "type": ["null", "int"], "default": None}, {"name": "b", "type": "string"}],
            }
        ],
    ),
    "DATACLASS": TypeSample(resolve(Order), [Order("a", Decimal("1.5"), ["x"]), Order("b")], python=[Order]),
    "DATACLASS frozen": TypeSample(resolve(Place), [Place("a", 1), Place("b", -1)], python=[Place]),
    "NAMED_TUPLE": TypeSample(resolve(Point), [Point(1, 2.5), Point(-1)], python=[Point]),
    "STRUCT": TypeSample(resolve(Visit), [Visit("a", 1), Visit("b")], python=[Visit]),
    "nested": TypeSample(
        Types.MAP(
            Types.TUPLE([Types.LONG(), Types.CHAR()]),
            Types.LIST(Types.ROW_NAMED(["at", "place"], [Types.INSTANT(), resolve(Place)])),
        ),
        [{(1, "a"): [Row(at=Instant(1, 2), place=Place("s", 3)), None]}, {}],
        keys=0,
    ),
    "LIST of tuples": TypeSample(
        Types.LIST(Types.TUPLE([Types.BIG_INT(), Types.BIG_DEC(), Types.SQL_TIME()])),
        [[(10**20, Decimal("1.50"), dt.time(1)), None], []],
    ),
    "TUPLE of pickled": TypeSample(Types.TUPLE([Types.PICKLED_BYTE_ARRAY(), Types.LONG()]), [(5, 1), ("a", None)]),
}
