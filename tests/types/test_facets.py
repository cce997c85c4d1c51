"""All that a type says of itself, for every type: a type that leaves something out, or says it wrongly, fails here."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from holdfast.datastream.key_selection import key_by_of
from holdfast.errors import ProgramError, RowTypeError, StateTypeError
from holdfast.runtime.batch import Batch
from holdfast.runtime.partitioners import KeyGroupHash, KeyReader
from holdfast.runtime.yielded import copied
from holdfast.state.canonical.schema import ValueFields
from holdfast.state.canonical.stored_columns import value_column
from holdfast.state.cells import Cells
from holdfast.state.keys import KeyCodec
from holdfast.state.serializers import Compatibility, compatibility, migrate, serializer_for
from holdfast.types.arrow import row_reader, row_writer
from holdfast.types.avro import avro_type
from holdfast.types.information import BasicType, BasicTypeInfo, TypeInformation
from holdfast.types.registry import registered_types
from holdfast.types.resolve import resolve
from holdfast.types.row import Row
from holdfast.types.type_changes import keeps_hash, key_change, loses_nothing
from holdfast.types.typeinfo import Types
from tests.types.samples import TYPES, TypeSample
from tests.types.test_third_party_types import ACME_TYPES

ALL = TYPES | ACME_TYPES
each_type = pytest.mark.parametrize("sample", ALL.values(), ids=ALL.keys())


class Foreign:
    """An object of no type's class, which cannot be pickled."""

    def __reduce__(self) -> Any:
        raise TypeError("not to be pickled")


def keys_of(sample: TypeSample) -> list[Any]:
    return list(sample.values if sample.keys is None else sample.values[: sample.keys])


def column_of(type_info: TypeInformation, values: Sequence[Any]) -> pa.Array:
    return type_info.column_writer()(values)


def test_every_type_has_a_row() -> None:
    with_row = {sample.type_info.kind for sample in TYPES.values()}
    assert with_row == {cls.kind for cls in registered_types() if cls.__module__.startswith("holdfast.")}
    assert {BasicTypeInfo(basic) for basic in BasicType} <= {sample.type_info for sample in TYPES.values()}
    assert all(sample.values for sample in ALL.values())


@each_type
def test_it_is_a_value(sample: TypeSample) -> None:
    type_info = sample.type_info
    again = TypeInformation.from_json(type_info.to_json())
    assert again == type_info
    assert hash(again) == hash(type_info)
    assert pickle.loads(pickle.dumps(type_info)) == type_info
    assert str(type_info) == repr(type_info) != "" != type_info.describe()
    assert [other.type_info for other in ALL.values()].count(type_info) == 1
    assert type_info.pickled == any(part.pickled for part in type_info.parts or ()) or not type_info.declared


@each_type
def test_arrow(sample: TypeSample) -> None:
    type_info, values = sample.type_info, list(sample.values)
    batch = row_writer(type_info)(values)
    assert row_reader(type_info)(batch) == values
    assert row_reader(type_info)(batch.slice(1)) == values[1:]
    for nested, wrapped in (
        (Types.LIST(type_info), [[*values, None], []]),
        (Types.TUPLE([type_info, Types.LONG()]), [(value, 1) for value in [*values, None]]),
        (Types.MAP(Types.LONG(), type_info), [dict(enumerate([*values, None]))]),
    ):
        column = column_of(nested, wrapped)
        assert column.type == nested.arrow_type()
        assert nested.column_reader()(column) == wrapped
    if type_info.declared:
        with pytest.raises(RowTypeError, match="Foreign"):
            row_writer(type_info)([Foreign()])


@each_type
def test_stored_values(sample: TypeSample) -> None:
    serializer, values = serializer_for(sample.type_info), list(sample.values)
    stored = [serializer.encode(value) for value in values]
    assert list(map(serializer.decode, stored)) == values
    assert serializer.encode_many(values * 20) == stored * 20
    with pytest.raises(StateTypeError, match="Foreign"):
        serializer.encode(Foreign())
    nested = serializer_for(Types.MAP(Types.LONG(), Types.TUPLE([sample.type_info])))
    wrapped = {number: (value,) for number, value in enumerate([*values, None])}
    assert nested.decode(nested.encode(wrapped)) == wrapped


@each_type
def test_columns_of_a_savepoint(sample: TypeSample) -> None:
    serializer = serializer_for(sample.type_info)
    stored = [*map(serializer.encode, sample.values), None]
    column = value_column(sample.type_info)
    if not sample.type_info.pickled and column.arrow_type == sample.type_info.arrow_type():
        assert column.write(stored).equals(column_of(sample.type_info, [*sample.values, None]))
    fields = ValueFields.of("value", serializer.snapshot())
    batch = pa.RecordBatch.from_arrays(fields.write(stored), schema=pa.schema(fields.fields()))
    assert fields.read(batch) == stored
    assert fields.fields()[0].metadata[b"holdfast.type"] == sample.type_info.describe().encode()


@each_type
def test_what_caches_and_outputs_share(sample: TypeSample) -> None:
    """Only what cannot be changed is not copied: then a value can be hashed."""
    type_info, cells = sample.type_info, Cells(serializer_for(sample.type_info))
    for value in sample.values:
        if type_info.immutable:
            hash(value)
        assert copied(value) == value
        assert cells.open(cells.admit(value)) == value
        kept = cells.admit(value) is value
        assert kept or type(value) is not type_info.cell_class
        assert not (kept and _changes(value))
        if type_info.cell_class is type(value):
            assert copied(value) is value


def _changes(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return True
    return False


@each_type
def test_keys(sample: TypeSample) -> None:
    keys = keys_of(sample)
    if not keys:
        with pytest.raises(ProgramError, match="cannot be the type of a key"):
            KeyCodec.for_type(sample.type_info)
        return
    codec, column = KeyCodec.for_type(sample.type_info), sample.type_info.key_column()
    encoded = [codec.encode(key) for key in keys]
    assert [codec.encode(codec.decode(data)) for data in encoded] == encoded
    assert [codec.encode(codec.normalise(key)) for key in keys] == encoded
    assert [codec.decode(data) for data in encoded] == [codec.normalise(key) for key in keys]
    assert len(set(encoded)) == len({codec.identity(key) for key in keys}) == len(keys)
    assert codec.hash_many(keys).tolist() == [codec.hash(key) for key in keys]
    assert column.read(column.write([*encoded, None])) == [*encoded, None]
    if not sample.type_info.pickled and column.arrow_type == sample.type_info.arrow_type():
        assert column.write(encoded).equals(column_of(sample.type_info, list(map(codec.normalise, keys))))
    with pytest.raises(StateTypeError, match="Foreign"):
        codec.encode(Foreign())
    if not sample.type_info.pickled:
        arrow = column_of(sample.type_info, keys)
        assert codec.hash_array(arrow).tolist() == [codec.hash(key) for key in keys]
        assert codec.same_column(arrow).type == arrow.type
    pair_type = Types.TUPLE([Types.LONG(), sample.type_info])
    nested, pairs = KeyCodec.for_type(pair_type), [(1, key) for key in [*keys, None]]
    assert [nested.encode(nested.decode(nested.encode(pair))) for pair in pairs] == list(map(nested.encode, pairs))
    if not sample.type_info.pickled:
        assert nested.hash_array(column_of(pair_type, pairs)).tolist() == list(map(nested.hash, pairs))


@each_type
@pytest.mark.parametrize("columns", [["k"], ["k", "number"]])
def test_keys_of_columns(sample: TypeSample, columns: list[str]) -> None:
    """Keys that are columns of rows are, where they arrive, what a function would have selected."""
    keys = keys_of(sample)
    if not keys or sample.type_info.pickled:
        return
    row_type = Types.ROW_NAMED(["k", "number"], [sample.type_info, Types.LONG()])
    rows = [Row(k=key, number=1) for key in keys]
    key_by = key_by_of(row_type, columns, None)
    partitioner = KeyGroupHash(key_by.key_type, 128, key_by.columns)
    sent = row_writer(row_type)(rows)
    route = partitioner.bind(0, 2, "here").route(Batch(rows), sent)
    codec = KeyCodec.for_type(key_by.key_type)
    selected = keys if len(columns) == 1 else [(key, 1) for key in keys]
    assert route.hashes.tolist() == list(map(codec.hash, selected))
    received = KeyReader(partitioner).read(route.keys.form, sent)
    assert list(map(codec.encode, received)) == list(map(codec.encode, selected))
    assert repr(received) == repr(list(map(codec.normalise, selected)))


@each_type
def test_changes(sample: TypeSample) -> None:
    """A type stays what it is, alone and inside of others, and becomes none that a row does not know."""
    own, serializer = sample.type_info, serializer_for(sample.type_info)
    assert compatibility(serializer.snapshot(), serializer) is Compatibility.AS_IS
    assert loses_nothing(own, own)
    assert keeps_hash(own, own)
    assert keys_of(sample) == [] or key_change(own, own) is not None
    old, new = (serializer_for(Types.TUPLE([number, own])) for number in (Types.INT(), Types.LONG()))
    assert compatibility(old.snapshot(), new) is Compatibility.AFTER_MIGRATION
    for value in sample.values:
        data = old.encode((5, value))
        assert migrate(old, new, data) == new.encode((5, value))
    assert own.bare().arrow_type() == own.arrow_type()
    assert serializer_for(own.bare()).form.stored_type == serializer.form.stored_type


@each_type
def test_keys_that_arrow_tells_apart(sample: TypeSample) -> None:
    """A column groups keys as their stored bytes do: both zeros and all forms of a decimal are one key elsewhere."""
    if sample.type_info.key_in_arrow:
        assert sample.type_info.key_form().trivial_identity
        keys = [*sample.values, *sample.values]
        encoded = list(map(KeyCodec.for_type(sample.type_info).encode, keys))
        codes = column_of(sample.type_info, keys).dictionary_encode().indices.to_pylist()
        assert codes == [encoded.index(data) for data in encoded]


@each_type
def test_keys_that_arrow_groups(sample: TypeSample) -> None:
    """Equal keys are alike in the column that is grouped, and others are not."""
    if not sample.type_info.groups_in_arrow:
        return
    keys = [*keys_of(sample), *keys_of(sample)]
    assert keys, "a type whose columns are grouped is one of keys"
    assert groups(sample.type_info, keys) == len(set(map(KeyCodec.for_type(sample.type_info).encode, keys)))


def groups(type_info: TypeInformation, keys: list[Any]) -> int:
    column = type_info.key_form().same_column(column_of(type_info, keys))
    return len(pa.table({"key": column}).group_by("key").aggregate([]))


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("DOUBLE", [0.0, -0.0]),
        ("FLOAT", [0.0, -0.0]),
        ("BIG_DEC", [Decimal("1.0"), Decimal("1.00")]),
        ("DECIMAL", [Decimal(1), 1]),
    ],
)
def test_equal_keys_of_different_looks_are_one_group(name: str, keys: list[Any]) -> None:
    assert groups(TYPES[name].type_info, keys) == 1


def test_types_that_arrow_does_not_group_are_those_of_several_values() -> None:
    others = {name for name, sample in ALL.items() if not sample.type_info.groups_in_arrow}
    assert others.isdisjoint({"STRING", "DOUBLE", "DECIMAL", "BIG_DEC", "SQL_TIME", "INSTANT", "IPV4"})
    assert others >= {"MONEY", "PICKLED", "LIST", "TUPLE", "MAP"}
    assert all(ALL[name].type_info.parts or not ALL[name].type_info.declared for name in others)


@each_type
def test_numbers_without_limit_are_text_in_arrow(sample: TypeSample) -> None:
    if sample.type_info.unlimited:
        assert pa.types.is_string(sample.type_info.arrow_type())
    numbers = all(isinstance(value, int | Decimal) for value in sample.values)
    assert sample.type_info.unlimited == (numbers and pa.types.is_string(sample.type_info.arrow_type()))


@each_type
def test_numbers_for_numpy(sample: TypeSample) -> None:
    if sample.type_info.number is not None:
        assert sample.type_info.in_numpy
        assert {type(value) for value in sample.values} == {sample.type_info.number}
    if sample.type_info.in_numpy:
        numbers = column_of(sample.type_info, sample.values).to_numpy(zero_copy_only=False)
        assert numbers.dtype.kind in "iufb"
        assert numbers.tolist() == list(sample.values)


@each_type
def test_other_names(sample: TypeSample) -> None:
    assert all(resolve(name) == sample.type_info for name in (*sample.ddl, *sample.python))
    assert all(avro_type(schema) == sample.type_info for schema in sample.avro)
