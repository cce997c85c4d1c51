"""Files that appear exactly once, when their checkpoint completes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from holdfast.connectors.encoder import Encoder
from holdfast.connectors.file_access import make_durable, size_of
from holdfast.connectors.file_sink.formats import (
    CsvSinkFormat,
    JsonSinkFormat,
    LineSinkFormat,
    ParquetSinkFormat,
    SinkFormat,
)
from holdfast.connectors.file_sink.naming import FileHandle, StagedFile, job_folder, staged_transaction, staging_folder
from holdfast.connectors.file_sink.options import BucketAssigner, FileSinkOptions, OutputFileConfig, RollingPolicy
from holdfast.connectors.file_sink.transaction import FileTransaction
from holdfast.errors import CorruptFileError, StorageError, TransactionError
from holdfast.failpoints import failpoint
from holdfast.runtime.batch import Batch
from holdfast.runtime.sink import TransactionName, TwoPhaseCommitSink
from holdfast.storage.checksum import check_file
from holdfast.storage.filesystem import Storage
from holdfast.types.resolve import resolve


class FileSink(TwoPhaseCommitSink):
    """One file per subtask and epoch that had rows, written to ``<path>/_holdfast_staging`` and moved to ``<path>``
    on commit.

    Whoever lists the path and leaves out names that begin with ``_`` or ``.`` sees complete, committed files only. A
    committed file must stay where it is until a later checkpoint has completed: a recovery that finds it in neither
    place takes it for lost.
    """

    def __init__(self, path: str, sink_format: SinkFormat, options: FileSinkOptions | None = None) -> None:
        self._storage = Storage.for_uri(path)
        self._format = sink_format
        self._options = options or FileSinkOptions()
        self._type = resolve(None)

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder) -> RowFormatBuilder:
        """PyFlink's way to a sink of lines."""
        return RowFormatBuilder(FileSink(base_path, LineSinkFormat(encoder)))

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

    def bind_type(self, type_info: Any) -> None:
        resolved = resolve(type_info)
        self._format.check(resolved)
        self._type = resolved

    def begin(self, name: TransactionName) -> FileTransaction:
        bucket = self._options.buckets.bucket(time.time())
        return FileTransaction(name, self._storage, (self._format, self._type), self._options, bucket)

    def write(self, transaction: FileTransaction, batch: Batch) -> None:
        transaction.write(batch)

    def pre_commit(self, transaction: FileTransaction) -> bytes | None:
        handle = transaction.finish()
        return None if handle is None else handle.encode()

    def discard(self, transaction: FileTransaction) -> None:
        with suppress(StorageError):
            transaction.discard()

    def commit(self, handles: Sequence[bytes]) -> None:
        self._commit(handles, verify=False)

    def recover_and_commit(self, handles: Sequence[bytes]) -> None:
        """As ``commit``; files still in staging, which a crash of their host may have damaged, are read and compared
        first."""
        self._commit(handles, verify=True)

    def open_transactions(self, job_id: str) -> Iterable[TransactionName]:
        """All that the job has in staging below this path: also of another sink of the job, if two share a path."""
        entries = self._storage.list(job_folder(job_id), recursive=True, temporaries=True)
        names = {staged_transaction(job_id, entry.path) for entry in entries if not entry.is_dir}
        return sorted(name for name in names if name is not None)

    def abort(self, name: TransactionName) -> None:
        for entry in self._storage.list(staging_folder(name), temporaries=True):
            if staged_transaction(name.job_id, entry.path) == name:
                self._storage.delete(entry.path)

    def name_of(self, handle: bytes) -> TransactionName:
        return FileHandle.decode(handle).name

    def _with(self, options: FileSinkOptions) -> FileSink:
        sink = FileSink(self._storage.uri, self._format, options)
        sink._type = self._type
        return sink

    def _commit(self, handles: Sequence[bytes], verify: bool) -> None:
        for handle in map(FileHandle.decode, handles):
            storage = self._storage if handle.root == self._storage.uri else Storage.for_uri(handle.root)
            for file in handle.files:
                _publish(storage, file, handle.name, verify)


def _publish(storage: Storage, file: StagedFile, name: TransactionName, verify: bool) -> None:
    """Move one file to its final name, or find that this was done before."""
    location = storage.location(file.final)
    published = size_of(storage, file.final)
    if published == file.size:
        # Whoever moved it may have died before the move was durable or, where a move is a copy, before its second half.
        make_durable(storage, file.final)
        storage.delete(file.staging)
        return
    if published is not None:
        raise TransactionError(
            f"{location} has {published} bytes, {file.size} were pre-committed as {name}. "
            "Something else wrote or cut this file; move it away and restart the job from its last checkpoint."
        )
    staged = size_of(storage, file.staging)
    if staged is None:
        raise TransactionError(
            f"{location} is lost: neither it nor {storage.location(file.staging)} exists, though {name} was "
            f"pre-committed with {file.size} bytes. "
            "If it was committed and then moved away, put it back; committed files must stay until a later checkpoint "
            "has completed."
        )
    if staged != file.size or verify:
        _check_staged(storage, file)
    storage.move(file.staging, file.final)
    failpoint("file-sink-moved", attempt=name.attempt, epoch=name.epoch, subtask=name.subtask)


def _check_staged(storage: Storage, file: StagedFile) -> None:
    try:
        check_file(storage, file.staging, file.size, file.checksum)
    except CorruptFileError as cause:
        raise TransactionError(
            f"{storage.location(file.final)} cannot be committed: {cause}. Restore an earlier checkpoint, or delete "
            "the "
            "file to accept the loss of its rows."
        ) from cause


class RowFormatBuilder:
    """PyFlink's builder of sinks of lines."""

    def __init__(self, sink: FileSink) -> None:
        self._sink = sink

    def with_output_file_config(self, output_file_config: OutputFileConfig) -> RowFormatBuilder:
        return RowFormatBuilder(self._sink.with_output_file_config(output_file_config))

    def with_rolling_policy(self, rolling_policy: RollingPolicy) -> RowFormatBuilder:
        return RowFormatBuilder(self._sink.with_rolling_policy(rolling_policy))

    def with_bucket_assigner(self, bucket_assigner: BucketAssigner) -> RowFormatBuilder:
        return RowFormatBuilder(self._sink.with_bucket_assigner(bucket_assigner))

    def with_bucket_check_interval(self, interval: int) -> RowFormatBuilder:
        """No effect: every file is closed at the end of its epoch, so there is nothing to check."""
        return self

    def build(self) -> FileSink:
        return self._sink
