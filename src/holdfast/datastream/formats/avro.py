"""Avro, one record per message."""

from __future__ import annotations

from holdfast.connectors.formats.avro_rows import AvroRowDeserializationSchema, AvroRowSerializationSchema

__all__ = ["AvroRowDeserializationSchema", "AvroRowSerializationSchema"]
