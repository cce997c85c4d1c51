"""How stored keys are laid out: the only module that knows the order of their parts.

Entry of a state: ``key group (2) | state id (2) | varint length, key | varint length, namespace | suffix``.
Local entry:      ``LOCAL_PREFIX (2) | area (2) | ...``: derived data that never leaves the host.

The head of an entry is made of ``group_bytes``, ``id_bytes`` and ``sized`` parts by plain concatenation. Because
every part is sized, no head is a prefix of another one, and the suffixes of one head are one key range
(``prefix_end``).
"""

from __future__ import annotations

import struct

from holdfast.errors import StateTypeError
from holdfast.state.store import LOCAL_PREFIX

_U16 = struct.Struct(">H")
_U64 = struct.Struct(">Q")
_SIGN = 1 << 63

#: Length of key group and state id.
HEAD_LENGTH = 4
#: State ids from here on are areas of local data, not states.
FIRST_RESERVED_ID = 0xFF00
#: The registry of states (see state/registry.py).
REGISTRY_KEY = LOCAL_PREFIX + b"\xff\xfe"
#: How far the removal of expired entries has come, by state id (see state/ttl_sweep.py).
SWEEPS = LOCAL_PREFIX + b"\xff\xfd"
#: The last epoch in which entries were migrated: no snapshot may build on one from before it.
MIGRATED = LOCAL_PREFIX + b"\xff\xfc"
#: Above every state entry, below every local one.
STATES_END = LOCAL_PREFIX

group_bytes = id_bytes = _U16.pack


def groups_end(last_group: int) -> bytes:
    """Above every entry of the key groups up to this one, below those of all others."""
    return _U16.pack(last_group + 1)


def read_id(stored: bytes) -> int:
    """The state id of a stored key."""
    return (stored[2] << 8) | stored[3]


def read_group(stored: bytes) -> int:
    """The key group of a stored key."""
    return (stored[0] << 8) | stored[1]


_SHORT = tuple(bytes((size,)) for size in range(0x80))


def sized(data: bytes) -> bytes:
    """``data`` behind its length as a varint."""
    size = len(data)
    if size < 0x80:
        return _SHORT[size] + data
    prefix = bytearray()
    while size >= 0x80:
        prefix.append(size & 0x7F | 0x80)
        size >>= 7
    prefix.append(size)
    return bytes(prefix) + data


def read_sized(stored: bytes, offset: int) -> tuple[bytes, int]:
    """The sized part at ``offset`` and the offset behind it."""
    size = shift = 0
    while True:
        byte = stored[offset]
        offset += 1
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    return stored[offset : offset + size], offset + size


def prefix_end(prefix: bytes) -> bytes:
    """The least key above every key that begins with ``prefix``, which must not be all 0xff."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes((stripped[-1] + 1,))


def time_bytes(timestamp: int) -> bytes:
    """8 bytes that order as signed 64-bit timestamps do."""
    try:
        if -_SIGN <= timestamp < _SIGN:
            return _U64.pack(timestamp + _SIGN)
    except (TypeError, struct.error):
        given = f"{timestamp!r} ({type(timestamp).__name__})"
        raise StateTypeError(f"The timestamp {given} is not an int; timestamps are milliseconds.") from None
    raise StateTypeError(f"The timestamp {timestamp} is not within signed 64 bits; timestamps are milliseconds.")


def read_time(data: bytes) -> int:
    """The inverse of ``time_bytes``."""
    value: int = _U64.unpack(data)[0]
    return value - _SIGN


def number_bytes(number: int) -> bytes:
    """8 bytes big endian."""
    return _U64.pack(number)


def read_number(data: bytes) -> int:
    """The inverse of ``number_bytes``."""
    value: int = _U64.unpack(data)[0]
    return value
