"""Values as bytes: what systems of messages read and write."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.errors import RowTypeError
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

    def read_all(self, messages: Sequence[bytes]) -> tuple[Batch, Sequence[int] | None]:
        """Rows, and the positions of the messages that they are of: None where each message gave one. Override it where
        some give none.
        """
        return self.deserialize_all(messages), None

    def get_produced_type(self) -> TypeInformation | None:
        """The type of the rows; None for pickled rows."""
        return None


class SkippingSchema(DeserializationSchema):
    """A schema that leaves out messages that another one cannot read."""

    def __init__(self, schema: DeserializationSchema) -> None:
        self._schema = schema

    def deserialize(self, message: bytes) -> Any:
        """None for a message that cannot be read."""
        batch, _ = self.read_all([message])
        return batch.values[0] if len(batch) else None

    def deserialize_all(self, messages: Sequence[bytes]) -> Batch:
        """Rows of the messages that can be read."""
        return self.read_all(messages)[0]

    def read_all(self, messages: Sequence[bytes]) -> tuple[Batch, Sequence[int] | None]:
        """Together where all can be read; else each by itself to find out which cannot."""
        try:
            return self._schema.deserialize_all(messages), None
        except Exception:
            kept = [place for place, message in enumerate(messages) if self._readable(message)]
        return self._schema.deserialize_all([messages[place] for place in kept]) if kept else Batch([]), kept

    def get_produced_type(self) -> TypeInformation | None:
        return self._schema.get_produced_type()

    def _readable(self, message: bytes) -> bool:
        try:
            self._schema.deserialize_all([message])
        except Exception:
            return False
        return True


class RowFieldExtractorSchema(SerializationSchema):
    """One field of a row, which must be bytes: the key or the value of a record as the program made it."""

    def __init__(self, field_index: int) -> None:
        if field_index < 0:
            raise ValueError(f"Field index must be non-negative, got: {field_index}")
        self._field = field_index

    def serialize(self, value: Any) -> bytes:
        found = value[self._field]
        if not isinstance(found, (bytes, bytearray)):
            raise RowTypeError(
                f"Field {self._field} of {value!r} is {type(found).__name__}; RowFieldExtractorSchema takes bytes. Map "
                "the stream so that the field is bytes."
            )
        return bytes(found)


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
