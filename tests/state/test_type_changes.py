from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field, make_dataclass
from typing import Annotated, Any

import pytest

from holdfast.errors import StateMigrationError
from holdfast.state.serializers import Compatibility, compatibility, migrate, serializer_for, serializer_from_snapshot
from holdfast.types.resolve import resolve
from holdfast.types.row import Row
from holdfast.types.typeinfo import TypeInformation, Types

BYTE, SHORT, INT, LONG = Types.BYTE(), Types.SHORT(), Types.INT(), Types.LONG()
FLOAT, DOUBLE, STRING = Types.FLOAT(), Types.DOUBLE(), Types.STRING()


def named(**fields: TypeInformation) -> TypeInformation:
    return Types.ROW_NAMED(list(fields), list(fields.values()))


def version(*fields: Any, name: str = "Event") -> TypeInformation:
    """A dataclass as it was in some version of a program."""
    return resolve(make_dataclass(name, fields))


MIGRATIONS: list[tuple[TypeInformation, TypeInformation, Any, Any]] = [
    (BYTE, SHORT, -5, -5),
    (BYTE, LONG, 5, 5),
    (SHORT, INT, 5, 5),
    (INT, LONG, 2**31 - 1, 2**31 - 1),
    (FLOAT, DOUBLE, 0.5, 0.5),
    (Types.TUPLE([INT, STRING]), Types.TUPLE([LONG, STRING]), (1, "a"), (1, "a")),
    (Types.TUPLE([INT, STRING]), Types.TUPLE([LONG, STRING]), (None, None), (None, None)),
    (Types.ROW([INT]), Types.ROW([LONG]), Row(1), Row(f0=1)),
    (Types.LIST(INT), Types.LIST(LONG), [1, None], [1, None]),
    (Types.MAP(INT, FLOAT), Types.MAP(LONG, DOUBLE), {1: 0.5, 2: None}, {1: 0.5, 2: None}),
    (Types.MAP(Types.TUPLE([INT]), INT), Types.MAP(Types.TUPLE([LONG]), LONG), {(1,): 2}, {(1,): 2}),
    (named(a=INT, b=STRING), named(b=STRING, c=DOUBLE, a=LONG), Row(a=1, b="x"), Row("b", "c", "a")("x", None, 1)),
    (named(a=INT, b=STRING), named(b=STRING), Row(a=1, b="x"), Row(b="x")),
    (Types.LIST(named(a=INT)), Types.LIST(named(a=INT, b=INT)), [Row(a=1), None], [Row(a=1, b=None), None]),
    (named(a=INT, r=named(x=INT)), named(a=INT, r=named(x=LONG)), Row(a=1, r=Row(x=2)), Row(a=1, r=Row(x=2))),
]


@pytest.mark.parametrize(("old", "new", "value", "expected"), MIGRATIONS, ids=str)
def test_stored_values_follow_their_type(old: TypeInformation, new: TypeInformation, value: Any, expected: Any) -> None:
    writer, reader = serializer_for(old), serializer_for(new)
    assert compatibility(writer.snapshot(), reader) is Compatibility.AFTER_MIGRATION
    assert reader.decode(migrate(serializer_from_snapshot(writer.snapshot()), reader, writer.encode(value))) == expected


INCOMPATIBLE = [
    (LONG, INT),
    (DOUBLE, FLOAT),
    (INT, DOUBLE),
    (INT, STRING),
    (Types.BOOLEAN(), INT),
    (Types.DECIMAL(10, 2), Types.DECIMAL(10, 3)),
    (Types.TUPLE([INT]), Types.TUPLE([INT, INT])),
    (Types.TUPLE([INT, STRING]), Types.TUPLE([STRING, INT])),
    (Types.TUPLE([INT]), Types.ROW([INT])),
    (Types.ROW([INT]), named(f0=INT)),
    (Types.ROW([INT]), Types.ROW([INT, INT])),
    (named(a=INT), named(a=STRING)),
    (named(a=INT), named(b=INT)),
    (Types.LIST(LONG), Types.LIST(INT)),
    (Types.LIST(INT), Types.BASIC_ARRAY(INT)),
    (Types.MAP(STRING, LONG), Types.MAP(STRING, INT)),
    (Types.MAP(STRING, LONG), Types.MAP(LONG, LONG)),
    (LONG, Types.PICKLED_BYTE_ARRAY()),
    (Types.PICKLED_BYTE_ARRAY(), LONG),
    (version(("a", int)), version(("a", str))),
    (version(("a", int)), version(("a", int), ("b", int))),
    (version(("a", int)), version(("a", int), name="Other")),
    (version(("a", int)), named(a=LONG)),
]


@pytest.mark.parametrize(("old", "new"), INCOMPATIBLE, ids=str)
def test_other_changes_are_refused_and_both_types_named(old: TypeInformation, new: TypeInformation) -> None:
    writer, reader = serializer_for(old), serializer_for(new)
    assert compatibility(writer.snapshot(), reader) is Compatibility.INCOMPATIBLE
    with pytest.raises(StateMigrationError) as caught:
        migrate(writer, reader, b"")
    assert old.describe() in str(caught.value)
    assert new.describe() in str(caught.value)


@pytest.mark.parametrize("type_info", [pair[0] for pair in INCOMPATIBLE], ids=str)
def test_the_same_type_is_read_as_it_is(type_info: TypeInformation) -> None:
    writer = serializer_for(type_info)
    again = serializer_for(TypeInformation.from_json(type_info.to_json()))
    assert compatibility(writer.snapshot(), again) is Compatibility.AS_IS
    assert migrate(writer, again, b"any") == b"any"


@dataclass
class Event:
    """The newest version; older ones are made by ``old_event``."""

    count: int
    tags: list[str] = field(default_factory=lambda: ["new"])
    day: dt.date = dt.date(2024, 1, 1)
    note: str | None = None
    parent: int | None = field(kw_only=True)


def old_event(*fields: Any) -> type:
    """Event as it was in an older version of the program."""
    return make_dataclass("Event", fields, namespace={"__module__": Event.__module__})


def test_fields_of_a_dataclass_come_and_go() -> None:
    before = old_event(("gone", str), ("count", Annotated[int, "int"]))
    writer, now = serializer_for(resolve(before)), serializer_for(resolve(Event))
    assert compatibility(writer.snapshot(), now) is Compatibility.AFTER_MIGRATION
    data = writer.encode(before("x", 7))
    old = serializer_from_snapshot(writer.snapshot())
    first, second = (now.decode(migrate(old, now, data)) for _ in range(2))
    assert first == Event(7, ["new"], dt.date(2024, 1, 1), None, parent=None)
    assert first.tags is not second.tags


def test_reordered_fields_of_a_dataclass_keep_their_values() -> None:
    before, after = old_event(("a", int), ("b", int)), old_event(("b", int), ("a", int))
    writer, now = serializer_for(resolve(before)), serializer_for(resolve(after))
    assert compatibility(writer.snapshot(), now) is Compatibility.AFTER_MIGRATION
    assert now.decode(migrate(writer, now, writer.encode(before(a=1, b=2)))) == after(a=1, b=2)


def test_a_field_without_default_that_may_not_be_none_cannot_be_added() -> None:
    before = serializer_for(resolve(old_event(("note", str))))
    assert compatibility(before.snapshot(), serializer_for(resolve(Event))) is Compatibility.INCOMPATIBLE
