"""Rows as JSON objects, one per message, under PyFlink's names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import msgspec
import pyarrow as pa

from holdfast.connectors.file_sink.formats import with_nanoseconds_as_text
from holdfast.connectors.files.json_lines import JsonFormat
from holdfast.connectors.reading import ArrowBatches
from holdfast.connectors.serialization import DeserializationSchema, SerializationSchema, SkippingSchema
from holdfast.errors import ProgramError
from holdfast.runtime.batch import Batch
from holdfast.types.arrow import row_writer, schema_of
from holdfast.types.information import TypeInformation
from holdfast.types.resolve import resolve


class JsonRowDeserializationSchema(DeserializationSchema):
    """The members of an object are the fields of the type. One that is missing or null is None, members that are not
    declared are ignored."""

    Builder: ClassVar[type[JsonRowDeserializationSchemaBuilder]]

    def __init__(self, type_info: Any, complete: bool = False) -> None:
        """``complete``: an object must have all fields."""
        self._type = resolve(type_info)
        self._complete = complete
        self._format = JsonFormat(self._type)
        self._batches = ArrowBatches(self._type)
        self._parse: Callable[[bytes], pa.RecordBatch] | None = None

    @staticmethod
    def builder() -> JsonRowDeserializationSchemaBuilder:
        return JsonRowDeserializationSchemaBuilder()

    def deserialize(self, message: bytes) -> Any:
        return self.deserialize_all([message]).values[0]

    def deserialize_all(self, messages: Sequence[bytes]) -> Batch:
        """All messages are parsed as lines of one text, into columns."""
        if self._complete:
            _check_complete(messages, [field.name for field in schema_of(self._type)])
        if self._parse is None:
            self._parse = self._format.parser()
        text = b"\n".join(messages)
        if text.count(b"\n") != len(messages) - 1 or b"\r" in text:
            # Inside of an object a line end is white space: in strings it must be escaped.
            text = b"\n".join([message.replace(b"\n", b" ").replace(b"\r", b" ") for message in messages])
        rows = self._parse(text)
        if rows.num_rows != len(messages):
            raise ValueError(f"{len(messages)} messages hold {rows.num_rows} JSON objects; each must hold one")
        return self._batches(rows)

    def get_produced_type(self) -> TypeInformation:
        return self._type

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_parse": None}


class JsonRowDeserializationSchemaBuilder:
    def __init__(self) -> None:
        self._type: Any = None
        self._complete = False
        self._skips = False

    def type_info(self, type_info: Any) -> JsonRowDeserializationSchemaBuilder:
        """Anything that names a type with fields: Types.ROW_NAMED(...), DDL text, a dataclass."""
        self._type = type_info
        return self

    def json_schema(self, json_schema: str) -> JsonRowDeserializationSchemaBuilder:
        raise ProgramError(
            "json_schema(...) is not available: declare the fields with type_info(Types.ROW_NAMED(names, types)), DDL "
            "or a dataclass."
        )

    def fail_on_missing_field(self) -> JsonRowDeserializationSchemaBuilder:
        """A field that an object does not have fails the job; without it the field is None."""
        self._complete = True
        return self

    def ignore_parse_errors(self) -> JsonRowDeserializationSchemaBuilder:
        """Leave out messages that cannot be read, instead of failing the job."""
        self._skips = True
        return self

    def build(self) -> DeserializationSchema:
        if self._type is None:
            raise ProgramError("A JsonRowDeserializationSchema needs type_info(...): the fields that it reads.")
        if self._complete and self._skips:
            raise ProgramError(
                "A JsonRowDeserializationSchema was given both fail_on_missing_field() and ignore_parse_errors(): one "
                "fails where the other goes on. Leave one out."
            )
        schema = JsonRowDeserializationSchema(self._type, self._complete)
        return SkippingSchema(schema) if self._skips else schema


class JsonRowSerializationSchema(SerializationSchema):
    """Writes an object with a member for each field of the type. Without a type, the rows must be values that JSON
    has: dicts, lists, texts, numbers, dataclasses."""

    Builder: ClassVar[type[JsonRowSerializationSchemaBuilder]]

    def __init__(self, type_info: Any = None) -> None:
        self._type = None if type_info is None else resolve(type_info)
        self._write: Callable[[Sequence[Any]], pa.RecordBatch] | None = None

    @staticmethod
    def builder() -> JsonRowSerializationSchemaBuilder:
        return JsonRowSerializationSchemaBuilder()

    def serialize(self, value: Any) -> bytes:
        return self.serialize_all([value])[0]

    def serialize_all(self, values: Sequence[Any]) -> list[bytes]:
        encode = msgspec.json.Encoder(enc_hook=str).encode
        if self._type is None:
            return [encode(value) for value in values]
        if self._write is None:
            self._write = row_writer(self._type)
        columns = with_nanoseconds_as_text(self._write(values))
        return [encode(record) for record in columns.to_pylist(maps_as_pydicts="strict")]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_write": None}


class JsonRowSerializationSchemaBuilder:
    def __init__(self) -> None:
        self._type: Any = None

    def with_type_info(self, type_info: Any) -> JsonRowSerializationSchemaBuilder:
        self._type = type_info
        return self

    def build(self) -> JsonRowSerializationSchema:
        return JsonRowSerializationSchema(self._type)


JsonRowDeserializationSchema.Builder = JsonRowDeserializationSchemaBuilder
JsonRowSerializationSchema.Builder = JsonRowSerializationSchemaBuilder


def _check_complete(messages: Sequence[bytes], names: Sequence[str]) -> None:
    for message in messages:
        found = msgspec.json.decode(message)
        missing = [name for name in names if name not in found]
        if missing:
            raise ValueError(f"Could not find field with name '{missing[0]}'; the object has {sorted(found)}")
