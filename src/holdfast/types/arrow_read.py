"""Columns of Arrow to lists of Python values."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from holdfast.types.instant import Instant

#: Python values of an array that has the type's own Arrow type.
ColumnReader = Callable[[pa.Array], list[Any]]
#: Tuples, rows or instances of a class from one list per field.
MakeRecords = Callable[[Sequence[list[Any]]], list[Any]]


def plain(array: pa.Array) -> list[Any]:
    values: list[Any] = array.to_pylist()
    return values


def temporal(array: pa.Array) -> list[Any]:
    """Dates and naive timestamps; through numpy it is thirty times as fast as through Arrow's scalars."""
    values: list[Any] = array.to_numpy(zero_copy_only=False).tolist()
    return values


def utc(array: pa.Array) -> list[Any]:
    zone = datetime.UTC
    return [None if value is None else value.replace(tzinfo=zone) for value in temporal(array)]


def instants(array: pa.Array) -> list[Any]:
    return [None if value is None else Instant.of_epoch_nano(value) for value in array.cast(pa.int64()).to_pylist()]


def mapped(convert: Callable[[Any], Any]) -> ColumnReader:
    return lambda array: [None if value is None else convert(value) for value in array.to_pylist()]


def list_reader(read_elements: ColumnReader) -> ColumnReader:
    if read_elements is plain:
        return plain

    def read(array: pa.Array) -> list[Any]:
        if not len(array):
            return []
        first, ranges = _ranges(array)
        elements = read_elements(array.values.slice(first, ranges[-1] - first))
        return [None if span is None else elements[span] for span in _spans(array, first, ranges)]

    return read


def map_reader(read_keys: ColumnReader, read_values: ColumnReader) -> ColumnReader:
    def read(array: pa.Array) -> list[Any]:
        if not len(array):
            return []
        first, ranges = _ranges(array)
        keys = read_keys(array.keys.slice(first, ranges[-1] - first))
        values = read_values(array.items.slice(first, ranges[-1] - first))
        return [
            None if span is None else dict(zip(keys[span], values[span], strict=True))
            for span in _spans(array, first, ranges)
        ]

    return read


def struct_reader(readers: Sequence[ColumnReader], make_records: MakeRecords) -> ColumnReader:
    def read(array: pa.Array) -> list[Any]:
        # flatten() and not field(): it applies the struct's own offset and nulls to its children.
        columns = [read_column(child) for read_column, child in zip(readers, array.flatten(), strict=True)]
        records = make_records(columns)
        if array.null_count:
            valid = array.is_valid().to_pylist()
            return [record if is_valid else None for record, is_valid in zip(records, valid, strict=True)]
        return records

    return read


def _ranges(array: pa.Array) -> tuple[int, list[int]]:
    offsets: list[int] = array.offsets.to_pylist()
    return offsets[0], offsets


def _spans(array: pa.Array, first: int, offsets: list[int]) -> Iterator[slice | None]:
    """Where each list of the array lies among its elements; None for a null."""
    valid = array.is_valid().to_pylist() if array.null_count else [True] * len(array)
    for is_valid, start, end in zip(valid, offsets, offsets[1:], strict=False):
        yield slice(start - first, end - first) if is_valid else None
