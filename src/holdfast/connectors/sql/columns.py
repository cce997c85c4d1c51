"""Columns of Arrow as databases take them, whole columns at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.csv as pc
from pyarrow import types as kinds

_JSON = msgspec.json.Encoder(enc_hook=str)


def encode_batch(batch: pa.RecordBatch) -> bytes:
    """A batch with its schema."""
    buffer = pa.BufferOutputStream()
    with pa.ipc.new_stream(buffer, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(buffer.getvalue().to_pybytes())


def decode_batch(data: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(data) as stream:
        return stream.read_next_batch()


def csv_of(batch: pa.RecordBatch) -> bytes:
    """As ``COPY ... (FORMAT csv)`` reads it: text is in quotes, so that what is not there is NULL."""
    columns = [_as_hexadecimal(column) if _is_binary(column.type) else _flat(column) for column in batch.columns]
    buffer = pa.BufferOutputStream()
    flat = pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
    pc.write_csv(flat, buffer, pc.WriteOptions(include_header=False))
    return bytes(buffer.getvalue().to_pybytes())


def rows_of(batch: pa.RecordBatch) -> Iterable[tuple[Any, ...]]:
    """Numbers, text and bytes; times, dates and decimals are text, which databases understand."""
    return zip(*(_as_text(_flat(column)).to_pylist() for column in batch.columns), strict=True)


def numbered(batches: Iterable[pa.RecordBatch], name: str) -> Iterator[pa.RecordBatch]:
    """Adds a last column that counts the rows."""
    first = 0
    for batch in batches:
        numbers = pa.array(range(first, first + batch.num_rows), pa.int64())
        yield pa.RecordBatch.from_arrays([*batch.columns, numbers], names=[*batch.schema.names, name])
        first += batch.num_rows


def _flat(column: pa.Array) -> pa.Array:
    """Values that have parts as JSON."""
    if not kinds.is_nested(column.type):
        return column
    values = column.to_pylist(maps_as_pydicts="strict")
    return pa.array([None if value is None else _JSON.encode(value).decode() for value in values], pa.string())


def _as_text(column: pa.Array) -> pa.Array:
    return column.cast(pa.string()) if kinds.is_temporal(column.type) or kinds.is_decimal(column.type) else column


def _as_hexadecimal(column: pa.Array) -> pa.Array:
    return pa.array([None if value is None else f"\\x{value.hex()}" for value in column.to_pylist()], pa.string())


def _is_binary(kind: pa.DataType) -> bool:
    return bool(kinds.is_binary(kind) or kinds.is_large_binary(kind) or kinds.is_fixed_size_binary(kind))
