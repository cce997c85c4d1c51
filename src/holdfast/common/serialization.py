"""Values as bytes, and rows as lines of text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from holdfast.connectors.encoder import Encoder

__all__ = ["DeserializationSchema", "Encoder", "SerializationSchema", "SimpleStringSchema"]


class SerializationSchema(ABC):
    """Turns a row into bytes. Picklable; called in tasks, once per row."""

    @abstractmethod
    def serialize(self, value: Any) -> bytes: ...


class DeserializationSchema(ABC):
    """Turns bytes into a row. Picklable; called in tasks, once per message."""

    @abstractmethod
    def deserialize(self, message: bytes) -> Any: ...


@dataclass(frozen=True)
class SimpleStringSchema(SerializationSchema, DeserializationSchema):
    """Text in one charset."""

    charset: str = "UTF-8"

    def serialize(self, value: Any) -> bytes:
        return str(value).encode(self.charset)

    def deserialize(self, message: bytes) -> str:
        return message.decode(self.charset)
