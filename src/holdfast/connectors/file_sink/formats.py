"""How rows become the bytes of a file."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
from pyarrow import types as kinds

from holdfast.connectors.encoder import Encoder
from holdfast.connectors.file_sink.compaction import ConcatFileCompactor, FileCompactor
from holdfast.coverage.answers import SaysWhatToUse
from holdfast.errors import ProgramError
from holdfast.runtime.batch import Batch
from holdfast.types.arrow import row_writer, schema_of
from holdfast.types.information import TypeInformation
from holdfast.types.row import Row
from holdfast.types.settings import TextForm
from holdfast.types.typeinfo import Types

#: A Parquet row group ends at the first of both.
_ROW_GROUP_ROWS = 1 << 17
_ROW_GROUP_BYTES = 32 << 20


class RowFileWriter(ABC):
    """Writes one file; the stream is opened and closed by its owner."""

    @abstractmethod
    def write(self, batch: Batch) -> None: ...

    def finish(self) -> None:
        """Write what is buffered, and the end of the format."""


class SinkFormat(SaysWhatToUse, ABC):
    """The picklable description of a format."""

    extension: str
    #: Whether its rows are made of columns, so that some of them can be folders instead.
    has_columns: bool = True
    #: Whether files whose bytes follow each other are one file of the format.
    concatenates: bool = True

    def check(self, type_info: TypeInformation) -> None:
        """ProgramError, on the driver, for a type that cannot be written."""

    def in_text_form(self, form: TextForm) -> SinkFormat:
        """This format in a job that writes rows as text in that form."""
        return self

    @abstractmethod
    def open(self, stream: BinaryIO, type_info: TypeInformation) -> RowFileWriter: ...

    def compactor(self) -> FileCompactor:
        """How its files are joined unless the program says it."""
        return ConcatFileCompactor()

    def layout(self, type_info: TypeInformation) -> str:
        """Files of one layout can be joined."""
        return f"{self.extension} {type_info.describe()}"


class LineSinkFormat(SinkFormat):
    extension = ".txt"
    has_columns = False

    def __init__(self, encoder: Encoder, form: TextForm = TextForm.FLINK) -> None:
        self._encoder = encoder
        self._form = form

    def in_text_form(self, form: TextForm) -> SinkFormat:
        return LineSinkFormat(self._encoder, form)

    def open(self, stream: BinaryIO, type_info: TypeInformation) -> RowFileWriter:
        return _LineWriter(stream, self._encoder.for_rows(type_info, self._form), self._encoder.charset_name)

    def layout(self, type_info: TypeInformation) -> str:
        return f"{self.extension} {self._encoder.charset_name}"


class _LineWriter(RowFileWriter):
    def __init__(self, stream: BinaryIO, encode: Callable[[Any], str], charset_name: str) -> None:
        self._stream = stream
        self._encode = encode
        self._charset_name = charset_name

    def write(self, batch: Batch) -> None:
        lines = [f"{self._encode(value)}\n" for value in batch.values]
        self._stream.write("".join(lines).encode(self._charset_name))


class JsonSinkFormat(SinkFormat):
    """One object per line, its members are the columns of the type. Rows without a declared type: dicts, dataclasses
    and named rows as they are, tuples as f0, f1, ..., any other value as ``value``."""

    extension = ".json"

    def open(self, stream: BinaryIO, type_info: TypeInformation) -> RowFileWriter:
        return _JsonWriter(stream, type_info)


class _JsonWriter(RowFileWriter):
    def __init__(self, stream: BinaryIO, type_info: TypeInformation) -> None:
        self._stream = stream
        self._columns = None if is_undeclared(type_info) else Columns(type_info)
        self._encoder = msgspec.json.Encoder(enc_hook=str)

    def write(self, batch: Batch) -> None:
        if self._columns is None:
            records = [_as_object(value) for value in batch.values]
        else:
            records = with_nanoseconds_as_text(self._columns.of(batch)).to_pylist(maps_as_pydicts="strict")
        self._stream.write(self._encoder.encode_lines(records))


class CsvSinkFormat(SinkFormat):
    extension = ".csv"

    def __init__(self, header: bool, delimiter: str) -> None:
        self._header = header
        self._delimiter = delimiter
        self.concatenates = not header

    def check(self, type_info: TypeInformation) -> None:
        _check_declared(type_info, "CSV")
        for field in schema_of(type_info):
            if kinds.is_nested(field.type):
                raise ProgramError(
                    f"Column {field.name!r} is {field.type}, and a CSV field holds one value. "
                    "Map the stream to rows of simple types, or use FileSink.json or FileSink.parquet."
                )

    def open(self, stream: BinaryIO, type_info: TypeInformation) -> RowFileWriter:
        return _CsvWriter(stream, Columns(type_info), self._header, self._delimiter)

    def compactor(self) -> FileCompactor:
        return CsvCompactor() if self._header else ConcatFileCompactor()

    def layout(self, type_info: TypeInformation) -> str:
        return f"{super().layout(type_info)} {self._header} {self._delimiter}"


class _CsvWriter(RowFileWriter):
    def __init__(self, stream: BinaryIO, columns: Columns, header: bool, delimiter: str) -> None:
        self._stream = stream
        self._columns = columns
        self._header = header
        self._delimiter = delimiter

    def write(self, batch: Batch) -> None:
        buffer = pa.BufferOutputStream()
        options = pc.WriteOptions(include_header=self._header, delimiter=self._delimiter)
        pc.write_csv(self._columns.of(batch), buffer, options)
        self._stream.write(buffer.getvalue().to_pybytes())
        self._header = False


class CsvCompactor(FileCompactor):
    """The header of the first file is that of all."""

    def compact(self, inputs: Sequence[BinaryIO], output: BinaryIO) -> None:
        for stream in inputs[1:]:
            stream.readline()
        ConcatFileCompactor().compact(inputs, output)


class ParquetSinkFormat(SinkFormat):
    extension = ".parquet"
    concatenates = False

    def __init__(self, compression: str) -> None:
        self._compression = compression

    def check(self, type_info: TypeInformation) -> None:
        _check_declared(type_info, "Parquet")

    def open(self, stream: BinaryIO, type_info: TypeInformation) -> RowFileWriter:
        columns = Columns(type_info)
        return _ParquetWriter(_RowGroups(stream, columns.schema, self._compression), columns)

    def compactor(self) -> FileCompactor:
        return _ParquetCompactor(self._compression)


class _ParquetCompactor(FileCompactor):
    """Reads and writes rows: small row groups become large ones."""

    def __init__(self, compression: str) -> None:
        self._compression = compression

    def compact(self, inputs: Sequence[BinaryIO], output: BinaryIO) -> None:
        joined: _RowGroups | None = None
        for stream in inputs:
            file = pq.ParquetFile(stream)
            joined = joined or _RowGroups(output, file.schema_arrow, self._compression)
            for batch in file.iter_batches():
                joined.add(batch)
        if joined is not None:
            joined.finish()


class _ParquetWriter(RowFileWriter):
    def __init__(self, groups: _RowGroups, columns: Columns) -> None:
        self._groups = groups
        self._columns = columns

    def write(self, batch: Batch) -> None:
        self._groups.add(self._columns.of(batch))

    def finish(self) -> None:
        self._groups.finish()


class _RowGroups:
    """Collects batches, because every call of the writer makes a row group."""

    def __init__(self, stream: BinaryIO, schema: pa.Schema, compression: str) -> None:
        self._writer = pq.ParquetWriter(stream, schema, compression=compression)
        self._buffered: list[pa.RecordBatch] = []
        self._rows = 0
        self._bytes = 0

    def add(self, arrow: pa.RecordBatch) -> None:
        self._buffered.append(arrow)
        self._rows += arrow.num_rows
        self._bytes += arrow.nbytes
        if self._rows >= _ROW_GROUP_ROWS or self._bytes >= _ROW_GROUP_BYTES:
            self._write_row_group()

    def finish(self) -> None:
        self._write_row_group()
        self._writer.close()

    def _write_row_group(self) -> None:
        if self._buffered:
            self._writer.write_table(pa.Table.from_batches(self._buffered), row_group_size=self._rows)
            self._buffered, self._rows, self._bytes = [], 0, 0


class Columns:
    """The columns of batches of one type: those a batch has already, else made from its rows."""

    def __init__(self, type_info: TypeInformation) -> None:
        self.schema = schema_of(type_info)
        self._write = row_writer(type_info)

    def of(self, batch: Batch) -> pa.RecordBatch:
        if batch.arrow is not None and batch.arrow.schema.equals(self.schema):
            return batch.arrow
        return self._write(batch.values)


def is_undeclared(type_info: TypeInformation) -> bool:
    return type_info == Types.PICKLED_BYTE_ARRAY()


def _check_declared(type_info: TypeInformation, name: str) -> None:
    if is_undeclared(type_info):
        raise ProgramError(
            f"The rows of a stream that goes to a {name} file need a declared type, whose fields are its columns. "
            "Give the operator before the sink an output_type, for instance 'user STRING, amount BIGINT'."
        )


def _as_object(value: Any) -> Any:
    if isinstance(value, Mapping) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
        return value
    if isinstance(value, Row):
        with suppress(TypeError):  # raised by a row without names
            return value.as_dict(recursive=True)
    if isinstance(value, (tuple, Row)):
        return {f"f{position}": field for position, field in enumerate(value)}
    return {"value": value}


def with_nanoseconds_as_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Python's datetime has no nanoseconds."""
    columns = [
        column.cast(pa.string()) if column.type in (pa.timestamp("ns"), pa.timestamp("ns", "UTC")) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
