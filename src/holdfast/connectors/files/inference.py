"""The columns of files of which the program does not say them: those of the first one, looked up on the driver."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.json as pj

from holdfast.connectors.files.content import content_of
from holdfast.connectors.files.csv_lines import header_of
from holdfast.connectors.files.format import InputFile
from holdfast.connectors.files.lines import after_byte_order_mark, first_line, read_lines
from holdfast.connectors.files.parquet import schema_of_file
from holdfast.connectors.files.schemas import infer
from holdfast.connectors.files.tree import FileTree
from holdfast.errors import ProgramError
from holdfast.types.information import TypeInformation

#: How much of a file of lines is looked at.
_SAMPLE_BYTES = 4 << 20

SchemaOf = Callable[[InputFile], pa.Schema]


def inferred_type(tree: FileTree, schema_of_first: SchemaOf) -> TypeInformation:
    """The row type of the first file by name that has rows."""
    for found in sorted(tree.files(), key=lambda file: file.path):
        file = InputFile(*tree.locate(found.path), found.size)
        schema = schema_of_first(file)
        if len(schema):
            return infer(file.location, schema)
    raise ProgramError(
        "There is no file with rows yet from which the columns could be taken. "
        "Give the source a schema, for instance 'id BIGINT, name STRING'."
    )


parquet_schema: SchemaOf = schema_of_file


def json_schema(file: InputFile) -> pa.Schema:
    content = content_of(file)
    try:
        lines = read_lines(content, after_byte_order_mark(content), _SAMPLE_BYTES)
    finally:
        content.close()
    return _sampled(file, lambda: pj.read_json(pa.BufferReader(lines)).schema) if lines.strip() else pa.schema([])


def csv_schema(delimiter: str) -> SchemaOf:
    def schema_of_first(file: InputFile) -> pa.Schema:
        content = content_of(file)
        try:
            line, begin = first_line(content)
            lines = read_lines(content, begin, _SAMPLE_BYTES)
        finally:
            content.close()
        if not lines.strip():
            return pa.schema([])
        names = pc.ReadOptions(column_names=header_of(line, delimiter))
        options = pc.ParseOptions(delimiter=delimiter)
        return _sampled(file, lambda: pc.read_csv(pa.BufferReader(lines), names, options).schema)

    return schema_of_first


def _sampled(file: InputFile, parse: Callable[[], pa.Schema]) -> pa.Schema:
    try:
        return parse()
    except pa.ArrowInvalid as cause:
        raise ProgramError(
            f"The columns of {file.location} could not be found out ({cause}). "
            "Give the source a schema, for instance 'id BIGINT, name STRING'."
        ) from cause
