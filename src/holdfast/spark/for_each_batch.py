"""Rows for any writer of Spark's: staged in files, and handed to a function when their checkpoint is complete."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pyspark.sql import DataFrame

from holdfast.connectors.file_sink.formats import ParquetSinkFormat
from holdfast.connectors.file_sink.naming import FileHandle
from holdfast.connectors.file_sink.publishing import check_staged
from holdfast.connectors.file_sink.sink import FileSink
from holdfast.connectors.staged_files import staging_folder
from holdfast.errors import ProgramError, StorageError, TransactionError
from holdfast.failpoints import failpoint
from holdfast.runtime.batch import Batch
from holdfast.runtime.sink import TransactionName, TwoPhaseCommitSink
from holdfast.spark.internals.jvm import session_of_this_process
from holdfast.storage.filesystem import Storage, is_missing

BatchFunction = Callable[[DataFrame, int], None]

#: Below the directory of checkpoints, where no other is given.
_FOLDER = "_for_each_batch"
_RECORD = "delivered"
_ATTEMPT_BITS = 24
_FORMAT = ParquetSinkFormat("zstd")


def batch_id_of(name: TransactionName) -> int:
    """One number for all rows that an epoch wrote. It grows with the epoch, and an epoch that another attempt runs
    again, with other rows, has another one.
    """
    return name.epoch << _ATTEMPT_BITS | name.attempt


class ForEachBatchSink(TwoPhaseCommitSink):
    """``function(data_frame, batch_id)`` is called in the driver, for each epoch with rows, in the order of epochs.

    It is called again with the same id and the same rows when the driver died, or the function raised, before it was
    recorded that it returned. The function itself stays in the process that made the sink.
    """

    def __init__(self, function: BatchFunction, staging_path: str | None) -> None:
        self._key = uuid.uuid4().hex
        _functions[self._key] = function
        self._path = staging_path
        self._files: FileSink | None = None
        self._type: Any = None

    def bind_type(self, type_info: Any) -> None:
        _FORMAT.check(type_info)
        self._type = type_info

    def bind_checkpoint_directory(self, directory: str | None) -> None:
        path = self._path if self._path is not None or directory is None else f"{directory.rstrip('/')}/{_FOLDER}"
        if path is None:
            raise ProgramError(
                "for_each_batch() needs a directory for rows that wait for their checkpoint, which the driver and all "
                "executors reach: set execution.checkpointing.dir, or give it a staging_path."
            )
        self._files = FileSink(path, _FORMAT)
        self._files.bind_type(self._type)

    # -- in tasks

    def begin(self, name: TransactionName) -> Any:
        return self._staged.begin(name)

    def write(self, transaction: Any, batch: Batch) -> None:
        self._staged.write(transaction, batch)

    def pre_commit(self, transaction: Any) -> bytes | None:
        return self._staged.pre_commit(transaction)

    def discard(self, transaction: Any) -> None:
        self._staged.discard(transaction)

    # -- in the driver

    def commit(self, handles: Sequence[bytes]) -> None:
        self._deliver_all(handles, verify=False)

    def recover_and_commit(self, handles: Sequence[bytes]) -> None:
        """As ``commit``; files, which a crash of their host may have damaged, are read and compared first."""
        self._deliver_all(handles, verify=True)

    def _deliver_all(self, handles: Sequence[bytes], verify: bool) -> None:
        epochs: dict[tuple[int, str], list[FileHandle]] = defaultdict(list)
        for handle in map(FileHandle.decode, handles):
            epochs[batch_id_of(handle.name), handle.name.job_id].append(handle)
        for (batch_id, _), parts in sorted(epochs.items(), key=lambda epoch: epoch[0]):
            self._deliver(batch_id, sorted(parts, key=lambda part: part.name), verify)

    def open_transactions(self, job_id: str) -> Iterable[TransactionName]:
        return self._staged.open_transactions(job_id)

    def abort(self, name: TransactionName) -> None:
        self._staged.abort(name)

    def name_of(self, handle: bytes) -> TransactionName:
        return self._staged.name_of(handle)

    def _deliver(self, batch_id: int, parts: list[FileHandle], verify: bool) -> None:
        storage = Storage.for_uri(parts[0].root)
        record = f"{staging_folder(parts[0].name)}/{_RECORD}"
        paths = [file.staging for part in parts for file in part.files]
        missing = [path for path in paths if not storage.exists(path)]
        if not missing:
            for file in (file for part in parts for file in part.files if verify):
                check_staged(storage, file)
            _functions[self._key](read_rows([storage.location(path) for path in paths]), batch_id)
            failpoint("for-each-batch.returned", batch=batch_id)
            # Before the rows go: without them only this says that they were delivered, and are not lost.
            storage.write_atomic(record, str(batch_id).encode())
        elif _last_delivered(storage, record) < batch_id:
            raise TransactionError(
                f"The rows of batch {batch_id} are lost: {storage.location(missing[0])} does not exist, and nothing "
                "says that they were delivered. If the staging directory was moved, put it back; else restore an "
                "earlier checkpoint."
            )
        for path in paths:
            storage.delete(path)

    @property
    def _staged(self) -> FileSink:
        assert self._files is not None
        return self._files


#: Of this process, by key: what the function refers to need not be picklable.
_functions: dict[str, BatchFunction] = {}


def read_rows(files: Sequence[str]) -> DataFrame:
    """The rows of staged files, in the program's own session."""
    session = session_of_this_process()
    if session is None:
        raise TransactionError("There is no Spark session to hand rows over with: the Spark application has ended.")
    return session.read.parquet(*(f"file://{file}" if file.startswith("/") else file for file in files))


def _last_delivered(storage: Storage, record: str) -> int:
    try:
        return int(storage.read(record))
    except StorageError as error:
        if is_missing(error):
            return -1
        raise
