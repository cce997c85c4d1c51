"""The contract of two-phase-commit sinks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from holdfast.runtime.batch import Batch


class TransactionName(msgspec.Struct, frozen=True, order=True):
    """Who wrote a transaction. Unique per execution: a task that runs twice writes two, and only one is ever
    committed.
    """

    job_id: str
    operator_id: str
    subtask: int
    attempt: int
    epoch: int
    nonce: str


class PublishOn(StrEnum):
    """When the coordinator commits what an epoch pre-committed."""

    CHECKPOINT = "CHECKPOINT"
    EPOCH = "EPOCH"


class TwoPhaseCommitSink(ABC):
    """Writes rows in transactions, one per (subtask, epoch). Picklable; used in tasks and on the driver.

    In a task, each epoch: ``begin`` at the first row, ``write`` per batch, ``pre_commit`` at the epoch's end;
    ``discard`` instead when the task fails in order. On the driver: ``commit`` after the checkpoint that holds the
    handle completed, ``recover_and_commit`` for the handles of a restored checkpoint, ``open_transactions`` and
    ``abort`` for what is in no completed checkpoint.
    """

    #: CHECKPOINT unless rows may be seen before their checkpoint (print).
    publish_on: PublishOn = PublishOn.CHECKPOINT

    def bind_type(self, type_info: Any) -> None:
        """Told the stream's type once, on the driver, before the sink travels."""

    def bind_parallelism(self, parallelism: int) -> None:
        """Told how many subtasks it has, on the driver, before the sink travels."""

    @abstractmethod
    def begin(self, name: TransactionName) -> Any:
        """A transaction object that lives in the task for the rest of the epoch."""

    @abstractmethod
    def write(self, transaction: Any, batch: Batch) -> None: ...

    @abstractmethod
    def pre_commit(self, transaction: Any) -> bytes | None:
        """Make it durable and give a handle that is enough to commit from any process; None when there is nothing to
        commit.
        """

    @abstractmethod
    def discard(self, transaction: Any) -> None:
        """The task failed: drop what was written. Best effort; recovery aborts what is left."""

    @abstractmethod
    def commit(self, handles: Sequence[bytes]) -> None:
        """Publish. Idempotent; a handle that can neither be committed nor was committed raises TransactionError."""

    def recover_and_commit(self, handles: Sequence[bytes]) -> None:
        """Publish handles of a restored checkpoint, most of which were published before."""
        self.commit(handles)

    @abstractmethod
    def open_transactions(self, job_id: str) -> Iterable[TransactionName]:
        """Transactions of this job that are not committed, also those of drivers and tasks that died."""

    @abstractmethod
    def abort(self, name: TransactionName) -> None:
        """Drop one transaction for good. Idempotent."""

    @abstractmethod
    def name_of(self, handle: bytes) -> TransactionName:
        """The transaction that a handle commits."""
