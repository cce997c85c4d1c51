"""Keys beyond LMDB's limit of 511 bytes.

A key of 480 bytes or more is stored under its first 464 bytes and the 16-byte xxh3_128 digest of the whole, with
the full key kept beside the value. A stored key of exactly 480 bytes is therefore always a shortened one. Keys that
share their first 464 bytes (a *group*) are not in order inside the database; whoever reads in order sorts each
group by full key, in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import xxhash

from holdfast.errors import StateError

#: Bytes of a long key that stay as they are.
GROUP = 464
#: Length of a shortened key, and the least length of a key that is shortened.
LONG = GROUP + 16

_SIZE = 4

Entry = tuple[bytes, bytes]


def stored_key(key: bytes) -> bytes:
    """The key under which ``key`` is stored."""
    return key if len(key) < LONG else key[:GROUP] + xxhash.xxh3_128_digest(key)


def pack(key: bytes, value: bytes) -> Entry:
    """What is stored for an entry."""
    if len(key) < LONG:
        return key, value
    return stored_key(key), len(key).to_bytes(_SIZE, "big") + key + value


def unpack(entry: Entry) -> Entry:
    """The inverse of ``pack``."""
    stored, raw = entry
    if len(stored) < LONG:
        return entry
    end = _SIZE + int.from_bytes(raw[:_SIZE], "big")
    return raw[_SIZE:end], raw[end:]


def value_of(key: bytes, raw: bytes) -> bytes:
    """The value that was stored for ``key``, checking that it is this key's."""
    found, value = unpack((stored_key(key), raw)) if len(key) >= LONG else (key, raw)
    if found != key:
        raise StateError(
            f"Two keys of {len(found)} and {len(key)} bytes have the same first {GROUP} bytes and the same 128-bit "
            f"digest; the lmdb backend cannot hold both. Use another backend, or shorter keys."
        )
    return value


def has_long(keys: Iterable[bytes]) -> bool:
    """Whether any of the keys is long."""
    return max(map(len, keys), default=0) >= LONG


def in_key_order(rows: Sequence[Entry]) -> Sequence[Entry]:
    """Stored rows, whole groups of them, as entries in the order of their full keys."""
    if max((len(stored) for stored, _ in rows), default=0) < GROUP:
        return rows
    entries: list[Entry] = []
    for _, group in groupby(rows, key=lambda row: row[0][:GROUP]):
        entries += sorted(unpack(row) for row in group)
    return entries
