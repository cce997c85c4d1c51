"""Avro, one record per message."""

from __future__ import annotations

from holdfast.common.coverage import answer_missing_names as _answer_missing_names
from holdfast.connectors.formats.avro_rows import AvroRowDeserializationSchema, AvroRowSerializationSchema

__all__ = ["AvroRowDeserializationSchema", "AvroRowSerializationSchema"]

_answer_missing_names(__name__)
