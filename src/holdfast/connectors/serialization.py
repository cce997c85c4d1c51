"""Values as bytes: what systems of messages read and write."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.runtime.batch import Batch
from holdfast.types.information import TypeInformation
from holdfast.types.typeinfo import Types


class SerializationSchema(ABC):
    """Turns a row into bytes. Picklable; called in tasks."""

    @abstractmethod
    def serialize(self, value: Any) -> bytes: ...

    def serialize_all(self, values: Sequence[Any]) -> list[bytes]:
        """The rows of a batch. Override it where many at once cost less than one after the other."""
        return [self.serialize(value) for value in values]


class DeserializationSchema(ABC):
    """Turns bytes into a row. Picklable; called in tasks."""

    @abstractmethod
    def deserialize(self, message: bytes) -> Any: ...

    def deserialize_all(self, messages: Sequence[bytes]) -> Batch:
        """As many rows as messages. Override it where many at once cost less than one after the other."""
        return Batch([self.deserialize(message) for message in messages])

    def get_produced_type(self) -> TypeInformation | None:
        """The type of the rows; None for pickled rows."""
        return None


@dataclass(frozen=True)
class SimpleStringSchema(SerializationSchema, DeserializationSchema):
    """Text in one charset."""

    charset: str = "UTF-8"

    def serialize(self, value: Any) -> bytes:
        return str(value).encode(self.charset)

    def serialize_all(self, values: Sequence[Any]) -> list[bytes]:
        charset = self.charset
        return [str(value).encode(charset) for value in values]

    def deserialize(self, message: bytes) -> str:
        return message.decode(self.charset)

    def deserialize_all(self, messages: Sequence[bytes]) -> Batch:
        charset = self.charset
        return Batch([message.decode(charset) for message in messages])

    def get_produced_type(self) -> TypeInformation:
        return Types.STRING()


@dataclass(frozen=True)
class ByteArraySchema(SerializationSchema, DeserializationSchema):
    """Bytes as they are."""

    def serialize(self, value: Any) -> bytes:
        return bytes(value)

    def deserialize(self, message: bytes) -> bytes:
        return message

    def deserialize_all(self, messages: Sequence[bytes]) -> Batch:
        return Batch(list(messages))

    def get_produced_type(self) -> TypeInformation:
        return Types.BYTES()
