"""Serializers: values of a declared type as bytes, checked when they are written.

Bytes are msgpack of the stored form of the type (see storage_forms.py); pickle only where the type says so. A
serializer's snapshot is stored with the state, and tells at a restore what the bytes are and whether a new type can
read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import cached_property
from operator import itemgetter
from typing import Any

import msgspec

from holdfast.errors import StateMigrationError, StateTypeError
from holdfast.types.contract import TypeInformation
from holdfast.types.immutable import IMMUTABLE_CLASSES
from holdfast.types.storage_scalars import Form, Mismatch
from holdfast.types.type_changes import change_between

SNAPSHOT_VERSION = 1

_encode = msgspec.msgpack.Encoder().encode
#: Fewer values, as those of one entry of a map or of a short list, are encoded faster one by one.
_TOGETHER = 16



class Serializer:
    """Encodes and decodes values of one type. Get one with serializer_for.

    - ``encode(value) -> bytes``: StateTypeError when the value is not of the type. Fields and elements may be None, the
      value itself may not.
    - ``decode(data) -> value``: a new value each time.
    - ``immutable``: no value of the type can be changed in place.
    """

    def __init__(self, type_info: TypeInformation) -> None:
        self.type_info = type_info
        self.immutable: bool = type_info.immutable
        self.encode: Callable[[Any], bytes]
        self.decode: Callable[[bytes], Any]
        self.form: Form = type_info.stored_form()
        if self.form.framed:
            self.encode, self.decode = _encoder(type_info, self.form), _decoder(self.form)
        else:
            self.encode, self.decode = _unframed_encoder(type_info, self.form), _unframed_decoder(self.form)

    def encode_many(self, values: Sequence[Any]) -> list[bytes]:
        """``encode`` of each; what most values are is checked for all of them at once."""
        if len(values) >= _TOGETHER and self._are_plain(values):
            try:
                if self.form.ranged:
                    self._check_many(_encode(list(values)))
                return list(map(_encode, values))
            except (msgspec.ValidationError, OverflowError, UnicodeEncodeError):
                pass  # which of them it is, is found below
        return list(map(self.encode, values))

    def _are_plain(self, values: Sequence[Any]) -> bool:
        """Whether all of them are stored as they are."""
        plain, fields = self.form.plain, self.form.plain_fields
        classes = set(map(type, values))
        if fields is None or classes != {tuple}:
            return classes == {plain}
        return set(map(len, values)) == {len(fields)} and all(
            set(map(type, map(itemgetter(at), values))) == {field} for at, field in enumerate(fields)
        )

    @cached_property
    def _check_many(self) -> Callable[[bytes], Any]:
        return msgspec.msgpack.Decoder(list.__class_getitem__(self.form.stored_type)).decode

    def decode_many(self, data: Sequence[bytes]) -> list[Any]:
        return list(map(self.decode, data))

    def is_immutable(self, value: Any) -> bool:
        """True when this value cannot be changed in place; for pickled values the value itself tells."""
        return self.immutable or _is_immutable(value)

    def snapshot(self) -> dict[str, Any]:
        return {"version": SNAPSHOT_VERSION, "type": self.type_info.to_json()}

    def __reduce__(self) -> tuple[Any, ...]:
        return Serializer, (self.type_info,)

    def __repr__(self) -> str:
        return f"Serializer({self.type_info.describe()})"


def serializer_for(type_info: TypeInformation) -> Serializer:
    """The serializer of a declared type."""
    return Serializer(type_info)


def serializer_from_snapshot(snapshot: dict[str, Any]) -> Serializer:
    """The serializer that wrote the data stored under ``snapshot``."""
    version = snapshot.get("version")
    if version != SNAPSHOT_VERSION:
        raise StateMigrationError(
            f"State was stored with version {version!r} of the serializers; this version of Holdfast reads "
            f"{SNAPSHOT_VERSION}. Restore it with the version of Holdfast that wrote it."
        )
    return Serializer(TypeInformation.from_json(snapshot["type"]))


def old_values(snapshot: dict[str, Any]) -> Serializer:
    """A serializer of values that a function of the program migrates: instances are rows, since their class may
    have changed, or gone, since then.
    """
    return Serializer(serializer_from_snapshot(snapshot).type_info.bare())


class Compatibility(Enum):
    """How a new serializer stands to data that an old one wrote.

    Holdfast's own serializers give all but RECONFIGURED, which is for serializers that adapt themselves to old data.
    """

    AS_IS = "AS_IS"
    AFTER_MIGRATION = "AFTER_MIGRATION"
    RECONFIGURED = "RECONFIGURED"
    INCOMPATIBLE = "INCOMPATIBLE"


def compatibility(old_snapshot: dict[str, Any], new: Serializer) -> Compatibility:
    """How ``new`` reads what was stored under ``old_snapshot``."""
    old_type = serializer_from_snapshot(old_snapshot).type_info
    if old_type == new.type_info:
        return Compatibility.AS_IS
    possible = change_between(old_type, new.type_info) is not None
    return Compatibility.AFTER_MIGRATION if possible else Compatibility.INCOMPATIBLE


def migration(old: Serializer, new: Serializer) -> Callable[[bytes], bytes]:
    """A function from bytes that ``old`` wrote to bytes that ``new`` reads. StateMigrationError when there is none."""
    if old.type_info == new.type_info:
        return lambda data: data
    change = change_between(old.type_info, new.type_info)
    if change is None:
        raise StateMigrationError(
            f"Stored values of type {old.type_info.describe()} cannot become {new.type_info.describe()}. A type may "
            f"become wider (INT to LONG, FLOAT to DOUBLE), and a named row or a class may gain fields that have a "
            f"default or may be None, lose fields and reorder them. Declare the old type, or give the state a function "
            f"that migrates it: descriptor.migrate_from(version, function)."
        )
    read = msgspec.msgpack.Decoder(old.form.stored_type).decode
    return lambda data: _encode(change(read(data)))


def migrate(old: Serializer, new: Serializer, data: bytes) -> bytes:
    """The migration of one value."""
    return migration(old, new)(data)


def _encoder(type_info: TypeInformation, form: Form) -> Callable[[Any], bytes]:
    pack, plain, plain_fields = form.pack, form.plain, form.plain_fields
    check = msgspec.msgpack.Decoder(form.stored_type).decode if form.ranged else None

    def encode(value: Any) -> bytes:
        try:
            if type(value) is plain or (type(value) is tuple and tuple(map(type, value)) == plain_fields):
                data = _encode(value)  # what most values are, without another call
            else:
                data = _encode(pack(value))
            if check is not None:
                check(data)
        except (Mismatch, msgspec.ValidationError, OverflowError, UnicodeEncodeError) as error:
            raise _type_error(type_info, value, error) from error
        return data

    return encode


def _unframed_encoder(type_info: TypeInformation, form: Form) -> Callable[[Any], bytes]:
    """The stored value is bytes already, as that of pickled values is."""

    def encode(value: Any) -> bytes:
        try:
            data: bytes = form.pack(value)
        except Mismatch as error:
            raise _type_error(type_info, value, error) from error
        return data

    return encode


def _decoder(form: Form) -> Callable[[bytes], Any]:
    decode = msgspec.msgpack.Decoder(form.stored_type).decode
    unpack = form.unpack
    if unpack is None:
        return decode
    return lambda data: unpack(decode(data))


def _unframed_decoder(form: Form) -> Callable[[bytes], Any]:
    assert form.unpack is not None, "bytes that stand for themselves are a BYTES, which has a frame"
    return form.unpack


@contextmanager
def type_errors_of(owner: str) -> Iterator[None]:
    """Stands around what encodes values for a state: an error says for which."""
    try:
        yield
    except StateTypeError as error:
        raise StateTypeError(f"{owner}: {error}") from error


def _type_error(type_info: TypeInformation, value: Any, error: Exception) -> StateTypeError:
    return StateTypeError(
        f"A value of class {type(value).__name__} is not of the declared type {type_info.describe()}: {error}. "
        f"Store a value of that type, or declare the type that you store."
    )


def _is_immutable(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_is_immutable, value))
    return type(value) in IMMUTABLE_CLASSES
