"""A source of files in directories: Parquet, JSON lines, CSV or text."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from holdfast.connectors.files.csv_lines import CsvFormat
from holdfast.connectors.files.format import FileFormat
from holdfast.connectors.files.json_lines import JsonFormat
from holdfast.connectors.files.parquet import ParquetFormat, inferred_type
from holdfast.connectors.files.reader import Discovery, FileSourceReader
from holdfast.connectors.files.text import TextLineFormat
from holdfast.connectors.files.tree import FileTree
from holdfast.errors import ProgramError
from holdfast.runtime.source import ReaderContext, Source
from holdfast.storage.filesystem import Storage
from holdfast.types.durations import milliseconds_of
from holdfast.types.information import TypeInformation
from holdfast.types.resolve import resolve

#: How often directories are listed unless the program says otherwise.
DEFAULT_DISCOVERY_INTERVAL_MS = 1000

Paths = str | Sequence[str]


class StreamFormat:
    """PyFlink's factory of formats for ``FileSource.for_record_stream_format``."""

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> FileFormat:
        return TextLineFormat(charset_name)


class FileSource(Source):
    """Files of one format in directories (searched with their subdirectories) or given one by one.

    A bounded source reads what is there when the job starts and ends; another one goes on finding new files. Every
    subtask lists the directories itself, at most once per epoch and interval, and reads the files whose names hash to
    it, to their end, in the order of their names. Positions name every file that was seen, with its size and how far it
    was read: that list grows with the number of files for as long as the job runs.

    Files must be complete when they appear: write them under a name that begins with ``_`` or ``.``, or elsewhere, and
    move them in.
    """

    def __init__(
        self, paths: Paths, file_format: FileFormat, *, bounded: bool = False, discovery: Discovery | None = None
    ) -> None:
        self._paths = tuple(map(Storage.absolute, (paths,) if isinstance(paths, str) else paths))
        if not self._paths:
            raise ProgramError("A FileSource was given no path; give a directory or a file.")
        self._format = file_format
        self._discovery = discovery or Discovery(None if bounded else DEFAULT_DISCOVERY_INTERVAL_MS, time.time)
        self.bounded = self._discovery.interval_ms is None

    @staticmethod
    def parquet(paths: Paths, schema: Any = None, *, bounded: bool = False) -> FileSource:
        """Without a schema it is that of the first file, which is opened here, on the driver."""
        type_info = _first_type(paths) if schema is None else resolve(schema)
        return FileSource(paths, ParquetFormat(type_info), bounded=bounded)

    @staticmethod
    def json(paths: Paths, schema: Any, *, bounded: bool = False) -> FileSource:
        return FileSource(paths, JsonFormat(resolve(schema)), bounded=bounded)

    @staticmethod
    def csv(
        paths: Paths, schema: Any, *, header: bool = True, delimiter: str = ",", bounded: bool = False
    ) -> FileSource:
        return FileSource(paths, CsvFormat(resolve(schema), header, delimiter), bounded=bounded)

    @staticmethod
    def text(paths: Paths, *, charset: str = "UTF-8", bounded: bool = False) -> FileSource:
        return FileSource(paths, TextLineFormat(charset), bounded=bounded)

    @staticmethod
    def for_record_stream_format(stream_format: FileFormat, *paths: str) -> FileSourceBuilder:
        return FileSourceBuilder(stream_format, paths)

    def monitor_continuously(self, discovery_interval: Any) -> FileSource:
        """The same source without an end, that looks for new files this often (Duration, timedelta or milliseconds)."""
        return self._with(Discovery(milliseconds_of(discovery_interval), self._discovery.clock))

    def process_static_file_set(self) -> FileSource:
        """The same source, bounded."""
        return self._with(Discovery(None, self._discovery.clock))

    def output_type(self) -> TypeInformation:
        return self._format.type_info

    def create_reader(self, context: ReaderContext) -> FileSourceReader:
        return FileSourceReader(FileTree(self._paths), self._format, self._discovery, context)

    def _with(self, discovery: Discovery) -> FileSource:
        return FileSource(self._paths, self._format, discovery=discovery)


class FileSourceBuilder:
    """PyFlink's builder. As there, a source is bounded unless ``monitor_continuously`` is called."""

    def __init__(self, file_format: FileFormat, paths: Sequence[str]) -> None:
        self._source = FileSource(paths, file_format, bounded=True)

    def monitor_continuously(self, discovery_interval: Any) -> FileSourceBuilder:
        self._source = self._source.monitor_continuously(discovery_interval)
        return self

    def process_static_file_set(self) -> FileSourceBuilder:
        self._source = self._source.process_static_file_set()
        return self

    def build(self) -> FileSource:
        return self._source


def _first_type(paths: Paths) -> TypeInformation:
    given = (paths,) if isinstance(paths, str) else tuple(paths)
    tree = FileTree(given)
    first = min((file.path for file in tree.files()), default=None)
    if first is None:
        raise ProgramError(
            f"There is no Parquet file in {', '.join(given)} yet from which the columns could be taken. "
            "Give the source a schema, for instance FileSource.parquet(path, 'id BIGINT, name STRING')."
        )
    return inferred_type(*tree.locate(first))
