"""The stored form of an LMDB database: its file, cut into pieces.

A piece is ``magic, version, codec, length`` and the bytes of the file, compressed where that makes them much smaller.
Values that cannot be compressed are stored as they are: then a restore costs what it costs to copy them.
"""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa

from holdfast.errors import CorruptFileError
from holdfast.state.handles import FileHandle

ENGINE = "lmdb"
#: Bytes of the database in one piece. Buffers of this size are used again for the next one; larger ones cost more than
#: the copy itself.
PIECE_BYTES = 8 << 20

_HEADER = struct.Struct(">6sBBQ")
_MAGIC, _VERSION = b"HFLMDB", 1
_PLAIN, _COMPRESSED = 0, 1
_CODEC = "lz4"
#: What stays larger than this share of itself is not worth the time that it takes. The first bytes of a piece tell.
_MUCH_SMALLER, _SAMPLE_BYTES = 0.8, 256 << 10


def encode_piece(data: bytes) -> bytes:
    sample = data[:_SAMPLE_BYTES]
    if len(_compressed(sample)) > _MUCH_SMALLER * len(sample):
        return _HEADER.pack(_MAGIC, _VERSION, _PLAIN, len(data)) + data
    return _HEADER.pack(_MAGIC, _VERSION, _COMPRESSED, len(data)) + _compressed(data)


def _compressed(data: bytes) -> bytes:
    packed: bytes = pa.compress(data, codec=_CODEC, asbytes=True)
    return packed


def decode_piece(stored: bytes, handle: FileHandle) -> Any:
    """The bytes of the database, as what can be written to a file. ``handle`` is for errors."""
    where = handle.path or "(stored inline in the checkpoint's metadata)"
    if len(stored) < _HEADER.size:
        raise CorruptFileError(where, f"it has {len(stored)} bytes, fewer than a piece of an LMDB database has")
    magic, version, codec, length = _HEADER.unpack_from(stored)
    if (magic, version) != (_MAGIC, _VERSION) or codec not in (_PLAIN, _COMPRESSED):
        raise CorruptFileError(
            where, f"it begins with {magic!r} version {version} codec {codec}, expected {_MAGIC!r} version {_VERSION}"
        )
    content = memoryview(stored)[_HEADER.size :]
    return content if codec == _PLAIN else pa.decompress(content, decompressed_size=length, codec=_CODEC)
