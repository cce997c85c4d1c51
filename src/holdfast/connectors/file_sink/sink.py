"""Files that appear exactly once, when their checkpoint completes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from holdfast.connectors.encoder import Encoder
from holdfast.connectors.file_sink import builders
from holdfast.connectors.file_sink.compaction import (
    Compaction,
    ConcatFileCompactor,
    FileCompactor,
    FileCompactStrategy,
)
from holdfast.connectors.file_sink.formats import (
    CsvSinkFormat,
    JsonSinkFormat,
    LineSinkFormat,
    ParquetSinkFormat,
    SinkFormat,
)
from holdfast.connectors.file_sink.held import HeldFile, Moment
from holdfast.connectors.file_sink.kept import KEPT_TYPE, KeptFiles, of_pickled
from holdfast.connectors.file_sink.naming import FileHandle, Statement
from holdfast.connectors.file_sink.options import BucketAssigner, FileSinkOptions, OutputFileConfig
from holdfast.connectors.file_sink.partitions import type_in_files
from holdfast.connectors.file_sink.publishing import publish
from holdfast.connectors.file_sink.rolling import RollingPolicy
from holdfast.connectors.file_sink.transaction import FileTransaction
from holdfast.connectors.staged_files import delete_staged, staged_names
from holdfast.errors import ProgramError, RestoreError, StorageError
from holdfast.runtime.batch import Batch
from holdfast.runtime.contracts import CheckpointedFunction
from holdfast.runtime.epoch import EpochEnd
from holdfast.runtime.sink import TransactionName, TwoPhaseCommitSink
from holdfast.state.descriptors import ListStateDescriptor
from holdfast.state.handles import SnapshotType
from holdfast.storage.filesystem import Storage
from holdfast.types.durations import milliseconds_of
from holdfast.types.resolve import resolve
from holdfast.types.settings import TextForm

if TYPE_CHECKING:
    from holdfast.runtime.context import FunctionInitializationContext, FunctionSnapshotContext

logger = logging.getLogger(__name__)

_KEPT = "_kept_files"


class FileSink(TwoPhaseCommitSink, CheckpointedFunction):
    """Files per subtask and bucket, written to ``<path>/_holdfast_staging`` and moved to ``<path>`` on commit.

    Whoever lists the path and leaves out names that begin with ``_`` or ``.`` sees complete, committed files only. A
    committed file must stay where it is until a later checkpoint has completed: a recovery that finds it in neither
    place takes it for lost.

    Each epoch's files are complete and durable when it ends. Where a rolling policy or compaction wants larger ones
    they wait in staging, by name in operator state, until a task joins them into the file that its transaction
    publishes.
    """

    BaseBuilder: TypeAlias = builders.BaseBuilder
    RowFormatBuilder: TypeAlias = builders.RowFormatBuilder
    BulkFormatBuilder: TypeAlias = builders.BulkFormatBuilder

    def __init__(self, path: str, sink_format: SinkFormat, options: FileSinkOptions | None = None) -> None:
        self._storage = Storage.for_uri(path)
        self._format = sink_format
        self._options = options or FileSinkOptions()
        self._type = resolve(None)
        self._subtasks = 1
        self._with_checkpoints = False
        self._kept = KeptFiles()
        self._moment = Moment(0, flush=True)
        #: Whether the epoch that ends says which buckets are finished.
        self._speaks = False
        self._state: Any = None

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder) -> builders.RowFormatBuilder:
        """PyFlink's way to a sink of lines."""
        return builders.RowFormatBuilder(FileSink(base_path, LineSinkFormat(encoder)))

    @staticmethod
    def for_bulk_format(base_path: str, writer_factory: SinkFormat) -> builders.BulkFormatBuilder:
        """PyFlink's way to a sink of another format, such as ``CsvBulkWriters.for_schema(schema)``."""
        if not isinstance(writer_factory, SinkFormat):
            raise ProgramError(
                f"for_bulk_format() takes a format such as CsvBulkWriters.for_schema(schema); got {writer_factory!r}. "
                "Parquet and JSON are FileSink.parquet(path) and FileSink.json(path)."
            )
        return builders.BulkFormatBuilder(FileSink(base_path, writer_factory))

    @staticmethod
    def parquet(path: str, *, compression: str = "zstd") -> FileSink:
        return FileSink(path, ParquetSinkFormat(compression))

    @staticmethod
    def json(path: str) -> FileSink:
        return FileSink(path, JsonSinkFormat())

    @staticmethod
    def csv(path: str, *, header: bool = True, delimiter: str = ",") -> FileSink:
        return FileSink(path, CsvSinkFormat(header, delimiter))

    def with_output_file_config(self, output_file_config: OutputFileConfig) -> FileSink:
        return self._with(replace(self._options, file_config=output_file_config))

    def with_rolling_policy(self, rolling_policy: RollingPolicy) -> FileSink:
        return self._with(replace(self._options, rolling=rolling_policy))

    def with_bucket_assigner(self, bucket_assigner: BucketAssigner) -> FileSink:
        return self._with(replace(self._options, buckets=bucket_assigner))

    def partition_by(self, *columns: str) -> FileSink:
        """Rows go to folders ``column=value/`` by the values of these columns, which are not in the files then."""
        if not columns or len(set(columns)) != len(columns):
            raise ProgramError(f"partition_by{columns} names no column, or one twice.")
        if not self._format.has_columns:
            raise ProgramError("Lines of text have no columns to partition by: use FileSink.json, .csv or .parquet.")
        return self._with(replace(self._options, partition_columns=columns))

    def enable_compact(self, strategy: FileCompactStrategy, compactor: FileCompactor | None = None) -> FileSink:
        """Join small files before they appear, in the format's own way unless a compactor is given."""
        if isinstance(compactor, ConcatFileCompactor) and not self._format.concatenates:
            raise ProgramError(
                f"Files with {self._format.extension} cannot be joined byte by byte. Leave the compactor out: the "
                "format has its own."
            )
        return self._with(replace(self._options, compaction=Compaction(strategy, compactor)))

    def disable_compact(self) -> FileSink:
        return self._with(replace(self._options, compaction=None))

    def with_success_markers(self, delay: Any) -> FileSink:
        """Write an empty ``_SUCCESS`` to a bucket that had no rows for ``delay``, and to the path itself at the end of
        the input. A bucket that gets files later loses it until it is quiet again.
        """
        return self._with(replace(self._options, success_delay_ms=milliseconds_of(delay)))

    def bind_type(self, type_info: Any) -> None:
        resolved = resolve(type_info)
        columns = self._options.partition_columns
        self._format.check(type_in_files(resolved, columns) if columns else resolved)
        self._type = resolved

    def bind_parallelism(self, parallelism: int) -> None:
        self._subtasks = parallelism

    def bind_publication(self, with_checkpoints: bool) -> None:
        self._with_checkpoints = with_checkpoints

    def bind_text_form(self, form: TextForm) -> None:
        self._format = self._format.in_text_form(form)

    # -- in tasks

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        store = context.get_operator_state_store()
        options = self._options
        keeps = options.compaction is not None or options.success_delay_ms is not None
        if not keeps and not options.rolling.holds and _KEPT not in store.get_registered_state_names():
            return
        # In version 0 it was pickled.
        self._state = store.get_list_state(ListStateDescriptor(_KEPT, KEPT_TYPE).migrate_from(0, of_pickled))
        self._kept.restore(self._state.get())
        self._check_held()

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        if self._state is not None:
            self._state.update(self._kept.elements())

    def begin(self, name: TransactionName) -> FileTransaction:
        return FileTransaction(name, self._storage, (self._format, self._type), self._options)

    def write(self, transaction: FileTransaction, batch: Batch) -> None:
        transaction.write(batch)

    def end_epoch(self, transaction: Callable[[], Any], end: EpochEnd) -> None:
        """A savepoint finds nothing that waits: whoever restores it later must not need files that the job has joined
        since.
        """
        checkpoint = end.snapshot is SnapshotType.CHECKPOINT
        flush = end.ended or not self._with_checkpoints or (end.snapshot is not None and not checkpoint)
        self._moment = Moment(self._options.now_ms(), checkpoint, flush, end.ended)
        self._speaks = self._options.success_delay_ms is not None and (
            end.snapshot is not None or not self._with_checkpoints
        )
        if self._kept.held or (self._speaks and (self._kept.buckets or end.ended)):
            transaction()

    def pre_commit(self, transaction: FileTransaction) -> bytes | None:
        options, moment = self._options, self._moment
        written = transaction.finish()
        due = self._kept.take_due(written, options, moment)
        files = transaction.publish(due)
        new = {file.path for file in written}
        as_they_are = {file.staging for file in files}
        consumed = [f for group in due for f in group if f.path not in new or f.path not in as_they_are]
        handle = FileHandle(
            self._storage.uri,
            transaction.name,
            files,
            held=[file.path for file in self._kept.held if file.path in new],
            consumed=[(file.root, file.path) for file in consumed],
            marks=options.success_delay_ms is not None,
            statement=self._statement(written),
            waiting=[file.path for file in self._kept.held] if moment.checkpoint else [],
        )
        says = files or handle.held or handle.waiting or handle.statement is not None
        return handle.encode() if says else None

    def discard(self, transaction: FileTransaction) -> None:
        with suppress(StorageError):
            transaction.discard()

    # -- in the driver

    def commit(self, handles: Sequence[bytes]) -> None:
        publish(self._storage, [FileHandle.decode(handle) for handle in handles], verify=False)

    def recover_and_commit(self, handles: Sequence[bytes]) -> None:
        """As ``commit``; files still in staging, which a crash of their host may have damaged, are read and compared
        first."""
        publish(self._storage, [FileHandle.decode(handle) for handle in handles], verify=True)

    def open_transactions(self, job_id: str) -> Iterable[TransactionName]:
        """All that the job has in staging below this path: also of another sink of the job, if two share a path."""
        return staged_names(self._storage, job_id)

    def abort(self, name: TransactionName) -> None:
        delete_staged(self._storage, name)

    def name_of(self, handle: bytes) -> TransactionName:
        return FileHandle.decode(handle).name

    def needs(self, handle: bytes) -> Iterable[TransactionName]:
        return FileHandle.decode(handle).needs()

    def _with(self, options: FileSinkOptions) -> FileSink:
        sink = FileSink(self._storage.uri, self._format, options)
        sink._type = self._type
        return sink

    def _statement(self, written: Sequence[HeldFile]) -> Statement | None:
        if self._options.success_delay_ms is None:
            return None
        self._kept.note_rows(written)
        if not self._speaks:
            return None
        finished = self._kept.take_finished(self._options, self._moment)
        return Statement(finished, self._moment.ended, self._subtasks)

    def _check_held(self) -> None:
        """What waited at the restored snapshot must still be there, unless rows may be published twice anyway."""
        lost = [f for f in self._kept.held if not Storage.for_uri(f.root).exists(f.path)]
        if not lost:
            return
        location = Storage.for_uri(lost[0].root).location(lost[0].path)
        if self._with_checkpoints:
            raise RestoreError(
                f"{self.get_runtime_context().get_task_name_with_subtasks()}: {len(lost)} files that waited in staging "
                f"at the restored checkpoint are gone, the first is {location} with {lost[0].size} bytes. If the job "
                "went on behind this checkpoint, a later one has published their rows: restore the newest one, or a "
                "savepoint, which needs no such files. If it did not, something else deleted them: put them back, or "
                "give the sink another uid, and set execution.state-recovery.ignore-unclaimed-state, to go on without "
                "their rows."
            )
        logger.warning("%d files that waited in staging were published since, the first is %s", len(lost), location)
        self._kept.held = [file for file in self._kept.held if file not in lost]
