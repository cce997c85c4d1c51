"""CSV: one record per line, with or without a header."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
from pyarrow import types as kinds

from holdfast.connectors.csv_dialect import CsvDialect
from holdfast.connectors.files.content import Content
from holdfast.connectors.files.lines import LineParser, LinesFormat, after_byte_order_mark, first_line
from holdfast.errors import ProgramError, UnfitFileError
from holdfast.types.arrow import schema_of
from holdfast.types.information import TypeInformation

_COMMENT = re.compile(rb"^[ \t]*#[^\n]*", re.MULTILINE)


class CsvFormat(LinesFormat):
    """Lines of CSV. With a header, columns are found by name and a file may have more of them, unless the dialect says
    otherwise; without, their number and order are the schema's.

    A quoted value must not contain a line end.
    """

    def __init__(
        self, type_info: TypeInformation, dialect: CsvDialect, array_separators: Mapping[str, str] | None = None
    ) -> None:
        """``array_separators`` are those of columns with arrays of single values, by name."""
        self._arrays = dict(array_separators or {})
        for field in schema_of(type_info):
            nested = kinds.is_nested(field.type.value_type) if kinds.is_list(field.type) else True
            if kinds.is_nested(field.type) and (nested or field.name not in self._arrays):
                raise ProgramError(
                    f"Column {field.name!r} of the CSV source is {field.type}, and a CSV field holds one value. "
                    "Declare it as STRING and convert it in a map, or use JSON or Parquet."
                )
        self.type_info = type_info
        self._dialect = dialect

    def begin(self, content: Content) -> tuple[int, LineParser]:
        schema, dialect = schema_of(self.type_info), self._dialect
        begin, names = after_byte_order_mark(content), schema.names
        if dialect.header:
            line, begin = self._next_line(content, 0)
            names = [name or "" for name in fields_of(line, dialect)]
            if begin:
                self._check_header(content, names, schema.names)
        if dialect.skip_first:
            _, begin = self._next_line(content, begin)
        return begin, self.parser(names)

    def parser(self, names: list[str] | None = None) -> LineParser:
        """Parses lines that have fields of these names, or those of the type."""
        schema = schema_of(self.type_info)
        return _Parser(schema, names or schema.names, self._dialect, self._arrays)

    def cleaned(self, lines: bytes) -> bytes:
        return _COMMENT.sub(b"", lines) if self._dialect.comments else lines

    def _next_line(self, content: Content, begin: int) -> tuple[bytes, int]:
        """A line that is no comment, and where the one behind it begins."""
        while True:
            line, end = first_line(content, begin)
            if end == begin or self.cleaned(line) == line:
                return line, end
            begin = end

    def _check_header(self, content: Content, names: list[str], expected: list[str]) -> None:
        missing = [name for name in expected if names.count(name) != 1]
        if missing:
            raise UnfitFileError(
                f"{content.file.location} does not have the declared columns: {missing} are missing or there twice. "
                f"Its first line has {names}, the source expects {expected}. "
                "Declare the columns that the file has, or header=False if the first line is data."
            )
        if self._dialect.strict_header and names != expected:
            raise UnfitFileError(
                f"{content.file.location} has the columns {names}; with strict headers exactly {expected} are "
                "expected, in this order. Correct the file or the schema, or leave set_strict_headers() out."
            )


def header_of(line: bytes, delimiter: str) -> list[str]:
    return [name or "" for name in fields_of(line, CsvDialect(delimiter))]


def fields_of(line: bytes, dialect: CsvDialect) -> list[str | None]:
    """The texts of one record."""
    reader = csv.reader(
        [line.decode("utf-8", errors="replace")],
        delimiter=dialect.separator,
        quotechar=dialect.quote,
        escapechar=dialect.escape,
        quoting=csv.QUOTE_NONE if dialect.quote is None else csv.QUOTE_MINIMAL,
    )
    return [None if field == dialect.null and field else field for field in next(reader, [])]


class _Parser:
    def __init__(self, schema: pa.Schema, names: list[str], dialect: CsvDialect, arrays: Mapping[str, str]) -> None:
        self._schema = schema
        self._names = names
        self._dialect = dialect
        self._arrays = arrays
        self._parse = pc.ParseOptions(
            delimiter=dialect.separator,
            quote_char=dialect.quote or False,
            double_quote=dialect.quote is not None,
            escape_char=dialect.escape or False,
        )
        self._convert = pc.ConvertOptions(
            column_types={one.name: pa.string() if one.name in arrays else one.type for one in schema},
            include_columns=schema.names,
            null_values=[] if dialect.null is None else [dialect.null],
            strings_can_be_null=True,
            # Where an empty field is none, "" is a text.
            quoted_strings_can_be_null=bool(dialect.null),
        )

    def __call__(self, lines: bytes) -> pa.RecordBatch:
        if not lines.strip(b"\r\n"):
            return pa.RecordBatch.from_pylist([], self._schema)
        _check_quotes(lines, self._dialect)
        whole = pc.ReadOptions(use_threads=False, block_size=len(lines) + 1, column_names=self._names)
        table = pc.read_csv(
            pa.BufferReader(lines), read_options=whole, parse_options=self._parse, convert_options=self._convert
        )
        columns = [self._column(field, table.column(field.name).combine_chunks()) for field in self._schema]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _column(self, field: pa.Field, column: pa.Array) -> pa.Array:
        if field.name not in self._arrays:
            return column
        separator = self._arrays[field.name]
        return pa.array([_elements(text, separator) for text in column.to_pylist()], pa.list_(pa.string())).cast(
            field.type
        )


def _elements(text: str | None, separator: str) -> list[str] | None:
    if not text:
        return None if text is None else []
    return text.split(separator) if separator else [text]


def _check_quotes(lines: bytes, dialect: CsvDialect) -> None:
    """A value that goes on in the next line would be cut where a slice ends, and not everywhere with an error."""
    if dialect.quote is None:
        return
    if dialect.escape is not None:
        # An escaped quote begins and ends nothing; its place in the line does not matter here.
        lines = re.sub(re.escape(dialect.escape.encode()) + rb"[^\n]", b"", lines)
    data = np.frombuffer(lines, dtype=np.uint8)
    quotes = np.flatnonzero(data == ord(dialect.quote))
    if not len(quotes):
        return
    line_of_quote = np.searchsorted(np.flatnonzero(data == ord("\n")), quotes)
    if np.any(np.bincount(line_of_quote) % 2):
        raise ValueError("a quoted value does not end in its line; values with line ends cannot be read")
