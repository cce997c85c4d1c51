"""Avro, one record per message."""

from __future__ import annotations

from holdfast.connectors.formats.avro_rows import AvroRowDeserializationSchema, AvroRowSerializationSchema
from holdfast.coverage.answers import answer_missing_names as _answer_missing_names

__all__ = ["AvroRowDeserializationSchema", "AvroRowSerializationSchema"]

_answer_missing_names(__name__)
