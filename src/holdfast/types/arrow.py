"""Rows to Arrow record batches and back.

A type with fields is one column per field; any other type is one column ``value``. Readers and writers are made once
per type and work on whole columns, because every row of every exchange passes through them. On the way through an
exchange a batch may have one column more: the kinds of its rows, where some are not INSERT.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from holdfast.errors import RowTypeError
from holdfast.types.information import FieldsTypeInfo, RowTypeInfo, TypeInformation
from holdfast.types.row import Row, RowKind

RowReader = Callable[[pa.RecordBatch], list[Any]]
RowWriter = Callable[[Sequence[Any]], pa.RecordBatch]
RowCheck = Callable[[Sequence[Any]], bool]

#: The name of the column of kinds.
ROW_KINDS = "__row_kind"

_KINDS = tuple(sorted(RowKind, key=lambda kind: kind.value))

_BAD_VALUE = (pa.ArrowException, ValueError, TypeError, OverflowError, AttributeError)


def schema_of(type_info: TypeInformation) -> pa.Schema:
    """The columns of a batch of rows of this type."""
    if isinstance(type_info, FieldsTypeInfo):
        return pa.schema(list(type_info.arrow_type()))
    return pa.schema([("value", type_info.arrow_type())])


def row_reader(type_info: TypeInformation) -> RowReader:
    """Python rows of a batch. Columns are taken by position, and cast where theirs is a close type (another zone)."""
    expected = schema_of(type_info).types
    if not isinstance(type_info, FieldsTypeInfo):
        read_values = type_info.column_reader()
        return lambda batch: read_values(_as_type(batch.column(0), expected[0]))
    readers = list(zip([field_type.column_reader() for field_type in type_info.field_types], expected, strict=True))
    make_records = type_info.make_records()

    def read(batch: pa.RecordBatch) -> list[Any]:
        kinds = kinds_of(batch)
        columns = zip(readers, batch.columns if kinds is None else batch.columns[:-1], strict=True)
        rows = make_records([read_column(_as_type(column, wanted)) for (read_column, wanted), column in columns])
        if kinds is not None:
            for row, kind in zip(rows, kinds.to_pylist(), strict=True):
                Row.set_row_kind(row, _KINDS[kind])
        return rows

    return read


def kinds_of(batch: pa.RecordBatch) -> pa.Array | None:
    """The kinds of the rows of a batch, where it has any."""
    return batch.column(-1) if batch.num_columns and batch.schema.names[-1] == ROW_KINDS else None


def without_kinds(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The columns of the type alone."""
    return batch if kinds_of(batch) is None else batch.select(batch.schema.names[:-1])


def row_writer(type_info: TypeInformation) -> RowWriter:
    """A batch of Python rows. Raises RowTypeError, naming the first row that is not of the declared type."""
    schema = schema_of(type_info)
    if isinstance(type_info, FieldsTypeInfo):
        split = type_info.split_records()
        writers = [field_type.column_writer() for field_type in type_info.field_types]
    else:
        split = lambda rows: [rows]  # noqa: E731 - a name for one of two functions
        writers = [type_info.column_writer()]

    def write(rows: Sequence[Any]) -> pa.RecordBatch:
        columns = split(rows)
        arrays = [write_column(column) for write_column, column in zip(writers, columns, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def write_checked(rows: Sequence[Any]) -> pa.RecordBatch:
        try:
            return write(rows)
        except _BAD_VALUE as error:
            raise _first_bad_row(rows, type_info, write) from error

    return write_checked


def exchange_writer(type_info: TypeInformation) -> RowWriter:
    """As ``row_writer``, with the kinds of rows that are not INSERT."""
    write_rows = row_writer(type_info)
    if not isinstance(type_info, RowTypeInfo):
        return write_rows

    def write(rows: Sequence[Any]) -> pa.RecordBatch:
        batch = write_rows(rows)
        if all(_kind_of(cls) is RowKind.INSERT for cls in set(map(type, rows))):
            return batch
        kinds = pa.array([_kind_of(type(row)).value for row in rows], pa.int8())
        return pa.RecordBatch.from_arrays([*batch.columns, kinds], names=[*batch.schema.names, ROW_KINDS])

    return write


def _kind_of(cls: type) -> RowKind:
    return cls._row_kind if issubclass(cls, Row) else RowKind.INSERT


def row_check(type_info: TypeInformation) -> RowCheck:
    """Whether rows surely are what a reader gives for what a writer makes of them, so that both can be left out."""
    if not isinstance(type_info, FieldsTypeInfo):
        return type_info.column_check()
    # A row is no field: it cannot be null.
    return type_info.records_check([one.column_check() for one in type_info.field_types])


def _first_bad_row(rows: Sequence[Any], type_info: TypeInformation, write: RowWriter) -> RowTypeError:
    for position, row in enumerate(rows):
        try:
            write([row])
        except _BAD_VALUE as error:
            return RowTypeError(
                f"Row {position} of a batch, {row!r}, is not of the declared type {type_info.describe()}: {error}. "
                f"Return rows of that type, or declare another output type"
            )
    return RowTypeError(
        f"The {len(rows)} rows of a batch do not fit one Arrow batch of the declared type {type_info.describe()}, "
        f"though each row alone does; make the batches or the rows smaller"
    )


def _as_type(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    return array if array.type == wanted else array.cast(wanted)
