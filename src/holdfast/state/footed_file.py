"""Files of snapshots that end in a footer which says where everything is.

``... footer trailer``: the trailer holds the footer's length and xxh3_128 digest, and the magic and version of what the
file is. A reader begins at the end, and reads nothing else that it does not need.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import xxhash

from holdfast.errors import CorruptFileError
from holdfast.state.handles import FileHandle
from holdfast.state.snapshot_io import SnapshotReader

#: Files up to this size are read at once when all of them is wanted.
WHOLE_FILE_BYTES = 256 << 10
#: Where the length of the footer is not known, so many bytes of the file's end are read first.
_TAIL_BYTES = 64 << 10

_TRAILER = struct.Struct(">Q16s7sB")


class FileFormat(NamedTuple):
    """What a file is: seven bytes of magic, its version, and what errors call it."""

    magic: bytes
    version: int
    name: str

    def ending(self, footer: bytes) -> bytes:
        """The footer with its trailer: the last bytes of a file."""
        return footer + _TRAILER.pack(len(footer), xxhash.xxh3_128_digest(footer), self.magic, self.version)


class FootedFile:
    """One file, read in ranges, or in one piece where ``whole`` is asked for.

    Made, it has read and verified the footer. ``footer_bytes`` of the file's end were read for that.
    """

    def __init__(
        self, handle: FileHandle, reader: SnapshotReader, file_format: FileFormat, whole: bool, tail_bytes: int = 0
    ) -> None:
        self._handle = handle
        self._reader = reader
        self._whole: bytes | None = None
        if handle.size < _TRAILER.size:
            raise self.corrupt(f"it has {handle.size} bytes, fewer than a file of {file_format.name} has")
        if whole:
            self._whole = reader.read(handle)
            if len(self._whole) != handle.size:
                raise self.corrupt(f"it has {len(self._whole)} bytes, expected {handle.size}")
        self.footer_bytes = 0
        self.footer = self._verified_footer(file_format, tail_bytes or _TAIL_BYTES)

    def read(self, offset: int, length: int) -> bytes:
        if self._whole is not None:
            return self._whole[offset : offset + length]
        return self._reader.read_range(self._handle, offset, length)

    def verify(self, block: bytes, offset: int, digest: bytes) -> None:
        """Bytes that were read at ``offset`` have their digest, or the file is corrupt."""
        if xxhash.xxh3_128_digest(block) != digest:
            raise self.corrupt(f"the block at byte {offset} does not have its checksum")

    def corrupt(self, message: str) -> CorruptFileError:
        return CorruptFileError(self._handle.path or "(stored inline in the checkpoint's metadata)", message)

    def _verified_footer(self, file_format: FileFormat, tail_bytes: int) -> bytes:
        size = self._handle.size
        tail_start = max(0, size - tail_bytes)
        tail = self.read(tail_start, size - tail_start)
        length, digest, magic, version = _TRAILER.unpack(tail[-_TRAILER.size :])
        if (magic, version) != (file_format.magic, file_format.version):
            raise self.corrupt(
                f"its end is {magic!r} version {version}, expected {file_format.magic!r} version {file_format.version}"
            )
        start = size - _TRAILER.size - length
        if start < 0:
            raise self.corrupt(f"its footer of {length} bytes does not fit its {size} bytes")
        inside = start >= tail_start
        footer = tail[start - tail_start : -_TRAILER.size] if inside else self.read(start, length)
        self.footer_bytes = len(tail) if inside else len(tail) + length
        if xxhash.xxh3_128_digest(footer) != digest:
            raise self.corrupt("its footer does not have its checksum")
        return footer
