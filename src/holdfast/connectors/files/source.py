"""A source of files in directories: Parquet, JSON lines, CSV or text."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.connectors.csv_dialect import CsvDialect
from holdfast.connectors.files.csv_lines import CsvFormat
from holdfast.connectors.files.format import BAD_RECORD_TYPE, FileFormat
from holdfast.connectors.files.inference import SchemaOf, csv_schema, inferred_type, json_schema, parquet_schema
from holdfast.connectors.files.json_lines import JsonFormat
from holdfast.connectors.files.parquet import ParquetFormat
from holdfast.connectors.files.reader import Discovery, FileOrder, FileSourceReader, ReadingRules
from holdfast.connectors.files.stored_position import STORED_TYPE, StoredPosition
from holdfast.connectors.files.text import TextLineFormat
from holdfast.connectors.files.tree import FileTree
from holdfast.connectors.files.watch import TreeWatch
from holdfast.coverage.answers import SaysWhatToUse
from holdfast.errors import ProgramError
from holdfast.runtime.output_tag import OutputTag
from holdfast.runtime.source import ReaderContext, Source
from holdfast.storage.filesystem import Storage
from holdfast.types.durations import milliseconds_of
from holdfast.types.information import TypeInformation
from holdfast.types.resolve import resolve
from holdfast.types.typeinfo import Types

#: How often directories are listed unless the program says otherwise.
DEFAULT_DISCOVERY_INTERVAL_MS = 1000

Paths = str | Sequence[str]


class StreamFormat:
    """PyFlink's factory of formats for ``FileSource.for_record_stream_format``."""

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> FileFormat:
        return TextLineFormat(charset_name)


@dataclass(frozen=True)
class _Selection:
    """Which files are read."""

    paths: tuple[str, ...]
    recursive: bool = True
    pattern: str | None = None

    def tree(self) -> FileTree:
        return FileTree(self.paths, self.recursive, self.pattern)


@dataclass(frozen=True)
class _FormatOfFirst:
    """A format whose columns are those of the first file."""

    schema_of: SchemaOf
    make: Callable[[TypeInformation], FileFormat]


class FileSource(Source):
    """Files of one format in directories or given one by one.

    A bounded source reads what is there when the job starts and ends; another one goes on finding new files. Every
    subtask lists the directories itself, at most once per epoch and interval, and reads the files whose paths hash to
    it, to their end, in the order of their names unless the program says otherwise. Positions hold the file that was
    begun, and 32 bytes for each that was read and is still there.

    Files must be complete when they appear: write them under a name that begins with ``_`` or ``.``, or elsewhere, and
    move them in.
    """

    def __init__(
        self,
        paths: Paths,
        file_format: FileFormat | _FormatOfFirst,
        *,
        bounded: bool = False,
        discovery: Discovery | None = None,
    ) -> None:
        self._selection = _Selection(tuple(map(Storage.absolute, (paths,) if isinstance(paths, str) else paths)))
        if not self._selection.paths:
            raise ProgramError("A FileSource was given no path; give a directory or a file.")
        self._format = file_format
        self._rules = ReadingRules(
            discovery or Discovery(None if bounded else DEFAULT_DISCOVERY_INTERVAL_MS, time.time)
        )
        self.bounded = self._rules.discovery.interval_ms is None

    @staticmethod
    def parquet(paths: Paths, schema: Any = None, *, bounded: bool = False) -> FileSource:
        """Rows of Parquet files. A schema that is left out is that of the first file, which is opened on the driver
        when the program is made.
        """
        return _typed(paths, schema, parquet_schema, ParquetFormat, bounded)

    @staticmethod
    def json(paths: Paths, schema: Any = None, *, bounded: bool = False) -> FileSource:
        """Rows of lines of JSON. A schema that is left out is found in the first 4 MB of the first file."""
        return _typed(paths, schema, json_schema, JsonFormat, bounded)

    @staticmethod
    def csv(
        paths: Paths, schema: Any = None, *, header: bool = True, delimiter: str = ",", bounded: bool = False
    ) -> FileSource:
        """Rows of CSV files. A schema that is left out is found in the first 4 MB of the first file, which must have a
        header.
        """
        if schema is None and not header:
            raise ProgramError("A CSV source without a header line needs a schema: nothing else names its columns.")
        dialect = CsvDialect(delimiter, null="", header=header)
        return _typed(paths, schema, csv_schema(delimiter), lambda it: CsvFormat(it, dialect), bounded)

    @staticmethod
    def text(paths: Paths, *, charset: str = "UTF-8", bounded: bool = False) -> FileSource:
        return FileSource(paths, TextLineFormat(charset), bounded=bounded)

    @staticmethod
    def for_record_stream_format(stream_format: FileFormat, *paths: str) -> FileSourceBuilder:
        return FileSourceBuilder(FileSource(paths, stream_format, bounded=True))

    def monitor_continuously(self, discovery_interval: Any) -> FileSource:
        """A source without an end, that looks for new files this often (Duration, timedelta or milliseconds)."""
        clock = self._rules.discovery.clock
        return self._with(rules=replace(self._rules, discovery=Discovery(milliseconds_of(discovery_interval), clock)))

    def process_static_file_set(self) -> FileSource:
        """A bounded source of the files that are there now."""
        return self._with(rules=replace(self._rules, discovery=Discovery(None, self._rules.discovery.clock)))

    def recursive(self, recursive: bool = True) -> FileSource:
        """Whether subdirectories are searched too, as they are unless this says otherwise."""
        return self._with(selection=replace(self._selection, recursive=recursive))

    def matching(self, pattern: str) -> FileSource:
        """Only files that match a glob pattern: their names, or their paths below the source's if it has a ``/``."""
        selection = replace(self._selection, pattern=pattern)
        selection.tree()  # says at once when the pattern is none
        return self._with(selection=selection)

    def ordered_by(self, order: FileOrder) -> FileSource:
        """The order in which each subtask reads the files that it has found."""
        return self._with(rules=replace(self._rules, order=FileOrder(order)))

    def with_bad_records_to(self, tag: OutputTag) -> FileSource:
        """Lines and files that cannot be read go to ``stream.get_side_output(tag)``, as rows of ``BAD_RECORD_TYPE``,
        instead of failing the job.
        """
        if not isinstance(tag, OutputTag) or tag.type_info not in (BAD_RECORD_TYPE, Types.PICKLED_BYTE_ARRAY()):
            raise ProgramError(
                f"Bad records need a tag of their type, OutputTag('bad records', BAD_RECORD_TYPE); got {tag!r}."
            )
        source = self._with(rules=replace(self._rules, bad_records=tag.tag_id))
        source.side_output = tag
        return source

    def output_type(self) -> TypeInformation:
        return self._resolved().type_info

    def position_type(self) -> TypeInformation:
        return STORED_TYPE

    @staticmethod
    def typed_position(pickled: dict[str, Any]) -> StoredPosition:
        return StoredPosition.of_pickled(pickled)

    def create_reader(self, context: ReaderContext) -> FileSourceReader:
        return FileSourceReader(self._selection.tree(), self._resolved(), self._rules, context)

    def watch(self) -> TreeWatch | None:
        interval = self._rules.discovery.interval_ms
        return None if interval is None else TreeWatch(self._selection.tree(), interval)

    def __getstate__(self) -> dict[str, Any]:
        self._resolved()
        return self.__dict__

    def _resolved(self) -> FileFormat:
        """The format, its columns looked up in the first file where the program does not say them: once."""
        if isinstance(self._format, _FormatOfFirst):
            found = inferred_type(self._selection.tree(), self._format.schema_of)
            self._format = self._format.make(found)
            self._rules = replace(self._rules, inferred=found.describe())
        return self._format

    def _with(self, selection: _Selection | None = None, rules: ReadingRules | None = None) -> FileSource:
        source = FileSource(self._selection.paths, self._format, discovery=(rules or self._rules).discovery)
        source._selection, source._rules = selection or self._selection, rules or self._rules
        source.side_output = self.side_output
        return source


class FileSourceBuilder(SaysWhatToUse):
    """PyFlink's builder. As there, a source is bounded unless ``monitor_continuously`` is called."""

    def __init__(self, source: FileSource) -> None:
        self._source = source

    def monitor_continuously(self, discovery_interval: Any) -> FileSourceBuilder:
        self._source = self._source.monitor_continuously(discovery_interval)
        return self

    def process_static_file_set(self) -> FileSourceBuilder:
        self._source = self._source.process_static_file_set()
        return self

    def build(self) -> FileSource:
        return self._source


def _typed(
    paths: Paths, schema: Any, schema_of: SchemaOf, make: Callable[[TypeInformation], FileFormat], bounded: bool
) -> FileSource:
    """A source of a schema, or of the one that its first file has."""
    chosen = _FormatOfFirst(schema_of, make) if schema is None else make(resolve(schema))
    return FileSource(paths, chosen, bounded=bounded)
