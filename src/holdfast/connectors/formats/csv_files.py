"""Files of CSV by a schema, with PyFlink's names: a format for ``FileSource`` and one for ``FileSink``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO

import pyarrow as pa
from pyarrow import types as kinds

from holdfast.connectors.csv_dialect import CsvDialect
from holdfast.connectors.file_sink.compaction import ConcatFileCompactor, FileCompactor
from holdfast.connectors.file_sink.formats import Columns, CsvCompactor, RowFileWriter, SinkFormat, is_undeclared
from holdfast.connectors.files.csv_lines import CsvFormat
from holdfast.connectors.formats.csv_schema import CsvSchema
from holdfast.coverage.answers import SaysWhatToUse
from holdfast.errors import ProgramError
from holdfast.runtime.batch import Batch
from holdfast.types.arrow import schema_of
from holdfast.types.information import TypeInformation


class CsvReaderFormat(SaysWhatToUse, CsvFormat):
    """A format for ``FileSource.for_record_stream_format``: rows with the columns of a schema."""

    def __init__(self, schema: CsvSchema) -> None:
        super().__init__(schema.row_type(), schema.dialect, schema.array_separators())

    @staticmethod
    def for_schema(schema: CsvSchema) -> CsvReaderFormat:
        return CsvReaderFormat(schema)


class CsvBulkWriters:
    """A factory of formats for ``FileSink.for_bulk_format``."""

    @staticmethod
    def for_schema(schema: CsvSchema) -> CsvSchemaSinkFormat:
        return CsvSchemaSinkFormat(schema)


class CsvSchemaSinkFormat(SinkFormat):
    """Rows as the records of a schema, whose columns are the fields of a row in their order."""

    extension = ".csv"

    def __init__(self, schema: CsvSchema) -> None:
        self._schema = schema
        self.concatenates = not schema.dialect.header

    def check(self, type_info: TypeInformation) -> None:
        names = [column.name for column in self._schema.columns]
        if is_undeclared(type_info):
            raise ProgramError(
                f"Rows that are written as CSV with the columns {names} need a declared type. Give the operator before "
                "the sink an output_type, for instance Types.ROW_NAMED(names, types)."
            )
        fields = list(schema_of(type_info))
        if len(fields) != len(names):
            raise ProgramError(
                f"The CSV schema has {len(names)} columns, {names}, and the rows of {type_info.describe()} have "
                f"{len(fields)} fields. Give the schema a column for each field."
            )
        arrays = self._schema.array_separators()
        for name, field in zip(names, fields, strict=True):
            if kinds.is_nested(field.type) != (name in arrays):
                raise ProgramError(
                    f"Column {name!r} of the CSV schema is {'an array' if name in arrays else 'a single value'}, and "
                    f"the field that it is for is {field.type}. Declare it with "
                    f"{'a type of one value' if name in arrays else 'add_array_column()'}, or map the stream."
                )

    def open(self, stream: BinaryIO, type_info: TypeInformation) -> RowFileWriter:
        return _Writer(stream, Columns(type_info), self._schema)

    def compactor(self) -> FileCompactor:
        return CsvCompactor() if self._schema.dialect.header else ConcatFileCompactor()

    def layout(self, type_info: TypeInformation) -> str:
        return f"{super().layout(type_info)} {self._schema}"


class _Writer(RowFileWriter):
    def __init__(self, stream: BinaryIO, columns: Columns, schema: CsvSchema) -> None:
        self._stream = stream
        self._columns = columns
        self._dialects = [_of_column(schema.dialect, schema.array_separators().get(c.name)) for c in schema.columns]
        self._dialect = schema.dialect
        self._header = [column.name for column in schema.columns] if schema.dialect.header else None

    def write(self, batch: Batch) -> None:
        if self._header is not None:
            self._write([self._dialect.record(self._header)])
            self._header = None
        columns = zip(self._dialects, self._columns.of(batch).columns, strict=True)
        fields = [list(map(dialect.field, _values(column))) for dialect, column in columns]
        separator, end = self._dialect.separator, self._dialect.line_end
        self._write([separator.join(record) + end for record in zip(*fields, strict=True)])

    def _write(self, records: Sequence[str]) -> None:
        self._stream.write("".join(records).encode())


def _values(column: pa.Array) -> list[Any]:
    if kinds.is_float32(column.type):
        # The shortest text that is the same number with 32 bits.
        return [None if text is None else float(text) for text in column.cast(pa.string()).to_pylist()]
    return list(column.to_pylist())


def _of_column(dialect: CsvDialect, separator: str | None) -> CsvDialect:
    return dialect if separator is None else dialect.with_arrays(separator)
