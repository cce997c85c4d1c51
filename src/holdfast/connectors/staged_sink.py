"""What sinks share whose rows wait for their checkpoint in files and are published by the driver."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import ClassVar

from holdfast.connectors.staged_files import delete_staged, staged_names
from holdfast.connectors.staging import StagedRows, StagingTransaction
from holdfast.errors import ProgramError, StorageError
from holdfast.runtime.batch import Batch
from holdfast.runtime.sink import TransactionName, TwoPhaseCommitSink
from holdfast.storage.filesystem import Storage

_ORDER = attrgetter("name.attempt", "name.epoch", "name.subtask")


class StagedSink(TwoPhaseCommitSink):
    """Tasks write frames of rows to files, and a handle names one of them. Nothing is in the other system before its
    checkpoint has completed, and tasks do not speak to that system at all.
    """

    #: What handles say that they are of, and errors call the sink.
    kind: ClassVar[str]

    def __init__(self, directory: str | None) -> None:
        self._directory = directory

    @abstractmethod
    def frame_of(self, batch: Batch) -> bytes:
        """In a task: the rows of a batch, of which there is at least one, as they are staged."""

    @abstractmethod
    def publish(self, job_id: str, operator_id: str, handles: Sequence[StagedRows]) -> None:
        """On the driver: publish those that were not published before, in this order, and delete their files. All
        handles are of this job and operator.
        """

    @abstractmethod
    def fence(self, job_id: str, operator_id: str) -> None:
        """On the driver: whoever else is publishing for this job and operator, a driver that was given up, has ended
        or is going to fail.
        """

    def bind_checkpoint_directory(self, directory: str | None) -> None:
        told = self._directory or directory
        if told is None:
            raise ProgramError(
                f"A {self.kind} keeps rows in files until their checkpoint completes, and this job keeps checkpoints "
                "in memory. Set execution.checkpointing.dir, or the staging directory of the sink "
                "(set_staging_directory), to one that all executors and the driver see."
            )
        self._directory = Storage.absolute(told)

    @property
    def _storage(self) -> Storage:
        assert self._directory is not None, "bind_checkpoint_directory has set it"
        return Storage.for_uri(self._directory)

    def begin(self, name: TransactionName) -> StagingTransaction:
        return StagingTransaction(self.kind, self._storage, name)

    def write(self, transaction: StagingTransaction, batch: Batch) -> None:
        if len(batch):
            transaction.write(self.frame_of(batch))

    def pre_commit(self, transaction: StagingTransaction) -> bytes | None:
        staged = transaction.finish()
        return None if staged is None else staged.encode()

    def discard(self, transaction: StagingTransaction) -> None:
        with suppress(StorageError):
            transaction.discard()

    def commit(self, handles: Sequence[bytes]) -> None:
        owners: dict[tuple[str, str], list[StagedRows]] = defaultdict(list)
        for data in handles:
            handle = StagedRows.decode(data, self.kind)
            owners[handle.name.job_id, handle.name.operator_id].append(handle)
        for owner, staged in owners.items():
            self.publish(*owner, sorted(staged, key=_ORDER))

    def open_transactions(self, job_id: str) -> Iterable[TransactionName]:
        """All that the job has staged in the directory: also of another sink of the job, if two share it."""
        return staged_names(self._storage, job_id)

    def abort(self, name: TransactionName) -> None:
        self.fence(name.job_id, name.operator_id)
        delete_staged(self._storage, name)

    def name_of(self, handle: bytes) -> TransactionName:
        return StagedRows.decode(handle, self.kind).name
