"""JSON lines: one object per line, its members are columns."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.json as pj
from pyarrow import types as kinds

from holdfast.connectors.files.content import Content
from holdfast.connectors.files.lines import LineParser, LinesFormat, after_byte_order_mark
from holdfast.errors import ProgramError
from holdfast.types.arrow import schema_of
from holdfast.types.information import TypeInformation


class JsonFormat(LinesFormat):
    """A member that is missing or null is None, members that are not declared are ignored. Dates and timestamps are
    ISO 8601 texts, decimals are numbers or texts."""

    def __init__(self, type_info: TypeInformation) -> None:
        for field in schema_of(type_info):
            if _contains(field.type, _is_unreadable):
                raise ProgramError(
                    f"Column {field.name!r} of the JSON source is {field.type}, which cannot be read from JSON. "
                    "Declare it as STRING and convert it in a map, or use Parquet."
                )
        self.type_info = type_info

    def begin(self, content: Content) -> tuple[int, LineParser]:
        return after_byte_order_mark(content), self.parser()

    def parser(self) -> LineParser:
        return _Parser(schema_of(self.type_info))


class _Parser:
    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        as_text = pa.schema([(field.name, _with_dates_as_text(field.type)) for field in schema])
        self._options = pj.ParseOptions(explicit_schema=as_text, unexpected_field_behavior="ignore")

    def __call__(self, lines: bytes) -> pa.RecordBatch:
        if not lines.strip():
            return pa.RecordBatch.from_pylist([], self._schema)
        whole = pj.ReadOptions(use_threads=False, block_size=len(lines) + 1)
        table = pj.read_json(pa.BufferReader(lines), read_options=whole, parse_options=self._options)
        columns = [table.column(field.name).combine_chunks().cast(field.type) for field in self._schema]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _is_unreadable(data_type: pa.DataType) -> bool:
    return bool(kinds.is_map(data_type) or kinds.is_binary(data_type) or kinds.is_time(data_type))


def _contains(data_type: pa.DataType, wanted: Callable[[pa.DataType], bool]) -> bool:
    children = [data_type.field(index).type for index in range(data_type.num_fields)]
    return wanted(data_type) or any(_contains(child, wanted) for child in children)


def _with_dates_as_text(data_type: pa.DataType) -> pa.DataType:
    """The reader of JSON takes a date for a number; a cast from its text does not."""
    if kinds.is_date(data_type):
        return pa.string()
    if kinds.is_list(data_type):
        return pa.list_(_with_dates_as_text(data_type.value_type))
    if kinds.is_struct(data_type):
        return pa.struct([(field.name, _with_dates_as_text(field.type)) for field in data_type])
    return data_type
