"""One subtask of a file source."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from holdfast.connectors.file_access import size_of
from holdfast.connectors.files.format import MOVE_ADVICE, FileCursor, FileFormat, InputFile, changed
from holdfast.connectors.files.tree import FileTree, FoundFile
from holdfast.connectors.reading import ArrowBatches, Budget
from holdfast.errors import StorageError
from holdfast.runtime.batch import Batch
from holdfast.runtime.source import ReaderContext, ReadLimit, SourceReader

_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class FilePosition:
    """How far a file was read. ``offset`` counts rows for Parquet, bytes for formats of lines."""

    path: str
    size: int
    offset: int = 0
    done: bool = False

    def stored(self) -> dict[str, Any]:
        return {"path": self.path, "size": self.size, "offset": self.offset, "done": self.done}


@dataclass(frozen=True, slots=True)
class Discovery:
    """When a source looks for files. Without an interval it looks once, at a fresh start."""

    interval_ms: int | None
    clock: Callable[[], float]


class FileSourceReader(SourceReader):
    """Reads its files to the end one after the other, in the order of their names; a file that was begun comes first.

    Every file that was ever seen stays in the positions: it is how a file that was read is told from a new one.
    """

    def __init__(self, tree: FileTree, file_format: FileFormat, discovery: Discovery, context: ReaderContext) -> None:
        self._tree = tree
        self._format = file_format
        self._discovery = discovery
        self._subtask = context.subtask
        self._parallelism = context.parallelism
        self._batches = ArrowBatches(file_format.type_info)
        self._files: dict[str, FilePosition] = {}
        self._listed_at: float | None = None
        self._cursor: FileCursor | None = None
        self._warned: set[str] = set()
        for position in context.restored or []:
            if self._is_mine(position["path"]):
                self._files[position["path"]] = FilePosition(**position)
        if context.restored is None and discovery.interval_ms is None:
            self._add(tree.files())
        self._todo = self._unfinished()
        self._update_ended()

    def read(self, limit: ReadLimit) -> Iterator[Batch]:
        if limit.rows > 0 and self._listing_is_due():
            self._look_for_files()
        budget = Budget(limit)
        while self._todo and (rows := budget.next_chunk()):
            position = self._todo[-1]
            if self._cursor is None:
                self._cursor = self._open(position)
            arrow = self._cursor.read(rows)
            position.offset = self._cursor.offset
            if arrow is None:
                self._finish(position)
                continue
            budget.spend(arrow.num_rows)
            yield self._batches(arrow)
        self._update_ended()

    def positions(self) -> list[dict[str, Any]]:
        return [position.stored() for position in self._files.values()]

    def close(self) -> None:
        if self._cursor is not None:
            self._cursor.close()
            self._cursor = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cursor": None}

    def _is_mine(self, path: str) -> bool:
        return self._tree.owner(path, self._parallelism) == self._subtask

    def _listing_is_due(self) -> bool:
        interval = self._discovery.interval_ms
        if interval is None:
            return False
        if self._listed_at is None:
            return True
        # A wall clock that was set back must not stop the search for files.
        return not 0 <= (self._discovery.clock() - self._listed_at) * 1000 < interval

    def _look_for_files(self) -> None:
        self._listed_at = self._discovery.clock()
        if self._add(self._tree.files()):
            self._todo = self._unfinished()

    def _add(self, found: Iterable[FoundFile]) -> bool:
        """Take note of files that are new and this subtask's; whether there were any."""
        count = len(self._files)
        for file in found:
            known = self._files.get(file.path)
            if known is not None:
                self._check_known(known, file.size)
            elif self._is_mine(file.path):
                self._files[file.path] = FilePosition(file.path, file.size)
        return len(self._files) > count

    def _check_known(self, known: FilePosition, size: int) -> None:
        if size == known.size:
            return
        if not known.done:
            raise changed(known.path, known.size, size)
        if known.path not in self._warned:
            self._warned.add(known.path)
            _LOG.warning(
                "%s had %d bytes when it was read and has %d now; what was added is not read. %s",
                known.path,
                known.size,
                size,
                MOVE_ADVICE,
            )

    def _unfinished(self) -> list[FilePosition]:
        """What is still to be read; the next one is the last, so that taking it is cheap."""
        begun = self._todo[-1] if self._cursor is not None else None
        todo = [position for position in self._files.values() if not position.done]
        return sorted(todo, key=lambda it: (it.offset == 0 and it is not begun, it.path), reverse=True)

    def _open(self, position: FilePosition) -> FileCursor:
        storage, path = self._tree.locate(position.path)
        size = size_of(storage, path)
        if size is None:
            raise StorageError(
                f"{position.path} is gone, and it was read up to offset {position.offset} only ({position.size} bytes "
                "in all). "
                "Put it back; remove files only after a checkpoint has completed in which they were read to the end."
            )
        if size != position.size:
            raise changed(position.path, position.size, size)
        return self._format.open(InputFile(storage, path, size), position.offset)

    def _finish(self, position: FilePosition) -> None:
        """All rows were read; if the file grew meanwhile, some are missing. One that is gone by now was read whole."""
        self.close()
        size = size_of(*self._tree.locate(position.path))
        if size is not None and size != position.size:
            raise changed(position.path, position.size, size)
        position.done = True
        self._todo.pop()

    def _update_ended(self) -> None:
        self.ended = self._discovery.interval_ms is None and not self._todo
