"""Rows as CSV, one record per message, under PyFlink's names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import pyarrow as pa

from holdfast.connectors.csv_dialect import CsvDialect
from holdfast.connectors.files.csv_lines import CsvFormat, fields_of
from holdfast.connectors.reading import ArrowBatches
from holdfast.connectors.serialization import DeserializationSchema, SerializationSchema, SkippingSchema
from holdfast.errors import ProgramError
from holdfast.runtime.batch import Batch
from holdfast.types.arrow import schema_of
from holdfast.types.information import ElementsTypeInfo, FieldsTypeInfo, TypeInformation
from holdfast.types.resolve import resolve


class CsvRowDeserializationSchema(DeserializationSchema):
    """The fields of a record are those of the type, in their order."""

    Builder: ClassVar[type[_ReadingBuilder]]

    def __init__(self, type_info: FieldsTypeInfo, dialect: CsvDialect, lenient: bool = False) -> None:
        """``lenient``: fields that cannot be read, or are not there, are None."""
        self._type = type_info
        self._dialect = dialect
        self._format = CsvFormat(type_info, dialect, _separators(type_info, dialect))
        self._batches = ArrowBatches(type_info)
        self._lenient = lenient

    def deserialize(self, message: bytes) -> Any:
        return self.deserialize_all([message]).values[0]

    def deserialize_all(self, messages: Sequence[bytes]) -> Batch:
        """All messages are parsed as lines of one text, into columns."""
        lines = [self._format.cleaned(message).strip(b"\r\n") for message in messages]
        try:
            return self._batches(self._parsed(lines))
        except ValueError:
            if not self._lenient:
                raise
        return self._batches(pa.concat_batches([self._parsed_by_field(line) for line in lines]))

    def _parsed(self, lines: list[bytes]) -> pa.RecordBatch:
        rows = self._format.parser()(b"\n".join(lines))
        if rows.num_rows != len(lines):
            raise ValueError(f"{len(lines)} messages hold {rows.num_rows} records of CSV; each must hold one")
        return rows

    def _parsed_by_field(self, line: bytes) -> pa.RecordBatch:
        schema = schema_of(self._type)
        fields = fields_of(line, self._dialect)
        if len(fields) > len(schema):
            raise ValueError(f"the record has {len(fields)} fields, and the type {len(schema)}")
        fields += [None] * (len(schema) - len(fields))
        separators = _separators(self._type, self._dialect)
        columns = [
            _value(text, field.type, separators.get(field.name)) for text, field in zip(fields, schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def get_produced_type(self) -> TypeInformation:
        return self._type


class CsvRowSerializationSchema(SerializationSchema):
    """A record with the fields of a row, and its line end."""

    Builder: ClassVar[type[_WritingBuilder]]

    def __init__(self, type_info: FieldsTypeInfo, dialect: CsvDialect) -> None:
        self._fields = len(type_info.field_types)
        self._dialect = dialect

    def serialize(self, value: Any) -> bytes:
        fields = tuple(value)
        if len(fields) != self._fields:
            raise ValueError(f"{value!r} has {len(fields)} fields; the schema was made for {self._fields}")
        return self._dialect.record(fields).encode()


class _Builder:
    """What both builders set."""

    def __init__(self, type_info: Any) -> None:
        if type_info is None:
            raise TypeError("Type information must not be None")
        resolved = resolve(type_info)
        if not isinstance(resolved, FieldsTypeInfo):
            raise ProgramError(
                f"A record of CSV has fields, and {resolved.describe()} has none. Give Types.ROW_NAMED(names, types), "
                "a dataclass or DDL."
            )
        self._type = resolved
        self._dialect = CsvDialect()

    def _with(self, **parts: Any) -> Self:
        self._dialect = replace(self._dialect, **parts)
        return self


class _ReadingBuilder(_Builder):
    """Collects how records are written that are read."""

    def __init__(self, type_info: Any) -> None:
        super().__init__(type_info)
        self._lenient = False

    def set_field_delimiter(self, delimiter: str) -> Self:
        return self._with(separator=delimiter)

    def set_allow_comments(self, allow_comments: bool) -> Self:
        return self._with(comments=allow_comments)

    def set_array_element_delimiter(self, delimiter: str) -> Self:
        return self._with(array_separator=delimiter)

    def set_quote_character(self, c: str) -> Self:
        return self._with(quote=c)

    def set_escape_character(self, c: str) -> Self:
        return self._with(escape=c)

    def set_null_literal(self, null_literal: str) -> Self:
        return self._with(null=null_literal)

    def set_ignore_parse_errors(self, ignore_parse_errors: bool) -> Self:
        """Fields that cannot be read are None, and messages that are no records are left out, instead of failing the
        job.
        """
        self._lenient = ignore_parse_errors
        return self

    def build(self) -> DeserializationSchema:
        schema = CsvRowDeserializationSchema(self._type, self._dialect, self._lenient)
        return SkippingSchema(schema) if self._lenient else schema


class _WritingBuilder(_Builder):
    """Collects how records are written."""

    def set_field_delimiter(self, c: str) -> Self:
        return self._with(separator=c)

    def set_line_delimiter(self, delimiter: str) -> Self:
        return self._with(line_end=delimiter)

    def set_array_element_delimiter(self, delimiter: str) -> Self:
        return self._with(array_separator=delimiter)

    def disable_quote_character(self) -> Self:
        return self._with(quote=None)

    def set_quote_character(self, c: str) -> Self:
        return self._with(quote=c)

    def set_escape_character(self, c: str) -> Self:
        return self._with(escape=c)

    def set_null_literal(self, s: str) -> Self:
        return self._with(null=s)

    def build(self) -> CsvRowSerializationSchema:
        return CsvRowSerializationSchema(self._type, self._dialect)


CsvRowDeserializationSchema.Builder = _ReadingBuilder
CsvRowSerializationSchema.Builder = _WritingBuilder


def _value(text: str | None, wanted: pa.DataType, separator: str | None) -> pa.Array:
    given = pa.array([text if separator is None or text is None else text.split(separator)])
    try:
        return given.cast(wanted)
    except pa.ArrowInvalid:
        return pa.nulls(1, wanted)


def _separators(type_info: FieldsTypeInfo, dialect: CsvDialect) -> dict[str, str]:
    arrays = zip(type_info.field_names, type_info.field_types, strict=True)
    return {name: dialect.array_separator for name, one in arrays if isinstance(one, ElementsTypeInfo)}
