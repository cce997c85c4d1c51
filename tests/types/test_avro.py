"""Avro schemas as types."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from holdfast.errors import ProgramError
from holdfast.state.serializers import Compatibility, compatibility, migrate, serializer_for
from holdfast.types.resolve import resolve
from holdfast.types.row import Row
from holdfast.types.typeinfo import TypeInformation, Types


def record(*fields: Any, name: str = "Event") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


EVERY = record(
    field("flag", "boolean"),
    field("small", "int"),
    field("big", "long"),
    field("half", "float"),
    field("whole", "double"),
    field("raw", "bytes"),
    field("text", ["null", "string"]),
    field("kind", {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}),
    field("same_kind", "Kind"),
    field("hash", {"type": "fixed", "name": "Hash", "size": 4}),
    field("list", {"type": "array", "items": "int"}),
    field("map", {"type": "map", "values": ["null", "long"]}),
    field("inner", record(field("x", "int"), name="Inner")),
    field("price", {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}),
    field("day", {"type": "int", "logicalType": "date"}),
    field("time", {"type": "long", "logicalType": "time-micros"}),
    field("at", {"type": "long", "logicalType": "timestamp-millis"}),
    field("local", {"type": "long", "logicalType": "local-timestamp-micros"}),
    field("id", {"type": "string", "logicalType": "uuid"}),
)
TYPES = [
    Types.BOOLEAN(), Types.INT(), Types.LONG(), Types.FLOAT(), Types.DOUBLE(), Types.BYTES(), Types.STRING(),
    Types.STRING(), Types.STRING(), Types.BYTES(), Types.LIST(Types.INT()), Types.MAP(Types.STRING(), Types.LONG()),
    Types.ROW_NAMED(["x"], [Types.INT()]), Types.DECIMAL(10, 2), Types.SQL_DATE(), Types.SQL_TIME(),
    Types.TIMESTAMP_LTZ(), Types.SQL_TIMESTAMP(), Types.STRING(),
]  # fmt: skip


GIVEN = {"dict": EVERY, "text": json.dumps(EVERY), "parsed": fastavro.parse_schema(EVERY)}


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_a_record_is_a_row_with_names(given: Any) -> None:
    expected = Types.ROW_NAMED([one["name"] for one in EVERY["fields"]], TYPES)
    assert Types.AVRO(given) == resolve(given) == expected
    assert TypeInformation.from_json(Types.AVRO(given).to_json()) == expected


@pytest.mark.parametrize(
    ("schema", "match"),
    [
        (record(field("x", ["int", "string"])), "union"),
        (record(field("next", ["null", "Event"])), "contains itself"),
        (record(field("x", "Nowhere")), "Nowhere"),
        ({"fields": []}, "not an Avro schema"),
        ("{", "not JSON"),
    ],
)
def test_what_has_no_counterpart_is_refused(schema: Any, match: str) -> None:
    with pytest.raises(ProgramError, match=match):
        Types.AVRO(schema)


def followed(old: Any, new: Any, value: Any) -> Any:
    writer, reader = serializer_for(Types.AVRO(old)), serializer_for(Types.AVRO(new))
    stored = TypeInformation.from_json(writer.snapshot()["type"])
    return reader.decode(migrate(serializer_for(stored), reader, writer.encode(value)))


ADDED = [
    ("int", 7, 7),
    (["null", "string"], None, None),
    ("bytes", "\u00ff", b"\xff"),
    ("double", 1, 1.0),
    ({"type": "array", "items": "int"}, [1, 2], [1, 2]),
    ({"type": "map", "values": "int"}, {"a": 1}, {"a": 1}),
    (record(field("x", "int"), field("y", "int", default=2), name="Inner"), {"x": 1}, Row("x", "y")(1, 2)),
    ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, "\u0001\u0000", Decimal("2.56")),
    ({"type": "int", "logicalType": "date"}, 1, dt.date(1970, 1, 2)),
    ({"type": "int", "logicalType": "time-millis"}, 1000, dt.time(0, 0, 1)),
    ({"type": "long", "logicalType": "timestamp-millis"}, 0, dt.datetime(1970, 1, 1, tzinfo=dt.UTC)),
]


@pytest.mark.parametrize(("kind", "default", "value"), ADDED, ids=str)
def test_a_field_that_is_added_has_its_default(kind: Any, default: Any, value: Any) -> None:
    old = record(field("a", "int"))
    found = followed(old, record(field("b", kind, default=default), field("a", "long")), Row(a=1))
    assert found == Row("b", "a")(value, 1)


def test_a_field_is_found_under_its_alias() -> None:
    old, new = record(field("a", "int"), field("gone", "string")), record(field("b", "long", aliases=["a"]))
    assert followed(old, new, Row("a", "gone")(1, "x")) == Row(b=1)


def test_a_field_that_is_added_needs_a_default() -> None:
    old, new = Types.AVRO(record(field("a", "int"))), Types.AVRO(record(field("a", "int"), field("b", "int")))
    assert compatibility(serializer_for(old).snapshot(), serializer_for(new)) is Compatibility.INCOMPATIBLE
