"""Values inside the caches of states: live where nobody can change them in place, encoded otherwise.

So that a value changed without an update is neither stored nor seen again, whatever the backend. A value is checked
against its type, and cast, when it is encoded: at once if it is kept encoded, else when it is written to the store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from holdfast.state.serializers import Serializer

#: The elements of a list that one flush wrote, as one stored value.
pack_elements = msgspec.msgpack.Encoder().encode
unpack_elements = msgspec.msgpack.Decoder(list[bytes]).decode


class Encoded:
    """A value that could be changed in place, as bytes."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


#: In a cache, the cell of a key of which the store has to be asked: it may have a value of it or not.
UNREAD = Encoded(b"")


class Cells:
    """Makes cells of values and values of cells, for one serializer.

    A value whose class is ``plain`` is its own cell: it cannot be changed in place, or it is not of the type and
    never gets stored. Hot paths check that themselves and call ``admit`` for all others.
    """

    def __init__(self, serializer: Serializer) -> None:
        self.serializer = serializer
        self.encode = serializer.encode
        self.decode = serializer.decode
        self._pickled = not serializer.type_info.declared
        self.plain = serializer.type_info.cell_class
        #: The cell of stored bytes.
        self.revive: Callable[[bytes], Any] = self.decode if serializer.immutable else self._revive

    def admit(self, value: Any) -> Any:
        """The cell of a value; StateTypeError when it is not of the type."""
        if value.__class__ is self.plain or (self._pickled and self.serializer.is_immutable(value)):
            return value
        data = self.encode(value)
        return self.decode(data) if self.serializer.immutable else Encoded(data)

    def copy(self, value: Any) -> Any:
        """What may be kept of a value that others hold too. Here whatever could be changed is encoded anyway."""
        return value

    def _revive(self, data: bytes) -> Any:
        if self._pickled:
            value = self.decode(data)
            if self.serializer.is_immutable(value):
                return value
        return Encoded(data)

    def open(self, cell: Any) -> Any:
        """The value of a cell; a new object each time unless it is immutable."""
        return self.decode(cell.data) if cell.__class__ is Encoded else cell

    def pack(self, cells: Sequence[Any]) -> list[bytes]:
        """The bytes of cells."""
        if self.serializer.immutable:
            return self.serializer.encode_many(cells)
        encode = self.encode
        return [cell.data if cell.__class__ is Encoded else encode(cell) for cell in cells]

    def pack_chunk(self, cells: Sequence[Any]) -> bytes:
        """The stored form of some elements of a list."""
        return pack_elements(self.pack(cells))

    def revive_chunk(self, data: bytes) -> list[Any]:
        """The cells of a stored chunk."""
        return list(map(self.revive, unpack_elements(data)))


class OwnedCells(Cells):
    """Cells of values that nobody outside of the operator holds: each stays live until it is written, whether it could
    be changed in place or not.
    """

    def __init__(self, serializer: Serializer) -> None:
        super().__init__(serializer)
        self.revive = self.decode

    def admit(self, value: Any) -> Any:
        return value

    def copy(self, value: Any) -> Any:
        """Another object, unless the value cannot be changed in place."""
        return value if self.serializer.is_immutable(value) else self.decode(self.encode(value))
