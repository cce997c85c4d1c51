"""Dataclasses, NamedTuples and msgspec structs as declared types: the same in all places where types are used."""

from __future__ import annotations

import collections
import pickle
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pytest

from holdfast.errors import ProgramError, StateTypeError
from holdfast.state.keys import KeyCodec
from holdfast.state.serializers import old_values, serializer_for
from holdfast.types.arrow import row_reader, row_writer
from holdfast.types.resolve import resolve
from holdfast.types.row import Row
from holdfast.types.typeinfo import ClassTypeInfo, TypeInformation, Types


@dataclass
class Data:
    a: int
    b: str | None = None
    tags: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class KeywordsOnly:
    a: int
    b: str | None = field(default=None, kw_only=True)


class Named(NamedTuple):
    a: int
    b: str | None = None


class Struct(msgspec.Struct):
    a: int
    b: str | None = None
    tags: list[int] = []


class FrozenStruct(msgspec.Struct, frozen=True, kw_only=True):
    b: str | None = None
    a: int


VALUES = [Data(1, "x", [2]), Data(1), KeywordsOnly(1, b="x"), Named(1, "x"), Named(1), Struct(1, "x", [2]), Struct(1)]
VALUES.append(FrozenStruct(a=1, b="x"))


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_come_back_from_state_and_from_arrow(value: Any) -> None:
    declared = resolve(type(value))
    assert isinstance(declared, ClassTypeInfo)
    serializer = serializer_for(declared)
    found = serializer.decode(serializer.encode(value))
    assert found == value and type(found) is type(value)
    (again,) = row_reader(declared)(row_writer(declared)([value]))
    assert again == value and type(again) is type(value)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_types_have_a_stored_form(value: Any) -> None:
    declared = resolve(type(value))
    read = TypeInformation.from_json(declared.to_json())
    assert read == declared and isinstance(read, ClassTypeInfo) and read.cls is type(value)
    assert pickle.loads(pickle.dumps(declared)) == declared


@pytest.mark.parametrize("key", [KeywordsOnly(1, b="x"), Named(1, "x"), FrozenStruct(a=1, b="x")], ids=repr)
def test_keys_are_hashed_as_the_struct_that_they_are_in_arrow(key: Any) -> None:
    codec = KeyCodec.for_type(resolve(type(key)))
    assert codec.decode(codec.encode(key)) == key
    values = dict(zip(codec.type_info.field_names, codec.identity(key), strict=True))  # type: ignore[attr-defined, call-overload]  # a composite
    column = pa.array([values], codec.type_info.arrow_type())
    assert codec.hash(key) == codec.hash_array(column)[0]


def test_what_can_be_changed_in_place_is_known() -> None:
    immutable = {cls: resolve(cls).immutable for cls in (Data, KeywordsOnly, Named, Struct, FrozenStruct)}
    assert immutable == {Data: False, KeywordsOnly: True, Named: True, Struct: False, FrozenStruct: True}


class Outer(NamedTuple):
    inner: Struct
    more: list[Named]


def test_a_class_inside_of_a_class() -> None:
    serializer = serializer_for(resolve(Outer))
    assert serializer.decode(serializer.encode(Outer(Struct(1), [Named(2)]))) == Outer(Struct(1), [Named(2)])


def test_a_value_of_another_class_is_refused() -> None:
    with pytest.raises(StateTypeError, match="Named"):
        serializer_for(resolve(Named)).encode((1, "x"))
    with pytest.raises(StateTypeError, match="Struct"):
        serializer_for(resolve(Struct)).encode(Data(1))


def test_fields_without_types_are_refused() -> None:
    with pytest.raises(ProgramError, match="no types"):
        resolve(collections.namedtuple("Bare", ["a"]))


def test_a_named_tuple_is_a_tuple_where_a_tuple_is_declared() -> None:
    serializer = serializer_for(Types.TUPLE([Types.LONG(), Types.STRING()]))
    assert serializer.decode(serializer.encode(Named(1, "x"))) == (1, "x")


def test_stored_values_can_be_read_without_the_class() -> None:
    serializer = serializer_for(resolve(Struct))
    row = old_values(serializer.snapshot()).decode(serializer.encode(Struct(1, "x", [2])))
    assert row == Row("a", "b", "tags")(1, "x", [2])
