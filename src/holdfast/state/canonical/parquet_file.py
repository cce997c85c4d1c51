"""Parquet files of savepoints: written in row groups of a bounded size, and read row group by row group, verified.

Parquet's own checksums do not cover all of a file. So the index that goes into the handle has a digest of every row
group and of the footer, and a reader takes nothing from the file that it has not verified.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from holdfast.errors import CorruptFileError
from holdfast.state.footed_file import WHOLE_FILE_BYTES
from holdfast.state.handles import FileHandle, RowGroup, TableIndex
from holdfast.state.snapshot_io import SnapshotReader
from holdfast.storage.checksum import checksum

#: What a file has at most in memory while it is written.
_SPOOL_BYTES = 4 << 20
#: Neighbouring row groups are read together, up to this many bytes.
_READ_BYTES = 4 << 20
#: Of Parquet: the length of the footer and the magic are the last bytes.
_LENGTH_AND_MAGIC = 8
_FEW_VALUES = ("key_group", "domain")


class ParquetFileWriter:
    """One file. Every batch becomes a row group."""

    def __init__(self, schema: pa.Schema) -> None:
        self._stream = tempfile.SpooledTemporaryFile(_SPOOL_BYTES)  # noqa: SIM115 - it lives as long as this object
        few = [name for name in schema.names if name in _FEW_VALUES]
        # Statistics of other columns would tell little: rows are sorted by key group first.
        self._writer = pq.ParquetWriter(
            self._stream, schema, compression="zstd", use_dictionary=few, write_statistics=few
        )
        self._key_groups: list[tuple[int, int]] = []

    @property
    def size(self) -> int:
        return self._stream.tell()

    def write(self, batch: pa.RecordBatch, key_groups: tuple[int, int] = (-1, -1)) -> None:
        self._writer.write_batch(batch, row_group_size=batch.num_rows)
        self._key_groups.append(key_groups)

    def finish(self) -> tuple[bytes, TableIndex]:
        """The bytes of the file and its index. Nothing can be written then."""
        self._writer.close()
        self._stream.seek(0)
        data = self._stream.read()
        self._stream.close()
        return data, _index_of(data, self._key_groups)


def _index_of(data: bytes, key_groups: Sequence[tuple[int, int]]) -> TableIndex:
    metadata = pq.read_metadata(io.BytesIO(data))
    footer = len(data) - _LENGTH_AND_MAGIC - int.from_bytes(data[-_LENGTH_AND_MAGIC:-4], "little")
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    # The first begins with the file, so that no byte is left out.
    starts = [0, *(_start(group) for group in groups[1:]), footer]
    view = memoryview(data)
    row_groups = tuple(
        RowGroup(group.num_rows, start, end - start, checksum(view[start:end]), *spanned)
        for group, spanned, start, end in zip(groups, key_groups, starts, starts[1:], strict=False)
    )
    return TableIndex(row_groups, len(data) - footer, checksum(view[footer:]))


def _start(group: Any) -> int:
    offsets = []
    for number in range(group.num_columns):
        column = group.column(number)
        offsets.append(column.data_page_offset)
        if column.has_dictionary_page:
            offsets.append(column.dictionary_page_offset)
    return int(min(offsets))


class ParquetFileReader:
    """Reads row groups of one file. Its footer is read with the first."""

    def __init__(self, handle: FileHandle, reader: SnapshotReader, schema: pa.Schema) -> None:
        assert handle.table is not None
        self._handle = handle
        self._index = handle.table
        self._reader = reader
        self._schema = schema
        self._whole: bytes | None = None

    def batches(self, numbers: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """The row groups of these numbers, which ascend."""
        if not numbers:
            return
        row_groups = self._index.row_groups
        if reads_at_once(self._handle, numbers):
            self._whole = self._reader.read(self._handle)
        # Given the footer, Arrow reads nothing else of the file but the row groups that it is asked for.
        footer = pq.read_metadata(io.BytesIO(self._footer()))
        for run in _runs([(number, row_groups[number]) for number in numbers]):
            start, data = self._read_run([group for _, group in run])
            source = pa.PythonFile(_PartOfFile(self._handle, start, data), mode="r")
            with pq.ParquetFile(source, metadata=footer) as file:
                for number, _ in run:
                    yield self._checked(number, file)

    def _read_run(self, run: Sequence[RowGroup]) -> tuple[int, bytes]:
        """Neighbouring row groups, verified, and where they begin."""
        start = run[0].offset
        data = self._read(start, run[-1].offset + run[-1].length - start)
        for group in run:
            part = memoryview(data)[group.offset - start : group.offset - start + group.length]
            if checksum(part) != group.checksum:
                raise self._corrupt(f"the row group at byte {group.offset} does not have its checksum")
        return start, data

    def _footer(self) -> bytes:
        start = self._handle.size - self._index.footer_bytes
        data = self._read(start, self._index.footer_bytes)
        if checksum(data) != self._index.footer_checksum:
            raise self._corrupt("its footer does not have its checksum")
        return data

    def _read(self, start: int, length: int) -> bytes:
        if self._whole is not None:
            return self._whole[start : start + length]
        return self._reader.read_range(self._handle, start, length)

    def _checked(self, number: int, file: pq.ParquetFile) -> pa.RecordBatch:
        try:
            table = file.read_row_group(number, use_threads=False)
        except pa.ArrowException as error:
            raise self._corrupt(f"row group {number} cannot be read ({error})") from error
        if table.schema.names != self._schema.names or table.schema.types != self._schema.types:
            raise self._corrupt(f"its columns are {table.schema}, expected {self._schema}")
        arrays = [column.combine_chunks() for column in table.columns]
        return pa.record_batch(arrays, schema=self._schema)

    def _corrupt(self, message: str) -> CorruptFileError:
        return CorruptFileError(self._handle.path, message)


def reads_at_once(handle: FileHandle, numbers: Sequence[int]) -> bool:
    """Whether a reader of these row groups takes the whole file in one read: it wants all of it, and it is small."""
    assert handle.table is not None
    return len(numbers) == len(handle.table.row_groups) and handle.size <= WHOLE_FILE_BYTES


def bytes_to_read(handle: FileHandle, numbers: Sequence[int]) -> int:
    """What a reader of these row groups reads."""
    assert handle.table is not None
    if not numbers:
        return 0
    if reads_at_once(handle, numbers):
        return handle.size
    return handle.table.footer_bytes + sum(handle.table.row_groups[number].length for number in numbers)


def _runs(row_groups: Iterable[tuple[int, RowGroup]]) -> Iterator[list[tuple[int, RowGroup]]]:
    """Neighbouring row groups that are read together."""
    run: list[tuple[int, RowGroup]] = []
    for one in row_groups:
        length = one[1].offset + one[1].length - run[0][1].offset if run else 0
        if run and (one[0] != run[-1][0] + 1 or length > _READ_BYTES):
            yield run
            run = []
        run.append(one)
    if run:
        yield run


class _PartOfFile(io.RawIOBase):
    """A file of which only one range is there: the row groups that are being read."""

    def __init__(self, handle: FileHandle, start: int, data: bytes) -> None:
        super().__init__()
        self._handle = handle
        self._start = start
        self._data = data
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        origins = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._handle.size}
        self._position = origins[whence] + offset
        return self._position

    def read(self, size: int = -1, /) -> bytes:
        first = self._position - self._start
        last = len(self._data) if size < 0 else first + size
        if first < 0 or last > len(self._data):
            raise CorruptFileError(self._handle.path, f"byte {self._position} is not in the row group that is read")
        self._position += last - first
        return self._data[first:last]
