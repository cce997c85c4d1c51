"""Keyed state in tables: a pinned image becomes one table per state, and tables become entries again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import msgspec

from holdfast.state.canonical.keyed_table import Entry, KeyedTable
from holdfast.state.canonical.parquet_file import ParquetFileReader, ParquetFileWriter, bytes_to_read
from holdfast.state.canonical.places import TablePlace
from holdfast.state.entry_strategies import PreparedEntries
from holdfast.state.handles import FileHandle, KeyedFile, KeyedSnapshot, SnapshotKind, StateMeta, TableIndex
from holdfast.state.keyed_file import PART_BYTES, EncodedPart, KeyedFileReader
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.layout import read_group, read_id
from holdfast.state.snapshot_files import InlineSnapshotReader
from holdfast.state.snapshot_io import SnapshotReader, SnapshotWriter
from holdfast.storage.checksum import checksum

#: A row group is closed when it has so many entries, or bytes of them; at half of that where the key group changes.
ROW_GROUP_ROWS = 8192
ROW_GROUP_BYTES = 512 << 10


def write_keyed_tables(
    prepared: PreparedEntries, writer: SnapshotWriter, place: TablePlace, heartbeat: Callable[[], None]
) -> KeyedSnapshot:
    """Store a pinned full image as tables. ``heartbeat`` is called before every file."""
    frame = prepared.frame
    # A state that is stored in several forms has a table for each, in one folder.
    numbers = {meta.name: count() for meta in frame.states}
    tables = {
        meta.state_id: _TableFiles(KeyedTable(meta, frame.key_serializer, place.owner), meta, numbers[meta.name])
        for meta in frame.states
    }
    files: list[KeyedFile] = []

    def store(finished: Iterable[_Finished]) -> None:
        for one in finished:
            heartbeat()
            path = place.path_of_keyed(one.meta, one.number)
            handle = msgspec.structs.replace(writer.write(path, one.data), table=one.table)
            kind = SnapshotKind.DELTA if files else SnapshotKind.FULL
            spanned = one.table.row_groups[0].first_key_group, one.table.row_groups[-1].last_key_group
            number, state_id = prepared.checkpoint_id, one.meta.state_id
            files.append(KeyedFile(handle, kind, *spanned, one.entries, number, state_id=state_id))

    for part in prepared.parts:
        for batch in _entries_of(part):
            for entry in batch:
                table = tables[read_id(entry[0])]
                if table.is_full_before(entry[0]):
                    store(table.close_row_group())
                table.add(entry)
    for table in tables.values():
        store(table.close())
    return msgspec.structs.replace(frame, files=tuple(files))


class KeyedTableReader:
    """Reads the table of one state, only the row groups of ``key_groups``."""

    #: A table has no tombstones.
    ranges: Sequence[tuple[bytes, bytes]] = ()

    def __init__(
        self, file: KeyedFile, snapshot: KeyedSnapshot, reader: SnapshotReader, key_groups: KeyGroupRange
    ) -> None:
        meta = next(meta for meta in snapshot.states if meta.state_id == file.state_id)
        self._table = KeyedTable(meta, snapshot.key_serializer)
        self._file = ParquetFileReader(file.handle, reader, self._table.schema)
        self._numbers = row_groups_of(file.handle, key_groups)
        self._key_groups = key_groups

    def batches(self) -> Iterator[list[Entry]]:
        """The entries of the key groups, in key order."""
        for batch in self._file.batches(self._numbers):
            entries = self._table.entries(batch)
            if read_group(entries[0][0]) not in self._key_groups or read_group(entries[-1][0]) not in self._key_groups:
                entries = [entry for entry in entries if read_group(entry[0]) in self._key_groups]
            yield entries


def row_groups_of(handle: FileHandle, key_groups: KeyGroupRange) -> list[int]:
    """The numbers of the row groups that have rows of these key groups."""
    assert handle.table is not None
    return [
        number
        for number, one in enumerate(handle.table.row_groups)
        if one.first_key_group <= key_groups.end and key_groups.start <= one.last_key_group
    ]


def bytes_of_table(handle: FileHandle, key_groups: KeyGroupRange) -> int:
    """What a reader of these key groups reads."""
    return bytes_to_read(handle, row_groups_of(handle, key_groups))


def _entries_of(part: EncodedPart) -> Iterator[list[Any]]:
    """The entries of a pinned part, in key order."""
    handle = FileHandle("", len(part.data), checksum(part.data), inline=part.data)
    file = KeyedFile(
        handle, SnapshotKind.FULL, part.first_key_group, part.last_key_group, part.entries, 0, part.index_bytes
    )
    groups = KeyGroupRange(part.first_key_group, part.last_key_group)
    return KeyedFileReader(file, InlineSnapshotReader(), groups).batches()


@dataclass(frozen=True)
class _Finished:
    """A file that is to be stored."""

    meta: StateMeta
    number: int
    entries: int
    data: bytes
    table: TableIndex


class _TableFiles:
    """Collects entries of one state, and cuts them into row groups and files."""

    def __init__(self, table: KeyedTable, meta: StateMeta, numbers: Iterator[int]) -> None:
        self._table = table
        self._meta = meta
        self._entries: list[Entry] = []
        self._bytes = 0
        self._writer: ParquetFileWriter | None = None
        self._in_file = 0
        self._numbers = numbers

    def is_full_before(self, stored: bytes) -> bool:
        rows, size = len(self._entries), self._bytes
        if rows >= ROW_GROUP_ROWS or size >= ROW_GROUP_BYTES:
            return True
        half = rows * 2 >= ROW_GROUP_ROWS or size * 2 >= ROW_GROUP_BYTES
        return half and stored[:2] != self._entries[-1][0][:2]

    def add(self, entry: Entry) -> None:
        self._entries.append(entry)
        self._bytes += len(entry[0]) + len(entry[1])

    def close_row_group(self) -> Iterator[_Finished]:
        """Write what was collected; the file, when that is large enough."""
        if self._entries:
            if self._writer is None:
                self._writer = ParquetFileWriter(self._table.schema)
            spanned = read_group(self._entries[0][0]), read_group(self._entries[-1][0])
            self._writer.write(self._table.rows(self._entries), spanned)
            self._in_file += len(self._entries)
            self._entries, self._bytes = [], 0
            if self._writer.size >= PART_BYTES:
                yield from self._close_file()

    def close(self) -> Iterator[_Finished]:
        yield from self.close_row_group()
        yield from self._close_file()

    def _close_file(self) -> Iterator[_Finished]:
        if self._writer is not None:
            yield _Finished(self._meta, next(self._numbers), self._in_file, *self._writer.finish())
            self._writer, self._in_file = None, 0
