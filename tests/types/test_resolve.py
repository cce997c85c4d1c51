"""Whatever a program calls a type becomes type information."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Optional

import pytest

from holdfast.errors import ProgramError
from holdfast.types.instant import Instant
from holdfast.types.resolve import resolve
from holdfast.types.typeinfo import Types


@dataclass
class Reading:
    sensor: str
    value: float
    tags: list[str]
    at: datetime.datetime | None = None
    level: Annotated[int, Types.SHORT()] = 0
    extra: Any = None
    derived: int = field(init=False, default=0)


@dataclass
class Node:
    value: int
    next: Optional[Node] = None  # noqa: UP045


class SparkLong:
    """Stands for a Spark DataType: recognised by its methods alone."""

    def __init__(self, value):
        self._value = value

    def simpleString(self):
        return "ignored"

    def jsonValue(self):
        return self._value


@pytest.mark.parametrize(
    ("type_like", "expected"),
    [
        (None, Types.PICKLED_BYTE_ARRAY()),
        (Types.INT(), Types.INT()),
        ("a INT", Types.ROW_NAMED(["a"], [Types.INT()])),
        (int, Types.LONG()),
        (float, Types.DOUBLE()),
        (str, Types.STRING()),
        (bytes, Types.BYTES()),
        (bool, Types.BOOLEAN()),
        (datetime.date, Types.SQL_DATE()),
        (datetime.time, Types.SQL_TIME()),
        (datetime.datetime, Types.SQL_TIMESTAMP()),
        (Decimal, Types.BIG_DEC()),
        (Instant, Types.INSTANT()),
        (list[int], Types.LIST(Types.LONG())),
        (dict[str, list[int]], Types.MAP(Types.STRING(), Types.LIST(Types.LONG()))),
        (tuple[int, str], Types.TUPLE([Types.LONG(), Types.STRING()])),
        (int | None, Types.LONG()),
        (Any, Types.PICKLED_BYTE_ARRAY()),
        (SparkLong("long"), Types.LONG()),
        (SparkLong("decimal(5,2)"), Types.DECIMAL(5, 2)),
        (
            SparkLong(
                {
                    "type": "struct",
                    "fields": [
                        {"name": "odd, name", "type": {"type": "array", "elementType": "integer"}},
                        {"name": "m", "type": {"type": "map", "keyType": "string", "valueType": "timestamp_ntz"}},
                    ],
                }
            ),
            Types.ROW_NAMED(
                ["odd, name", "m"], [Types.LIST(Types.INT()), Types.MAP(Types.STRING(), Types.SQL_TIMESTAMP())]
            ),
        ),
    ],
)
def test_resolve(type_like, expected):
    assert resolve(type_like) == expected


def test_dataclass_fields_are_those_of_its_constructor():
    resolved = resolve(Reading)
    assert resolved.get_field_names() == ["sensor", "value", "tags", "at", "level", "extra"]
    assert resolved.get_field_types()[2:] == [
        Types.LIST(Types.STRING()),
        Types.SQL_TIMESTAMP(),
        Types.SHORT(),
        Types.PICKLED_BYTE_ARRAY(),
    ]


@pytest.mark.parametrize(
    "type_like",
    [list, tuple[int, ...], int | str, set[int], 5, object(), SparkLong({"type": "udt"}), SparkLong("void")],
)
def test_unknown_types_are_refused(type_like):
    with pytest.raises(ProgramError):
        resolve(type_like)


def test_a_dataclass_inside_itself_is_refused():
    with pytest.raises(ProgramError, match="Node contains itself"):
        resolve(Node)


def test_a_local_dataclass_with_local_field_types_says_what_to_do():
    @dataclass
    class Inner:
        x: int

    @dataclass
    class Outer:
        inner: Inner

    with pytest.raises(ProgramError, match="top level of a module"):
        resolve(Outer)
