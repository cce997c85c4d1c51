"""Keys of several fields or elements."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.types import xxhash64
from holdfast.types.key_forms import KeyForm
from holdfast.types.registry import CLASS_KINDS
from holdfast.types.row import Row

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[bytes | None]).decode


class FieldsForm(KeyForm):
    """Tuples, rows and instances of a class: the hash of one field is the seed of the next, and a field may be None."""

    def __init__(
        self, declared: str, names: tuple[str, ...], fields: Sequence[KeyForm], make: Callable[[list[Any]], Any]
    ) -> None:
        super().__init__(declared)
        self.fields = fields
        self._encoders = [field.encode for field in fields]
        self.names = self._names = names
        self._make = make
        self._plain = make is tuple and all(field.trivial_identity for field in fields)

    def values(self, key: Any) -> Sequence[Any]:
        """The values of the fields in the order of the type."""
        values: Sequence[Any]
        if isinstance(key, Row) and key._fields is not None and set(key._fields) == set(self._names):
            values = key.get_fields_by_names(self._names)
        elif isinstance(key, (tuple, list)):
            values = key
        elif any(kind.takes(type(key)) for kind in CLASS_KINDS) and all(hasattr(key, name) for name in self._names):
            values = [getattr(key, name) for name in self._names]
        else:
            self.reject(key)
        if len(values) != len(self.fields):
            self.reject(key)
        return values

    def normalise(self, key: Any) -> Any:
        pairs = zip(self.fields, self.values(key), strict=True)
        return self._make([None if value is None else field.normalise(value) for field, value in pairs])

    def hash(self, key: Any, seed: int = xxhash64.SEED) -> int:
        for field, value in zip(self.fields, self.values(key), strict=True):
            if value is not None:
                seed = field.hash(value, seed)
        return seed

    def encode(self, key: Any) -> bytes:
        # Windows are such tuples, and each is encoded once or more.
        plain = self._plain and isinstance(key, tuple) and len(key) == len(self._encoders)
        pairs = zip(self._encoders, key if plain else self.values(key), strict=True)
        return _encode([None if value is None else encode(value) for encode, value in pairs])

    def decode(self, data: bytes) -> Any:
        pairs = zip(self.fields, _decode(data), strict=True)
        return self._make([None if stored is None else field.decode(stored) for field, stored in pairs])

    def identity(self, key: Any) -> Hashable:
        if self._plain and isinstance(key, tuple):
            return key
        pairs = zip(self.fields, self.values(key), strict=True)
        return tuple([None if value is None else field.identity(value) for field, value in pairs])

    def hash_array(self, column: pa.Array) -> pa.Array:
        parts = [field.hash_array(part) for field, part in zip(self.fields, column.flatten(), strict=True)]
        return pa.StructArray.from_arrays(
            parts, names=list(self._names), mask=column.is_null() if column.null_count else None
        )

    def same_column(self, column: pa.Array) -> pa.Array:
        parts = [field.same_column(part) for field, part in zip(self.fields, column.flatten(), strict=True)]
        mask = column.is_null() if column.null_count else None
        return pa.StructArray.from_arrays(parts, fields=list(column.type), mask=mask)


class ElementsForm(KeyForm):
    """LIST and array keys, which become tuples: a key must not change."""

    def __init__(self, declared: str, element: KeyForm) -> None:
        super().__init__(declared)
        self._element = element

    def _values(self, key: Any) -> Sequence[Any]:
        if isinstance(key, (tuple, list)):
            return key
        if isinstance(key, np.ndarray):
            elements: list[Any] = key.tolist()
            return elements
        self.reject(key)

    def normalise(self, key: Any) -> tuple[Any, ...]:
        return tuple([None if value is None else self._element.normalise(value) for value in self._values(key)])

    def hash(self, key: Any, seed: int = xxhash64.SEED) -> int:
        for value in self._values(key):
            if value is not None:
                seed = self._element.hash(value, seed)
        return seed

    def encode(self, key: Any) -> bytes:
        return _encode([None if value is None else self._element.encode(value) for value in self._values(key)])

    def decode(self, data: bytes) -> tuple[Any, ...]:
        return tuple([None if stored is None else self._element.decode(stored) for stored in _decode(data)])

    def identity(self, key: Any) -> Hashable:
        return tuple([None if value is None else self._element.identity(value) for value in self._values(key)])

    def hash_array(self, column: pa.Array) -> pa.Array:
        elements = self._element.hash_array(column.flatten())
        lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
        offsets = pa.array(np.concatenate(([0], np.cumsum(lengths))), pa.int32())
        return pa.ListArray.from_arrays(offsets, elements, mask=column.is_null() if column.null_count else None)
