"""Values of states as columns: from stored bytes to a column of the declared type, and back to the same bytes.

Stored values are not made into the program's own objects on the way, so that a class which cannot be imported where the
savepoint is written, or no longer exists, is no obstacle.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.types.contract import TypeInformation
from holdfast.types.table_columns import Column

_encode = msgspec.msgpack.Encoder().encode
_ARRAY = struct.Struct(">BI")
_ARRAY_32 = 0xDD


def value_column(type_info: TypeInformation) -> Column:
    """The column of values as a serializer of this type stores them."""
    form = type_info.stored_form()
    if not form.framed:
        return type_info.stored_column()
    read = msgspec.msgpack.Decoder(list.__class_getitem__(form.stored_type)).decode

    def decoded(values: Sequence[bytes]) -> list[Any]:
        # All of them as one array: one call for a whole column.
        found: list[Any] = read(_ARRAY.pack(_ARRAY_32, len(values)) + b"".join(values))
        return found

    return type_info.stored_column().mapped(decoded, lambda values: list(map(_encode, values)))
