"""JSON, one object per message."""

from __future__ import annotations

from holdfast.connectors.formats.json_rows import JsonRowDeserializationSchema, JsonRowSerializationSchema

__all__ = ["JsonRowDeserializationSchema", "JsonRowSerializationSchema"]
