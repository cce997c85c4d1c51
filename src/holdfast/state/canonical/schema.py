"""What the tables of a savepoint say about themselves: their columns' types, and which state they hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa

from holdfast.state.canonical.stored_columns import value_column
from holdfast.types.contract import TypeInformation
from holdfast.types.table_columns import Column

FORMAT = "holdfast-table"
VERSION = 1
_STORED = "_stored"


def type_of(snapshot: dict[str, Any]) -> TypeInformation:
    """The type in a serializer's snapshot."""
    return TypeInformation.from_json(snapshot["type"])


def typed_field(name: str, type_info: TypeInformation, arrow_type: pa.DataType, pickled: bool = False) -> pa.Field:
    """A field that tells its declared type, and where its bytes are those of pickle."""
    about = {"holdfast.type": type_info.describe()} | ({"holdfast.encoding": "pickle"} if pickled else {})
    return pa.field(name, arrow_type, metadata=about)


def table_schema(fields: Sequence[pa.Field], about: dict[str, Any]) -> pa.Schema:
    """``about`` becomes JSON in the file's metadata: which state of which operator it is, and of which types."""
    described = {"format": FORMAT, "version": VERSION, **about}
    return pa.schema(list(fields), metadata={"holdfast": msgspec.json.encode(described)})


@dataclass(frozen=True)
class ValueFields:
    """The columns of one stored value: its own and, where the type has values that its column cannot tell apart, one
    of stored bytes, which is null for all other values.
    """

    name: str
    type_info: TypeInformation
    column: Column

    @classmethod
    def of(cls, name: str, snapshot: dict[str, Any]) -> ValueFields:
        type_info = type_of(snapshot)
        return cls(name, type_info, value_column(type_info))

    def fields(self) -> list[pa.Field]:
        pickled = not self.type_info.declared
        found = [typed_field(self.name, self.type_info, self.column.arrow_type, pickled)]
        return found if self.column.exact else [*found, pa.field(f"{self.name}{_STORED}", pa.binary())]

    def write(self, values: Sequence[bytes | None]) -> list[pa.Array]:
        array = self.column.write(values)
        if self.column.exact:
            return [array]
        again = self.column.read(array)
        inexact = [None if one == other else one for one, other in zip(values, again, strict=True)]
        return [array, pa.array(inexact, pa.binary())]

    def read(self, batch: pa.RecordBatch) -> list[bytes | None]:
        values = self.column.read(batch.column(self.name))
        if self.column.exact:
            return values
        stored = batch.column(f"{self.name}{_STORED}").to_pylist()
        return [value if exact is None else exact for value, exact in zip(values, stored, strict=True)]
