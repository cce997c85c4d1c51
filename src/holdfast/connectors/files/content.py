"""The bytes of a file of lines, plain or compressed. Offsets count bytes as they are after decompression."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from typing import IO, Any, BinaryIO, cast

from holdfast.connectors.file_access import size_of
from holdfast.connectors.files.format import InputFile, changed
from holdfast.errors import UnfitFileError


def _gunzipped(stream: BinaryIO) -> IO[bytes]:
    return cast("IO[bytes]", gzip.GzipFile(fileobj=stream))


_DECOMPRESSED: dict[str, Callable[[BinaryIO], IO[bytes]]] = {
    ".gz": _gunzipped,
    ".gzip": _gunzipped,
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
}
_UNKNOWN = (".zst", ".lz4", ".snappy", ".zip", ".deflate", ".br")
_SKIPPED_BYTES = 1 << 20


class Content(ABC):
    """Reads from any offset; cheap where reads follow each other."""

    def __init__(self, file: InputFile) -> None:
        self.file = file

    @abstractmethod
    def read(self, offset: int, length: int) -> bytes:
        """Fewer bytes than wanted only at the end of the file."""

    def close(self) -> None:
        """Free what is open."""


def content_of(file: InputFile) -> Content:
    suffix = next((suffix for suffix in _DECOMPRESSED if file.path.endswith(suffix)), None)
    if suffix is not None:
        return _Compressed(file, _DECOMPRESSED[suffix])
    if file.path.endswith(_UNKNOWN):
        raise UnfitFileError(
            f"{file.location} is compressed in a way that files of lines are not read in. "
            f"Use one of {', '.join(_DECOMPRESSED)}, uncompress it, or use Parquet."
        )
    return _Plain(file)


class _Plain(Content):
    def read(self, offset: int, length: int) -> bytes:
        file = self.file
        wanted = max(0, min(length, file.size - offset))
        piece = file.storage.read(file.path, offset, wanted) if wanted else b""
        if len(piece) < wanted:
            raise changed(file.location, file.size, size_of(file.storage, file.path) or 0)
        return piece


class _Compressed(Content):
    """A stream that goes forward only: to go on at an offset in a new process, all before it is decompressed again."""

    def __init__(self, file: InputFile, decompressed: Callable[[BinaryIO], IO[bytes]]) -> None:
        super().__init__(file)
        self._decompressed = decompressed
        self._stream: IO[bytes] | None = None
        self._position = 0
        self._open = ExitStack()

    def read(self, offset: int, length: int) -> bytes:
        if self._stream is None or offset < self._position:
            self._begin()
        while self._position < offset and self._take(min(_SKIPPED_BYTES, offset - self._position)):
            pass
        pieces = []
        while length > 0 and (piece := self._take(length)):
            pieces.append(piece)
            length -= len(piece)
        return b"".join(pieces)

    def close(self) -> None:
        self._open.close()
        self._stream = None

    def _begin(self) -> None:
        self.close()
        beneath = self._open.enter_context(self.file.storage.open_input(self.file.path))
        self._stream = self._open.enter_context(self._decompressed(beneath))
        self._position = 0

    def _take(self, length: int) -> bytes:
        stream: Any = self._stream
        try:
            piece: bytes = stream.read(length)
        except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, OSError) as cause:
            raise UnfitFileError(
                f"{self.file.location} cannot be decompressed behind byte {self._position} of its content: {cause}. "
                "If it was still being written, write it elsewhere and move it into the directory when it is complete."
            ) from cause
        self._position += len(piece)
        return piece
