"""Values as bytes, and rows as lines of text."""

from __future__ import annotations

from holdfast.connectors.encoder import Encoder
from holdfast.connectors.file_sink.formats import SinkFormat as BulkWriterFactory
from holdfast.connectors.serialization import (
    ByteArraySchema,
    DeserializationSchema,
    RowFieldExtractorSchema,
    SerializationSchema,
    SimpleStringSchema,
)
from holdfast.coverage.answers import answer_missing_names as _answer_missing_names

__all__ = [
    "BulkWriterFactory",
    "ByteArraySchema",
    "DeserializationSchema",
    "Encoder",
    "RowFieldExtractorSchema",
    "SerializationSchema",
    "SimpleStringSchema",
]

_answer_missing_names(__name__)
