"""CSV: one record per line, with or without a header."""

from __future__ import annotations

import csv

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
from pyarrow import types as kinds

from holdfast.connectors.files.content import Content
from holdfast.connectors.files.format import UnfitFileError
from holdfast.connectors.files.lines import LineParser, LinesFormat, after_byte_order_mark, first_line
from holdfast.errors import ConfigurationError, ProgramError
from holdfast.types.arrow import schema_of
from holdfast.types.information import TypeInformation


class CsvFormat(LinesFormat):
    """Lines of CSV. With a header, columns are found by name and a file may have more of them; without, their number
    and order are the schema's.

    An empty field is None; an empty text is written as ``""``. A quoted value must not contain a line end.
    """

    def __init__(self, type_info: TypeInformation, header: bool = True, delimiter: str = ",") -> None:
        for field in schema_of(type_info):
            if kinds.is_nested(field.type):
                raise ProgramError(
                    f"Column {field.name!r} of the CSV source is {field.type}, and a CSV field holds one value. "
                    "Declare it as STRING and convert it in a map, or use JSON or Parquet."
                )
        if len(delimiter) != 1 or delimiter in '"\r\n' or not delimiter.isascii():
            raise ConfigurationError(
                f"The CSV delimiter is {delimiter!r}; one ASCII character is expected, as ',' or '\\t'."
            )
        self.type_info = type_info
        self._header = header
        self._delimiter = delimiter

    def begin(self, content: Content) -> tuple[int, LineParser]:
        schema = schema_of(self.type_info)
        if not self._header:
            return after_byte_order_mark(content), _Parser(schema, schema.names, self._delimiter)
        line, end = first_line(content)
        names = header_of(line, self._delimiter)
        missing = [name for name in schema.names if names.count(name) != 1]
        if missing and end:
            raise UnfitFileError(
                f"{content.file.location} does not have the declared columns: {missing} are missing or there twice. "
                f"Its first line has {names}, the source expects {schema.names}. "
                "Declare the columns that the file has, or header=False if the first line is data."
            )
        return end, _Parser(schema, names, self._delimiter)


def header_of(line: bytes, delimiter: str) -> list[str]:
    return next(csv.reader([line.decode("utf-8", errors="replace")], delimiter=delimiter), [])


class _Parser:
    def __init__(self, schema: pa.Schema, names: list[str], delimiter: str) -> None:
        self._schema = schema
        self._names = names
        self._parse = pc.ParseOptions(delimiter=delimiter)
        self._convert = pc.ConvertOptions(
            column_types=schema,
            include_columns=schema.names,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )

    def __call__(self, lines: bytes) -> pa.RecordBatch:
        if not lines.strip(b"\r\n"):
            return pa.RecordBatch.from_pylist([], self._schema)
        _check_quotes(lines)
        whole = pc.ReadOptions(use_threads=False, block_size=len(lines) + 1, column_names=self._names)
        table = pc.read_csv(
            pa.BufferReader(lines), read_options=whole, parse_options=self._parse, convert_options=self._convert
        )
        columns = [column.combine_chunks() for column in table.columns]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _check_quotes(lines: bytes) -> None:
    """A value that goes on in the next line would be cut where a slice ends, and not everywhere with an error."""
    data = np.frombuffer(lines, dtype=np.uint8)
    quotes = np.flatnonzero(data == ord('"'))
    if not len(quotes):
        return
    line_of_quote = np.searchsorted(np.flatnonzero(data == ord("\n")), quotes)
    if np.any(np.bincount(line_of_quote) % 2):
        raise ValueError("a quoted value does not end in its line; values with line ends cannot be read")
