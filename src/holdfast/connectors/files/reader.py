"""One subtask of a file source."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass
from enum import StrEnum
from typing import Any

from holdfast.connectors.file_access import size_of
from holdfast.connectors.files.format import MOVE_ADVICE, BadRecord, FileCursor, FileFormat, InputFile, changed
from holdfast.connectors.files.seen import SeenFiles, key_of, owner_of
from holdfast.connectors.files.stored_position import StoredPosition
from holdfast.connectors.files.tree import FileTree, FoundFile
from holdfast.connectors.reading import ArrowBatches, Budget
from holdfast.errors import RestoreError, StorageError, UnfitFileError
from holdfast.runtime.batch import Batch, SideBatch
from holdfast.runtime.source import ReaderContext, ReadLimit, SourceReader
from holdfast.types.row import Row

_LOG = logging.getLogger(__name__)

_BLOCK_BYTES = 8 << 20
_BAD_RECORD = Row("path", "position", "record", "reason")


@dataclass(slots=True)
class FilePosition:
    """How far a file was read. ``offset`` counts rows for Parquet, bytes for formats of lines."""

    path: str
    size: int
    modified_ms: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Discovery:
    """When a source looks for files. Without an interval it looks once: at a fresh start, or where it goes on from one
    that had an interval."""

    interval_ms: int | None
    clock: Callable[[], float]


class FileOrder(StrEnum):
    """The order in which a subtask reads the files that it has found."""

    NAME = "NAME"
    MODIFICATION_TIME = "MODIFICATION_TIME"


@dataclass(frozen=True, slots=True)
class ReadingRules:
    """What a program says of reading, beside paths and format."""

    discovery: Discovery
    order: FileOrder = FileOrder.NAME
    #: The side output that takes what cannot be read; None: it is an error.
    bad_records: str | None = None
    #: The columns, where they were taken from the first file.
    inferred: str | None = None


class FileSourceReader(SourceReader):
    """Reads its files to the end one after the other; a file that was begun comes first.

    A position holds the files that were begun, of a bounded source also those that wait, and in a few bytes each the
    files that were read and are still there: it is how they are told from new ones.
    """

    def __init__(self, tree: FileTree, file_format: FileFormat, rules: ReadingRules, context: ReaderContext) -> None:
        self._tree = tree
        self._format = file_format
        self._rules = rules
        self._subtask = context.subtask
        self._parallelism = context.parallelism
        self._batches = ArrowBatches(file_format.type_info)
        self._seen = SeenFiles()
        self._todo: list[FilePosition] = []
        self._listed_at: float | None = None
        self._cursor: FileCursor | None = None
        self._bad: list[BadRecord] = []
        self._warned: set[str] = set()
        restored = None if context.restored is None else [StoredPosition(*stored) for stored in context.restored]
        if restored is not None:
            self._restore(restored, context.task)
        if self._bounded and (restored is None or any(it.monitors for it in restored)):
            self._add(tree.files())
        self._sort()
        self._update_ended()

    def read(self, limit: ReadLimit) -> Iterator[Batch]:
        if limit.rows > 0 and self._listing_is_due():
            self._look_for_files()
        budget = Budget(limit)
        while self._todo and (rows := budget.next_chunk()):
            batch = self._read_chunk(self._todo[-1], rows)
            if self._bad:
                budget.spend(len(self._bad))
                yield self._side_batch()
            if batch is not None:
                budget.spend(len(batch))
                yield batch
        self._update_ended()

    def positions(self) -> list[StoredPosition]:
        files = [StoredPosition(*astuple(position)) for position in self._todo if self._bounded or position.offset]
        monitors = not self._bounded
        return [*files, StoredPosition(seen=self._seen.packed(), inferred=self._rules.inferred, monitors=monitors)]

    @property
    def behind(self) -> bool:
        """Whether files were found that are not read to their end."""
        return bool(self._todo)

    def close(self) -> None:
        if self._cursor is not None:
            self._cursor.close()
            self._cursor = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cursor": None}

    @property
    def _bounded(self) -> bool:
        return self._rules.discovery.interval_ms is None

    def _restore(self, stored: Iterable[StoredPosition], task: str) -> None:
        stored = list(stored)
        for one in stored:
            if one.path is not None and self._is_mine(key_of(one.path)):
                self._todo.append(FilePosition(one.path, one.size or 0, one.modified_ms or 0, one.offset or 0))
        packed = [one.seen for one in stored if one.seen is not None]
        self._seen.restore(packed, self._subtask, self._parallelism)
        known, found = {one.inferred for one in stored if one.inferred is not None}, self._rules.inferred
        if found is not None and known and known != {found}:
            raise RestoreError(
                f"{task}: when the job began, the columns of its files were {known.pop()}, and the first file that is "
                f"there now has {found}. Give the source the schema that it began with."
            )

    # -- finding files

    def _is_mine(self, key: bytes) -> bool:
        return owner_of(key, self._parallelism) == self._subtask

    def _listing_is_due(self) -> bool:
        interval = self._rules.discovery.interval_ms
        if interval is None:
            return False
        if self._listed_at is None:
            return True
        # A wall clock that was set back must not stop the search for files.
        return not 0 <= (self._rules.discovery.clock() - self._listed_at) * 1000 < interval

    def _look_for_files(self) -> None:
        self._listed_at = self._rules.discovery.clock()
        if self._add(self._tree.files()):
            self._sort()

    def _add(self, found: Iterable[FoundFile]) -> bool:
        """Take note of files that are new and this subtask's, forget what is gone; whether there were new ones."""
        mine = {key: file for file in found if self._is_mine(key := key_of(file.path))}
        keys = list(mine)
        waiting = {position.path: position for position in self._todo}
        new = []
        for file, size in zip(mine.values(), self._seen.sizes(keys), strict=True):
            known = waiting.get(file.path)
            if known is not None and known.size != file.size:
                raise changed(known.path, known.size, file.size)
            if size is not None and size != file.size:
                self._warn_of_change(file, size)
            if known is None and size is None:
                new.append(FilePosition(file.path, file.size, file.modified_ms))
        self._seen.keep(keys)
        # In front: the file that is open is the last.
        self._todo[:0] = new
        return bool(new)

    def _warn_of_change(self, file: FoundFile, size: int) -> None:
        if file.path not in self._warned:
            self._warned.add(file.path)
            _LOG.warning(
                "%s had %d bytes when it was read and has %d now; what was added is not read. %s",
                file.path,
                size,
                file.size,
                MOVE_ADVICE,
            )

    def _sort(self) -> None:
        """The next file is the last of those to do, so that taking it is cheap."""
        by_time = self._rules.order is FileOrder.MODIFICATION_TIME

        def place(it: FilePosition) -> tuple[bool, int, str]:
            return not it.offset, it.modified_ms if by_time else 0, it.path

        current = self._todo[-1:] if self._cursor is not None else []
        self._todo = sorted(self._todo[: len(self._todo) - len(current)], key=place, reverse=True) + current

    # -- reading

    def _read_chunk(self, position: FilePosition, rows: int, again: bool = False) -> Batch | None:
        """Rows of the file that is next; none at its end, or where all were put aside."""
        try:
            if self._cursor is None and not self._open(position):
                return None
            assert self._cursor is not None
            arrow = self._cursor.read(rows)
            position.offset = self._cursor.offset
        except UnfitFileError as error:
            if isinstance(error.__cause__, OSError) and not again:
                self._read_through(position)
                return self._read_chunk(position, rows, again=True)
            if self._rules.bad_records is None:
                raise
            self._bad.append(BadRecord(position.path, position.offset, None, str(error)))
            arrow = None
        if arrow is None:
            self._finish(position)
            return None
        return self._batches(arrow) if arrow.num_rows else None

    def _read_through(self, position: FilePosition) -> None:
        """StorageError unless all bytes of a file can be read. One whose content is wrong is put aside for good, or
        ends the job, and libraries say in the same way that its storage failed."""
        self.close()
        storage, path = self._tree.locate(position.path)
        for offset in range(0, position.size, _BLOCK_BYTES):
            storage.read(path, offset, _BLOCK_BYTES)

    def _open(self, position: FilePosition) -> bool:
        """False for a file that is not there any more, and was not begun."""
        storage, path = self._tree.locate(position.path)
        size = size_of(storage, path)
        if size is None and not self._bounded and not position.offset:
            _LOG.warning("%s was found and is gone before it was read; nothing of it was read", position.path)
            self._todo.pop()
            return False
        if size is None:
            raise StorageError(
                f"{position.path} is gone, and it was read up to offset {position.offset} only ({position.size} bytes "
                "in all). "
                "Put it back; remove files only after a checkpoint has completed in which they were read to the end."
            )
        if size != position.size:
            raise changed(position.path, position.size, size)
        put_aside = None if self._rules.bad_records is None else self._bad
        self._cursor = self._format.open(InputFile(storage, path, size), position.offset, put_aside)
        return True

    def _side_batch(self) -> Batch:
        assert self._rules.bad_records is not None
        rows = [_BAD_RECORD(bad.path, bad.position, bad.record, bad.reason) for bad in self._bad]
        self._bad.clear()
        return SideBatch(self._rules.bad_records, rows)

    def _finish(self, position: FilePosition) -> None:
        """All rows were read; if the file grew meanwhile, some are missing. One that is gone by now was read whole."""
        self.close()
        size = size_of(*self._tree.locate(position.path))
        if size is not None and size != position.size:
            raise changed(position.path, position.size, size)
        self._seen.add(position.path, position.size)
        self._todo.pop()

    def _update_ended(self) -> None:
        self.ended = self._bounded and not self._todo
