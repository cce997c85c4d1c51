"""Rows as Avro records, one per message without a header, under PyFlink's names."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from typing import Any

from holdfast.connectors.serialization import DeserializationSchema, SerializationSchema
from holdfast.errors import MissingExtraError, ProgramError
from holdfast.runtime.batch import Batch
from holdfast.types.information import TypeInformation
from holdfast.types.row import Row, given_names
from holdfast.types.typeinfo import Types

_TYPES: dict[str, TypeInformation] = {
    "string": Types.STRING(),
    "int": Types.INT(),
    "long": Types.LONG(),
    "float": Types.FLOAT(),
    "double": Types.DOUBLE(),
    "boolean": Types.BOOLEAN(),
    "bytes": Types.BYTES(),
}


class AvroRowDeserializationSchema(DeserializationSchema):
    """A message is one record of the schema, in Avro's binary encoding; it becomes a row with the fields' names."""

    def __init__(self, record_class: str | None = None, avro_schema_string: str | None = None) -> None:
        self._schema = _record_schema(record_class, avro_schema_string)
        self._read: Callable[[bytes], Row] | None = None

    def deserialize(self, message: bytes) -> Row:
        if self._read is None:
            self._read = _reader(self._schema)
        return self._read(message)

    def deserialize_all(self, messages: Sequence[bytes]) -> Batch:
        if self._read is None:
            self._read = _reader(self._schema)
        return Batch(list(map(self._read, messages)))

    def get_produced_type(self) -> TypeInformation:
        fields = self._schema["fields"]
        return Types.ROW_NAMED([field["name"] for field in fields], [_type_of(field["type"]) for field in fields])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_read": None}


class AvroRowSerializationSchema(SerializationSchema):
    """Writes rows, tuples, or mappings as records of the schema."""

    def __init__(self, record_class: str | None = None, avro_schema_string: str | None = None) -> None:
        self._schema = _record_schema(record_class, avro_schema_string)
        self._write: Callable[[Any], bytes] | None = None

    def serialize(self, value: Any) -> bytes:
        if self._write is None:
            self._write = _writer(self._schema)
        return self._write(value)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_write": None}


def _record_schema(record_class: str | None, text: str | None) -> dict[str, Any]:
    if record_class is not None or text is None:
        raise ProgramError("Give the Avro schema as avro_schema_string: there are no Java classes of records here.")
    try:
        schema = json.loads(text)
    except ValueError as cause:
        raise ProgramError(f"avro_schema_string is not JSON: {cause}.") from cause
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise ProgramError("avro_schema_string must be the schema of a record, whose fields become those of the row.")
    _fastavro()
    return schema


def _fastavro() -> Any:
    try:
        import fastavro
    except ImportError as cause:
        raise MissingExtraError("fastavro", "avro", "The Avro format") from cause
    return fastavro


def _reader(schema: dict[str, Any]) -> Callable[[bytes], Row]:
    avro = _fastavro()
    parsed, read = avro.parse_schema(schema), avro.schemaless_reader
    make = Row.factory([field["name"] for field in schema["fields"]])

    def row(message: bytes) -> Row:
        stream = BytesIO(message)
        record = read(stream, parsed, None)
        if stream.tell() != len(message):
            raise ValueError(f"{len(message) - stream.tell()} of {len(message)} bytes are left behind the Avro record")
        return make(record.values())

    return row


def _writer(schema: dict[str, Any]) -> Callable[[Any], bytes]:
    avro = _fastavro()
    parsed, write = avro.parse_schema(schema), avro.schemaless_writer
    names = [field["name"] for field in schema["fields"]]

    def message(value: Any) -> bytes:
        stream = BytesIO()
        write(stream, parsed, _record_of(value, names))
        return stream.getvalue()

    return message


def _record_of(value: Any, names: Sequence[str]) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    own = given_names(value) if isinstance(value, Row) else None
    return dict(zip(own or names, value, strict=True))


def _type_of(avro_type: Any) -> TypeInformation:
    """Simple types, and unions of one with null; values of any other type are pickled."""
    if isinstance(avro_type, list):
        others = [each for each in avro_type if each != "null"]
        return _type_of(others[0]) if len(others) == 1 else Types.PICKLED_BYTE_ARRAY()
    if isinstance(avro_type, dict) and "logicalType" not in avro_type:
        avro_type = avro_type.get("type")
    return (
        _TYPES.get(avro_type, Types.PICKLED_BYTE_ARRAY()) if isinstance(avro_type, str) else Types.PICKLED_BYTE_ARRAY()
    )
