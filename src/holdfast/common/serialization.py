"""Values as bytes, and rows as lines of text."""

from __future__ import annotations

from holdfast.connectors.encoder import Encoder
from holdfast.connectors.serialization import (
    ByteArraySchema,
    DeserializationSchema,
    SerializationSchema,
    SimpleStringSchema,
)

__all__ = ["ByteArraySchema", "DeserializationSchema", "Encoder", "SerializationSchema", "SimpleStringSchema"]
