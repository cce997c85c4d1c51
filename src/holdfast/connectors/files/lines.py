"""Files whose records are lines: text, JSON lines, CSV. The offset counts bytes and always stands at the begin of a
line."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from holdfast.connectors.files.content import Content, content_of
from holdfast.connectors.files.format import BadRecord, FileCursor, FileFormat, InputFile
from holdfast.errors import UnfitFileError
from holdfast.types.arrow import schema_of

#: How much is read from storage at once.
BLOCK_BYTES = 8 << 20
#: A line that is longer is taken as a sign that this is no file of lines.
MAX_LINE_BYTES = 256 << 20
_HEADER_BYTES = 64 << 10
_SHOWN_BYTES = 200
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

#: Turns complete lines into columns; ValueError (pa.ArrowInvalid is one) when they do not fit.
LineParser = Callable[[bytes], pa.RecordBatch]


class LinesFormat(FileFormat):
    """What formats of lines share. Every record is one line; the last one needs no line end."""

    #: True when a line without content is a record.
    blank_lines_count: bool = False

    def open(self, file: InputFile, offset: int, put_aside: list[BadRecord] | None = None) -> LinesCursor:
        content = content_of(file)
        try:
            begin, parser = self.begin(content)
        except BaseException:
            content.close()
            raise
        empty = pa.RecordBatch.from_pylist([], schema_of(self.type_info))
        return LinesCursor(content, max(begin, offset), LineReader(parser, self, empty), put_aside)

    def cleaned(self, lines: bytes) -> bytes:
        """The lines, with nothing in those that are no records."""
        return lines

    @abstractmethod
    def begin(self, content: Content) -> tuple[int, LineParser]:
        """Where the records begin, and how those of this file are parsed."""


class LineReader:
    """Parses lines, each of which must be one record."""

    def __init__(self, parser: LineParser, lines_format: LinesFormat, empty: pa.RecordBatch) -> None:
        self._parser = parser
        self._format = lines_format
        self._empty = empty

    def parse(self, lines: bytes) -> pa.RecordBatch:
        """ValueError when they do not fit."""
        lines = self._format.cleaned(lines)
        batch = self._parser(lines)
        count = lines.count(b"\n") + (not lines.endswith(b"\n"))
        if batch.num_rows != count and not self._format.blank_lines_count:
            split = lines.split(b"\n")
            least, most = sum(bool(line.strip()) for line in split), sum(bool(line.strip(b"\r")) for line in split)
            if not least <= batch.num_rows <= most:
                raise ValueError(f"{most} lines hold {batch.num_rows} records; each record must be one line")
        return batch

    def first_bad(self, lines: list[bytes], cause: ValueError) -> tuple[int, ValueError]:
        """The number of lines up to the first with which parsing fails, and why. Together they do not parse."""
        good, bad = 0, len(lines)
        while bad - good > 1:
            middle = (good + bad) // 2
            try:
                self.parse(b"".join(lines[:middle]))
                good = middle
            except ValueError as error:
                bad, cause = middle, error
        return bad, cause

    def sift(self, lines: list[bytes]) -> tuple[pa.RecordBatch, list[tuple[int, ValueError]]]:
        """What can be read, and the numbers of the lines that cannot."""
        batches = [self._empty]
        bad: list[tuple[int, ValueError]] = []
        pending = [(0, len(lines))]
        while pending:
            first, last = pending.pop()
            try:
                batches.append(self.parse(b"".join(lines[first:last])))
            except ValueError as error:
                if last - first == 1:
                    bad.append((first, error))
                else:
                    middle = (first + last) // 2
                    pending += [(middle, last), (first, middle)]
        return pa.concat_batches(batches), bad


class LinesCursor(FileCursor):
    """Holds one block of whole lines and parses as many of them as are wanted."""

    def __init__(self, content: Content, offset: int, reader: LineReader, put_aside: list[BadRecord] | None) -> None:
        self.offset = offset
        self._content = content
        self._reader = reader
        self._put_aside = put_aside
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
            batch = self._parsed(lines)
            self._line = last
            self.offset += len(lines)
            if batch.num_rows or self._put_aside:
                return batch

    def close(self) -> None:
        self._content.close()

    def _end_of(self, line: int) -> int:
        return 0 if line < 0 else int(self._ends[line])

    def _load(self) -> bool:
        """Read the next block of whole lines; False at the end of the file."""
        self._block = read_lines(self._content, self.offset)
        ends = np.flatnonzero(np.frombuffer(self._block, dtype=np.uint8) == ord("\n")) + 1
        if self._block and (not len(ends) or ends[-1] != len(self._block)):
            ends = np.append(ends, len(self._block))
        self._ends, self._line = ends, 0
        return bool(self._block)

    def _parsed(self, lines: bytes) -> pa.RecordBatch:
        try:
            return self._reader.parse(lines)
        except ValueError as cause:
            split = [line + b"\n" for line in lines.removesuffix(b"\n").split(b"\n")]
            if self._put_aside is None:
                raise self._bad_record(split, cause) from cause
        batch, bad = self._reader.sift(split)
        starts = np.cumsum([0, *map(len, split)])
        for number, reason in bad:
            record = split[number].rstrip(b"\r\n").decode("utf-8", errors="replace")
            position = self.offset + int(starts[number])
            self._put_aside.append(BadRecord(self._content.file.location, position, record, str(reason)))
        return batch

    def _bad_record(self, split: list[bytes], cause: ValueError) -> UnfitFileError:
        """Find the first line with which parsing fails, and say where it is."""
        bad, cause = self._reader.first_bad(split, cause)
        number = _line_ends_before(self._content, self.offset) + bad
        shown = split[bad - 1].rstrip(b"\r\n")[:_SHOWN_BYTES].decode("utf-8", errors="replace")
        return UnfitFileError(
            f"{self._content.file.location}, line {number}: the record cannot be read ({cause}). The line begins with "
            f"{shown!r}. "
            "Correct the file or the declared schema; nothing was skipped, and the job can go on from its last "
            "checkpoint. To go on without such records, send them to a side output: with_bad_records_to(tag)."
        )


def read_lines(content: Content, offset: int, block_bytes: int = BLOCK_BYTES) -> bytes:
    """Whole lines from an offset on: at most ``block_bytes``, more when one line is longer; none at the end."""
    data = b""
    while True:
        piece = content.read(offset + len(data), block_bytes)
        data += piece
        if len(piece) < block_bytes:
            return data
        end = data.rfind(b"\n", len(data) - len(piece))
        if end >= 0:
            return data[: end + 1]
        if len(data) >= MAX_LINE_BYTES:
            raise UnfitFileError(
                f"{content.file.location} has no line end in {len(data)} bytes from byte {offset} on. "
                "Expected is one record per line; if it is another format, use the source of that format."
            )


def first_line(content: Content, offset: int = 0) -> tuple[bytes, int]:
    """The first line from an offset on, without its end and without a byte order mark, and where the next one
    begins."""
    block = read_lines(content, offset, _HEADER_BYTES)
    end = block.find(b"\n") + 1 or len(block)
    return block[:end].removeprefix(_BYTE_ORDER_MARK).rstrip(b"\r\n"), offset + end


def after_byte_order_mark(content: Content) -> int:
    """Where the content of a file begins."""
    length = len(_BYTE_ORDER_MARK)
    return length if content.read(0, length) == _BYTE_ORDER_MARK else 0


def _line_ends_before(content: Content, offset: int) -> int:
    count = position = 0
    while position < offset:
        piece = content.read(position, min(BLOCK_BYTES, offset - position))
        if not piece:
            break
        count += piece.count(b"\n")
        position += len(piece)
    return count
