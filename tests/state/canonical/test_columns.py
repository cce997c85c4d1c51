"""Columns give back the bytes that were stored, also through a Parquet file."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.state.canonical.places import file_name, folder_name
from holdfast.state.canonical.schema import ValueFields
from holdfast.state.keys import KeyCodec
from holdfast.state.serializers import serializer_for
from holdfast.types.table_columns import Column
from holdfast.types.typeinfo import Types
from tests.state.canonical.typed_values import KEY_TYPES, SCALARS, VALUE_TYPES


def through_parquet(batch: pa.RecordBatch) -> pa.RecordBatch:
    file = io.BytesIO()
    pq.write_table(pa.Table.from_batches([batch]), file)
    table = pq.read_table(io.BytesIO(file.getvalue()))
    assert table.schema.types == batch.schema.types
    arrays = [column.combine_chunks() for column in table.columns]
    return pa.record_batch(arrays, names=batch.schema.names)


@given(st.data())
def test_every_stored_value_comes_back_as_the_same_bytes(data: st.DataObject) -> None:
    type_info, strategy = data.draw(VALUE_TYPES)
    serializer = serializer_for(type_info)
    values = data.draw(st.lists(st.none() | strategy, max_size=6))
    stored = [None if value is None else serializer.encode(value) for value in values]
    fields = ValueFields.of("value", serializer.snapshot())
    batch = pa.record_batch(fields.write(stored), schema=pa.schema(fields.fields()))
    assert fields.read(through_parquet(batch)) == stored
    assert fields.read(batch.slice(1)) == stored[1:]


@pytest.mark.parametrize("type_info", SCALARS, ids=str)
@given(st.data())
def test_every_scalar_comes_back(type_info: Any, data: st.DataObject) -> None:
    serializer = serializer_for(type_info)
    stored = serializer.encode_many(data.draw(st.lists(SCALARS[type_info], min_size=1, max_size=6)))
    fields = ValueFields.of("value", serializer.snapshot())
    batch = pa.record_batch(fields.write(stored), schema=pa.schema(fields.fields()))
    assert fields.read(through_parquet(batch)) == stored


@given(st.data())
def test_every_stored_key_comes_back_as_the_same_bytes(data: st.DataObject) -> None:
    type_info, strategy = data.draw(KEY_TYPES)
    codec = KeyCodec.for_type(type_info)
    stored = list(map(codec.encode, data.draw(st.lists(strategy, max_size=6))))
    column: Column = type_info.key_column()
    batch = pa.record_batch([column.write(stored)], names=["key"])
    assert batch.schema.types == [column.arrow_type]
    assert column.read(through_parquet(batch).column(0)) == stored
    assert column.read(batch.column(0).slice(1)) == stored[1:]


def test_types_are_those_that_a_reader_expects() -> None:
    expected = {
        Types.LONG(): pa.int64(),
        Types.TIMESTAMP_LTZ(): pa.timestamp("us", "UTC"),
        Types.DECIMAL(10, 2): pa.decimal128(10, 2),
        Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()]): pa.struct([("a", pa.int32()), ("b", pa.string())]),
        Types.MAP(Types.STRING(), Types.LIST(Types.DOUBLE())): pa.map_(pa.string(), pa.list_(pa.float64())),
        Types.PICKLED_BYTE_ARRAY(): pa.binary(),
    }
    for type_info, arrow_type in expected.items():
        fields = ValueFields.of("value", serializer_for(type_info).snapshot()).fields()
        assert fields[0].type == arrow_type
        assert fields[0].metadata[b"holdfast.type"].decode() == type_info.describe()
    assert (
        ValueFields.of("v", serializer_for(Types.PICKLED_BYTE_ARRAY()).snapshot())
        .fields()[0]
        .metadata[b"holdfast.encoding"]
        == b"pickle"
    )


@given(st.sets(st.text(), min_size=2, max_size=5))
def test_names_of_files_are_safe_and_different(names: set[str]) -> None:
    for name_of in (file_name, folder_name):
        found = {name_of(name) for name in names}
        assert len(found) == len(names)
        assert all(0 < len(one) < 200 and "/" not in one and one.isascii() and one[0] != "." for one in found)
    assert not any(folder_name(name).startswith("_") for name in names)


def test_names_stay_readable() -> None:
    assert [file_name(one) for one in ("my-counter_1.x", "a/b", "..", "", "_positions")] == [
        "my-counter_1.x",
        "a%2Fb",
        "%2E.",
        "%99aa06d3014798d86001c324468d497f",
        "_positions",
    ]
    assert folder_name("_metadata") == "%5Fmetadata"
    assert len(file_name("x" * 5000)) < 200 and file_name("x" * 5000) != file_name("x" * 5001)


def test_integers_of_more_digits_than_python_prints() -> None:
    serializer = serializer_for(Types.BIG_INT())
    stored = serializer.encode_many([10**5000, -(10**5000)])
    fields = ValueFields.of("value", serializer.snapshot())
    batch = through_parquet(pa.record_batch(fields.write(stored), schema=pa.schema(fields.fields())))
    assert batch.column(0).to_pylist() == ["1" + "0" * 5000, "-1" + "0" * 5000]
    assert fields.read(batch) == stored
