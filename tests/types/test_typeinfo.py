"""Type information is a value with a stored form."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass

import pytest

from holdfast.errors import ProgramError
from holdfast.types.resolve import resolve
from holdfast.types.typeinfo import DataclassTypeInfo, TypeInformation, Types


@dataclass(frozen=True)
class Frozen:
    a: int
    b: str


@dataclass
class Mutable:
    a: int


LONG, STRING = Types.LONG(), Types.STRING()

#: Every kind of type with its text and its stored form. These forms are in savepoints: a change here breaks them.
STORED = [
    (LONG, "LONG", {"kind": "basic", "name": "LONG"}),
    (Types.BYTES(), "BYTES", {"kind": "basic", "name": "BYTES"}),
    (Types.DECIMAL(10, 2), "DECIMAL(10, 2)", {"kind": "decimal", "precision": 10, "scale": 2}),
    (Types.PICKLED_BYTE_ARRAY(), "PICKLED_BYTE_ARRAY", {"kind": "pickled"}),
    (Types.LIST(LONG), "LIST<LONG>", {"kind": "list", "element": LONG.to_json()}),
    (Types.BASIC_ARRAY(LONG), "BASIC_ARRAY<LONG>", {"kind": "basic_array", "element": LONG.to_json()}),
    (Types.OBJECT_ARRAY(LONG), "OBJECT_ARRAY<LONG>", {"kind": "object_array", "element": LONG.to_json()}),
    (Types.PRIMITIVE_ARRAY(LONG), "PRIMITIVE_ARRAY<LONG>", {"kind": "primitive_array", "element": LONG.to_json()}),
    (Types.MAP(STRING, LONG), "MAP<STRING, LONG>", {"kind": "map", "key": STRING.to_json(), "value": LONG.to_json()}),
    (
        Types.TUPLE([LONG, STRING]),
        "TUPLE<LONG, STRING>",
        {"kind": "tuple", "fields": [["f0", LONG.to_json()], ["f1", STRING.to_json()]]},
    ),
    (
        Types.ROW([LONG]),
        "ROW<LONG>",
        {"kind": "row", "fields": [["f0", LONG.to_json()]], "named": False},
    ),
    (
        Types.ROW_NAMED(["a"], [LONG]),
        "ROW<a: LONG>",
        {"kind": "row", "fields": [["a", LONG.to_json()]], "named": True},
    ),
    (
        resolve(Mutable),
        f"DATACLASS {__name__}:Mutable<a: LONG>",
        {"kind": "dataclass", "fields": [["a", LONG.to_json()]], "class": f"{__name__}:Mutable"},
    ),
]


@pytest.mark.parametrize(("type_info", "text", "stored"), STORED, ids=[text for _, text, _ in STORED])
def test_text_and_stored_form_are_stable(type_info, text, stored):
    assert type_info.describe() == text
    assert type_info.to_json() == stored
    assert TypeInformation.from_json(json.loads(json.dumps(stored))) == type_info


@pytest.mark.parametrize("type_info", [entry[0] for entry in STORED], ids=str)
def test_types_are_values(type_info):
    assert pickle.loads(pickle.dumps(type_info)) == type_info
    assert hash(pickle.loads(pickle.dumps(type_info))) == hash(type_info)
    assert [other for other, _, _ in STORED if other == type_info] == [type_info]


def test_every_factory_of_pyflink_exists():
    names = ["STRING", "BYTE", "BOOLEAN", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE", "CHAR", "BIG_INT", "BIG_DEC"]
    names += ["INSTANT", "SQL_DATE", "SQL_TIME", "SQL_TIMESTAMP", "PICKLED_BYTE_ARRAY"]
    types = [getattr(Types, name)() for name in names]
    assert [type_info.describe() for type_info in types] == names


def test_a_primitive_array_of_bytes_is_bytes():
    assert Types.PRIMITIVE_ARRAY(Types.BYTE()) == Types.BYTES()


@pytest.mark.parametrize(
    ("type_info", "immutable"),
    [
        (LONG, True),
        (Types.DECIMAL(5, 2), True),
        (Types.TUPLE([LONG, STRING]), True),
        (Types.TUPLE([LONG, Types.LIST(LONG)]), False),
        (Types.ROW([LONG]), False),
        (Types.MAP(LONG, LONG), False),
        (Types.PICKLED_BYTE_ARRAY(), False),
        (resolve(Frozen), True),
        (resolve(Mutable), False),
    ],
    ids=str,
)
def test_immutable(type_info, immutable):
    assert type_info.immutable is immutable


def test_a_dataclass_that_is_gone_can_be_described_and_not_instantiated():
    stored = {**resolve(Frozen).to_json(), "class": "no.such.module:Frozen"}
    gone = TypeInformation.from_json(stored)
    assert isinstance(gone, DataclassTypeInfo)
    assert gone.describe() == "DATACLASS no.such.module:Frozen<a: LONG, b: STRING>"
    assert not gone.immutable
    with pytest.raises(ProgramError, match=r"no\.such\.module:Frozen is in no module that this process has imported"):
        gone.require_class()


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Types.ROW_NAMED(["a"], [LONG, LONG]), "1 field names .* for 2 field types"),
        (lambda: Types.ROW_NAMED(["a", "a"], [LONG, LONG]), "field name twice"),
        (lambda: Types.TUPLE([]), "at least one field"),
        (lambda: Types.LIST(int), "expected TypeInformation such as Types.LONG"),
        (lambda: Types.DECIMAL(5, 6), "scale 0 to precision"),
        (lambda: TypeInformation.from_json({"kind": "new"}), "Unknown kind of type 'new'"),
    ],
)
def test_impossible_types_are_refused(make, problem):
    with pytest.raises(ProgramError, match=problem):
        make()
