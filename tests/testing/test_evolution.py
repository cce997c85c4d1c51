"""Declared types that evolve over a restore, in every kind of state, backend and form."""

from __future__ import annotations

import re
from dataclasses import dataclass, make_dataclass
from typing import Any, NamedTuple

import msgspec
import pytest

from holdfast.common import Row, Types
from holdfast.testing import KeyedOperatorHarness
from tests.testing.migrating import (
    FORMS,
    FULL,
    KEYS,
    STORED,
    Everything,
    Version,
    check,
    expected,
    first,
    reads,
    refused,
    stored,
)


def row_version(names: str, read: str) -> Version:
    types = [Types.INT() if name == "n" else Types.STRING() for name in names]

    def make(number: int) -> Row:
        return Row(**{name: number if name == "n" else f"{name}{number}" for name in names})

    return Version(value=Types.ROW_NAMED(list(names), types), make=make, read=lambda row: row[read])


def only_number(found: dict[int, float]) -> int:
    (number,) = found.values()
    return int(number)


EVOLUTIONS = {
    "int to long": (Version(), Version(value=Types.LONG(), map_key=Types.LONG())),
    "fields added, removed, reordered": (row_version("an", "n"), row_version("nb", "n")),
    "in lists": (
        Version(value=Types.LIST(Types.INT()), make=lambda n: [n], read=lambda found: found[0]),
        Version(value=Types.LIST(Types.LONG()), make=lambda n: [n], read=lambda found: found[0]),
    ),
    "in maps": (
        Version(value=Types.MAP(Types.INT(), Types.FLOAT()), make=lambda n: {n: n}, read=only_number),
        Version(value=Types.MAP(Types.LONG(), Types.DOUBLE()), make=lambda n: {n: n}, read=only_number),
    ),
    "rows as map keys": (
        Version(map_key="a INT, b STRING", make_map_key=lambda n: Row(a=n, b="x"), read_map_key=lambda key: key.a),
        Version(
            map_key="c STRING, b STRING, a BIGINT",
            make_map_key=lambda n: Row(a=n, b="x", c=None),
            read_map_key=lambda key: key.a,
        ),
    ),
}


@pytest.mark.parametrize(("backend", "form"), STORED)
@pytest.mark.parametrize("change", EVOLUTIONS)
def test_declared_types_evolve(change: str, backend: str, form: str) -> None:
    old, new = EVOLUTIONS[change]
    check(stored(old, backend, form), new, backend)


REFUSALS = {
    "narrower": (Version(value=Types.LONG()), Version(value=Types.INT()), "LONG", "INT"),
    "another type": (Version(), Version(value=Types.STRING(), make=str, read=int), "INT", "STRING"),
    "a map key without a field": (
        Version(map_key="a INT, b STRING", make_map_key=lambda n: Row(a=n, b="x"), read_map_key=lambda key: key.a),
        Version(map_key="a INT", make_map_key=lambda n: Row(a=n), read_map_key=lambda key: key.a),
        "ROW<a: INT, b: STRING>",
        "ROW<a: INT>",
    ),
}


@pytest.mark.parametrize("change", REFUSALS)
def test_other_types_are_refused_with_both_of_them(change: str) -> None:
    old, new, was, now = REFUSALS[change]
    refused(stored(old, "heap", FULL), new, f"(?=.*{re.escape(was)})(?=.*{re.escape(now)})")


# -- classes


class Named(NamedTuple):
    n: int
    label: str = "none"


class NamedWithoutLabel(NamedTuple):
    n: int


class Struct(msgspec.Struct):
    n: int
    label: str = "none"


@dataclass
class Data:
    n: int
    label: str = "none"


def class_version(cls: Any) -> Version:
    return Version(value=cls, make=lambda n: cls(n), read=lambda found: found.n)


def before(cls: Any) -> Any:
    """The class as it was before it had a label."""
    if cls is Named:
        return type("Named", (NamedWithoutLabel,), {"__module__": __name__, "__qualname__": "Named"})
    if cls is Struct:
        return msgspec.defstruct("Struct", [("n", int)], module=__name__)
    return make_dataclass("Data", [("n", int)], namespace={"__module__": __name__})


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("cls", [Named, Struct, Data], ids=lambda cls: cls.__name__)
def test_a_field_with_a_default_is_added_to_a_class(cls: Any, form: str) -> None:
    snapshot = stored(class_version(before(cls)), "rocksdb", form)
    new = class_version(cls)
    with KeyedOperatorHarness.restore(snapshot, Everything(new), first, Types.LONG(), backend="rocksdb") as harness:
        assert harness.state(new.descriptors()["value"], 3) == cls(23, "none")
        assert reads(harness) == {key: expected(key) for key in KEYS}


def test_an_avro_schema_follows_its_defaults() -> None:
    def schema(*fields: Any) -> Version:
        record = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}, *fields]}
        return Version(value=Types.AVRO(record), make=lambda n: (n, *["x"] * len(fields)), read=lambda row: row[0])

    snapshot = stored(schema(), "lmdb", FULL)
    new = schema({"name": "label", "type": "string", "default": "none"})
    with KeyedOperatorHarness.restore(snapshot, Everything(new), first, Types.LONG(), backend="lmdb") as harness:
        assert harness.state(new.descriptors()["value"], 3) == Row("n", "label")(23, "none")


