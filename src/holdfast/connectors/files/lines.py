"""Files whose records are lines: text, JSON lines, CSV. The offset counts bytes and always stands at the begin of a
line."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from holdfast.connectors.file_access import size_of
from holdfast.connectors.files.format import FileCursor, FileFormat, InputFile, changed
from holdfast.errors import StorageError

#: How much is read from storage at once.
BLOCK_BYTES = 8 << 20
#: A line that is longer is taken as a sign that this is no file of lines.
MAX_LINE_BYTES = 256 << 20
_HEADER_BYTES = 64 << 10
_SHOWN_BYTES = 200
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".xz", ".zip")

#: Turns complete lines into columns; ValueError (pa.ArrowInvalid is one) when they do not fit.
LineParser = Callable[[bytes], pa.RecordBatch]


class LinesFormat(FileFormat):
    """What formats of lines share. Every record is one line; the last one needs no line end."""

    #: True when a line without content is a record.
    blank_lines_count: bool = False

    def open(self, file: InputFile, offset: int) -> LinesCursor:
        if file.path.endswith(_COMPRESSED):
            raise StorageError(
                f"{file.location} is compressed, and a file of lines cannot be continued in the middle then. "
                "Uncompress it, or use Parquet."
            )
        begin, parser = self.begin(file)
        return LinesCursor(file, max(begin, offset), parser, self.blank_lines_count)

    @abstractmethod
    def begin(self, file: InputFile) -> tuple[int, LineParser]:
        """Where the records begin, and how those of this file are parsed."""


class LinesCursor(FileCursor):
    """Holds one block of whole lines and parses as many of them as are wanted."""

    def __init__(self, file: InputFile, offset: int, parser: LineParser, blank_lines_count: bool) -> None:
        self.offset = offset
        self._file = file
        self._parser = parser
        self._blank_lines_count = blank_lines_count
        self._block = b""
        self._ends: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._line = 0

    def read(self, rows: int) -> pa.RecordBatch | None:
        while True:
            if self._line == len(self._ends) and not self._load():
                return None
            first, last = self._line, min(self._line + rows, len(self._ends))
            start = self._end_of(first - 1)
            lines = self._block[start : self._end_of(last - 1)]
            try:
                batch = self._parse(lines)
            except ValueError as cause:
                raise self._bad_record(lines, cause) from cause
            self._line = last
            self.offset += len(lines)
            if batch.num_rows:
                return batch

    def _end_of(self, line: int) -> int:
        return 0 if line < 0 else int(self._ends[line])

    def _load(self) -> bool:
        """Read the next block of whole lines; False at the end of the file."""
        if self.offset >= self._file.size:
            return False
        self._block = read_lines(self._file, self.offset)
        ends = np.flatnonzero(np.frombuffer(self._block, dtype=np.uint8) == ord("\n")) + 1
        if not len(ends) or ends[-1] != len(self._block):
            ends = np.append(ends, len(self._block))
        self._ends, self._line = ends, 0
        return True

    def _parse(self, lines: bytes) -> pa.RecordBatch:
        batch = self._parser(lines)
        count = lines.count(b"\n") + (not lines.endswith(b"\n"))
        if batch.num_rows != count and not self._blank_lines_count:
            split = lines.split(b"\n")
            least, most = sum(bool(line.strip()) for line in split), sum(bool(line.strip(b"\r")) for line in split)
            if not least <= batch.num_rows <= most:
                raise ValueError(f"{most} lines hold {batch.num_rows} records; each record must be one line")
        return batch

    def _bad_record(self, lines: bytes, cause: ValueError) -> StorageError:
        """Find the first line with which parsing fails, and say where it is."""
        split = [line + b"\n" for line in lines.removesuffix(b"\n").split(b"\n")]
        good, bad = 0, len(split)
        while bad - good > 1:
            middle = (good + bad) // 2
            try:
                self._parse(b"".join(split[:middle]))
                good = middle
            except ValueError as error:
                bad, cause = middle, error
        number = _line_ends_before(self._file, self.offset) + bad
        shown = split[bad - 1].rstrip(b"\r\n")[:_SHOWN_BYTES].decode("utf-8", errors="replace")
        return StorageError(
            f"{self._file.location}, line {number}: the record cannot be read ({cause}). The line begins with "
            f"{shown!r}. "
            "Correct the file or the declared schema; nothing was skipped, and the job can go on from its last "
            "checkpoint."
        )


def read_lines(file: InputFile, offset: int, block_bytes: int = BLOCK_BYTES) -> bytes:
    """Whole lines from an offset on: at most ``block_bytes``, more when one line is longer."""
    data = b""
    while True:
        wanted = min(block_bytes, file.size - offset - len(data))
        piece = file.storage.read(file.path, offset + len(data), wanted)
        if len(piece) < wanted:
            raise changed(file.location, file.size, size_of(file.storage, file.path) or 0)
        data += piece
        if offset + len(data) >= file.size:
            return data
        end = data.rfind(b"\n", len(data) - len(piece))
        if end >= 0:
            return data[: end + 1]
        if len(data) >= MAX_LINE_BYTES:
            raise StorageError(
                f"{file.location} has no line end in {len(data)} bytes from byte {offset} on. "
                "Expected is one record per line; if it is another format, use the source of that format."
            )


def first_line(file: InputFile) -> tuple[bytes, int]:
    """The first line without its end and without a byte order mark, and where the second one begins."""
    if file.size == 0:
        return b"", 0
    block = read_lines(file, 0, _HEADER_BYTES)
    end = block.find(b"\n") + 1 or len(block)
    return block[:end].removeprefix(_BYTE_ORDER_MARK).rstrip(b"\r\n"), end


def after_byte_order_mark(file: InputFile) -> int:
    """Where the content of a file begins."""
    length = len(_BYTE_ORDER_MARK)
    return length if file.storage.read(file.path, 0, length) == _BYTE_ORDER_MARK else 0


def _line_ends_before(file: InputFile, offset: int) -> int:
    count = position = 0
    while position < offset:
        piece = file.storage.read(file.path, position, min(BLOCK_BYTES, offset - position))
        if not piece:
            break
        count += piece.count(b"\n")
        position += len(piece)
    return count
