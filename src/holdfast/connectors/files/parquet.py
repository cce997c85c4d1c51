"""Parquet files, read by row number."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from holdfast.connectors.files.format import BadRecord, FileCursor, FileFormat, InputFile
from holdfast.connectors.files.schemas import check_columns, conform
from holdfast.connectors.reading import MAX_BATCH_ROWS
from holdfast.errors import UnfitFileError
from holdfast.types.arrow import schema_of
from holdfast.types.information import TypeInformation


class ParquetFormat(FileFormat):
    """Columns are found by name; a file may have more of them. The offset counts rows."""

    def __init__(self, type_info: TypeInformation) -> None:
        self.type_info = type_info

    def open(self, file: InputFile, offset: int, put_aside: list[BadRecord] | None = None) -> ParquetCursor:
        """A row of a Parquet file is never bad by itself: nothing is put aside."""
        return ParquetCursor(file, offset, schema_of(self.type_info))


class ParquetCursor(FileCursor):
    """Streams row groups; those before the offset are not read."""

    def __init__(self, file: InputFile, offset: int, wanted: pa.Schema) -> None:
        self.offset = offset
        self._location = file.location
        self._wanted = wanted
        self._pending: pa.RecordBatch | None = None
        self._open = ExitStack()
        try:
            stream = self._open.enter_context(file.storage.open_input(file.path))
            with _readable(self._location):
                parquet = pq.ParquetFile(stream)
            check_columns(self._location, parquet.schema_arrow, wanted)
            first, self._skip = _row_group_at(parquet.metadata, offset)
            groups = list(range(first, parquet.num_row_groups))
            self._batches = parquet.iter_batches(MAX_BATCH_ROWS, row_groups=groups, columns=wanted.names)
        except BaseException:
            self._open.close()
            raise

    def read(self, rows: int) -> pa.RecordBatch | None:
        while self._pending is None or self._pending.num_rows == 0:
            with _readable(self._location):
                batch = next(self._batches, None)
            if batch is None:
                return None
            skipped = min(self._skip, batch.num_rows)
            self._skip -= skipped
            self._pending = conform(self._location, batch.slice(skipped), self._wanted)
        result = self._pending.slice(0, rows)
        self._pending = self._pending.slice(result.num_rows)
        self.offset += result.num_rows
        return result

    def close(self) -> None:
        self._open.close()


def schema_of_file(file: InputFile) -> pa.Schema:
    with file.storage.open_input(file.path) as stream, _readable(file.location):
        return pq.read_schema(stream)


def _row_group_at(metadata: Any, row: int) -> tuple[int, int]:
    """The row group that holds a row, and how many of its rows come before it; one past the last group at the end."""
    before = 0
    for group in range(metadata.num_row_groups):
        count = metadata.row_group(group).num_rows
        if row < before + count:
            return group, row - before
        before += count
    return metadata.num_row_groups, 0


@contextmanager
def _readable(location: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as cause:
        raise UnfitFileError(
            f"{location} cannot be read as Parquet: {cause}. "
            "If it was still being written, write it elsewhere and move it into the directory when it is complete."
        ) from cause
