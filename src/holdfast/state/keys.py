"""Keys: cast to their type, hashed as Spark hashes them, and encoded for the store."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from holdfast.errors import NullKeyError, ProgramError, StateMigrationError, StateTypeError
from holdfast.types.contract import TypeInformation
from holdfast.types.typeinfo import Types
from holdfast.types.xxhash64 import KEY_HASH, Int64Array, hash_columns

__all__ = ["KEY_HASH", "KeyCodec"]

_SNAPSHOT_VERSION = 1


class KeyCodec:
    """All that is done with the keys of one keyed stream.

    ``hash``, ``encode`` and ``identity`` take keys as the program gives them. They agree: two keys have the same
    identity exactly when they have the same encoding, and then the same hash. They are bound once, because they are
    called per row:

    - ``normalise(key)``: the key cast to its declared type. NullKeyError for None, StateTypeError where it cannot be.
    - ``hash(key) -> int``: Spark's xxhash64 of the key, signed.
    - ``encode(key) -> bytes``: canonical; ``decode`` gives the normalised key back.
    - ``identity(key) -> Hashable``: what a dict of keys is keyed by. With ``trivial_identity`` it is the key itself,
      and the call may be left out.
    - ``same_column(column) -> column``: of a column of the declared type one in which equal keys are equal to Arrow.
    """

    def __init__(self, type_info: TypeInformation) -> None:
        """See for_type."""
        self.type_info = type_info
        self._form = form = type_info.key_form()
        self.normalise: Callable[[Any], Any] = form.normalise
        self.hash: Callable[[Any], int] = form.hash
        self.encode: Callable[[Any], bytes] = form.encode
        self.decode: Callable[[bytes], Any] = form.decode
        self.identity: Callable[[Any], Hashable] = form.identity
        self.trivial_identity: bool = form.trivial_identity
        #: Classes of keys that are already what they are cast to.
        self.normal_classes: frozenset[type] = form.normal
        #: Classes of keys that are what they are cast to when a column of the type holds them.
        self.column_classes: frozenset[type] = frozenset(form.hashed_together)
        self.same_column: Callable[[pa.Array], pa.Array] = form.same_column

    @classmethod
    def for_type(cls, type_info: TypeInformation | None) -> KeyCodec:
        """None, or the pickled type, is for keys of no declared type; ProgramError for types that cannot be keys."""
        return cls(Types.PICKLED_BYTE_ARRAY() if type_info is None else type_info)

    def __reduce__(self) -> tuple[Any, ...]:
        return KeyCodec, (self.type_info,)

    def hash_array(self, columns: pa.Array | Sequence[pa.Array]) -> Int64Array:
        """The hashes of the keys in an Arrow column, or of the composite keys in several columns, one for each field.

        A single column that is null is a NullKeyError; a field of a composite may be null.
        """
        if isinstance(columns, (pa.Array, pa.ChunkedArray)):
            column = columns.combine_chunks() if isinstance(columns, pa.ChunkedArray) else columns
        elif len(columns) == 1 and self._form.names is None:
            column = columns[0]
        else:
            names = self._form.names or [f"f{i}" for i in range(len(columns))]
            if len(names) != len(columns):
                raise ProgramError(
                    f"A key of type {self.type_info.describe()} has {len(names)} fields, and {len(columns)} columns "
                    "were given."
                )
            column = pa.StructArray.from_arrays(list(columns), names=list(names))
        if column.null_count:
            first = column.is_null().to_pylist().index(True)
            raise NullKeyError(
                f"{column.null_count} of {len(column)} rows have no key (the first is row {first} of its batch). "
                f"Filter such rows out before key_by, or give them a key of their own."
            )
        return hash_columns([self._form.hash_array(self._cast(column))])

    def hash_many(self, keys: Sequence[Any]) -> Int64Array:
        """The hashes of keys as the program gives them: vectorised for integers and text, one by one otherwise."""
        classes = set(map(type, keys))
        arrow_type = self._form.hashed_together.get(classes.pop()) if len(classes) == 1 else None
        if arrow_type is None:
            return self._hash_each(keys)
        try:
            return hash_columns([pa.array(keys, arrow_type)])
        except (pa.ArrowException, OverflowError, UnicodeEncodeError):
            return self._hash_each(keys)

    def snapshot(self) -> dict[str, Any]:
        """What is stored with the state to tell at a restore whether the keys are the same."""
        return {"version": _SNAPSHOT_VERSION, "key": True, "type": self.type_info.to_json(), "hash": KEY_HASH}

    def require_readable(self, stored: dict[str, Any], operator: str) -> None:
        """Raise StateMigrationError for keys that another version of Holdfast stored in another way."""
        if stored.get("version") != _SNAPSHOT_VERSION or stored.get("hash") != KEY_HASH:
            raise StateMigrationError(
                f"The keys of operator '{operator}' were stored in version {stored.get('version')} with the hash "
                f"{stored.get('hash')!r}; this Holdfast reads version {_SNAPSHOT_VERSION} with {KEY_HASH!r}. "
                f"Restore with the version that wrote them."
            )

    def require_same(self, stored: dict[str, Any], operator: str) -> None:
        """Raise StateMigrationError unless keys stored under ``stored`` are those of this codec."""
        if stored == self.snapshot():
            return
        self.require_readable(stored, operator)
        before = TypeInformation.from_json(stored["type"])
        raise StateMigrationError(
            f"The key type of operator '{operator}' was {before.describe()} when its state was stored and is "
            f"{self.type_info.describe()} now."
        )

    def _hash_each(self, keys: Sequence[Any]) -> Int64Array:
        return np.fromiter(map(self.hash, keys), np.int64, len(keys))

    def _cast(self, column: pa.Array) -> pa.Array:
        if not self._form.casts_columns:
            return column
        wanted = self.type_info.arrow_type()
        if column.type == wanted:
            return column
        try:
            return column.cast(wanted)
        except pa.ArrowException as error:
            raise StateTypeError(
                f"A key column of type {column.type} cannot be cast to the declared key type "
                f"{self.type_info.describe()} ({error}). Declare the type of the column, or cast the column."
            ) from error
