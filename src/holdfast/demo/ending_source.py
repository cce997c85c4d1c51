"""A directory of files that says when it is complete."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.connectors.files.reader import FileSourceReader
from holdfast.connectors.files.source import FileSource
from holdfast.runtime.batch import Batch
from holdfast.runtime.source import ReaderContext, ReadLimit, Source, WrappingReader


class EndingFileSource(Source):
    """Finds new Parquet files for as long as there is no marker; ends when all that came before it are read.

    One subtask reads, in the order of the files' names, so that readings of a sensor keep their order.
    """

    bounded = True
    max_parallelism = 1

    def __init__(self, directory: Path, schema: str, marker: str) -> None:
        self._files = FileSource.parquet(str(directory), schema).monitor_continuously(0)
        self._marker = directory / marker

    def output_type(self) -> Any:
        return self._files.output_type()

    def position_type(self) -> Any:
        return self._files.position_type()

    def create_reader(self, context: ReaderContext) -> EndingFileReader:
        return EndingFileReader(self._files.create_reader(context), self._marker)


class EndingFileReader(WrappingReader):
    """Reads as the file source does; only the end is its own."""

    def __init__(self, files: FileSourceReader, marker: Path) -> None:
        super().__init__(files)
        self._files = files
        self._marker = marker

    def read(self, limit: ReadLimit) -> Iterator[Batch]:
        # Looked for first: the listing that follows then has every file there will ever be.
        complete = self._marker.exists()
        yield from super().read(limit)
        self.ended = complete and not self._files.behind
