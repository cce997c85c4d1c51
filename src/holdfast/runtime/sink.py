"""The contracts of sinks: with transactions, and as plain functions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Any, Protocol

import msgspec

from holdfast.runtime.batch import Batch
from holdfast.runtime.contracts import Function, WrappingFunction
from holdfast.runtime.epoch import EpochEnd
from holdfast.types.settings import TextForm


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


class TwoPhaseCommitSink(Function):
    """Writes rows in transactions, one per (subtask, epoch). Picklable; used in tasks and on the driver.

    In a task, each epoch: ``begin`` at the first row, ``write`` per batch, ``end_epoch`` and ``pre_commit`` at the
    epoch's end; ``discard`` instead when the task fails in order. On the driver: ``commit`` after the checkpoint that
    holds the handle completed, ``recover_and_commit`` for the handles of a restored checkpoint, ``open_transactions``
    and ``abort`` for what is in no completed checkpoint.

    In tasks it is a function as others are, with ``open``, ``close`` and, as a ``CheckpointedFunction``, operator
    state: rows that it holds back from a transaction belong there. The object on the driver is another one.
    """

    #: CHECKPOINT unless rows may be seen before their checkpoint (print).
    publish_on: PublishOn = PublishOn.CHECKPOINT

    def bind_type(self, type_info: Any) -> None:
        """Told the stream's type once, on the driver, before the sink travels."""

    def bind_parallelism(self, parallelism: int) -> None:
        """Told how many subtasks it has, on the driver, before the sink travels."""

    def bind_checkpoint_directory(self, directory: str | None) -> None:
        """Told where the job keeps its checkpoints, on the driver, before the sink travels: a path or URI that all
        executors see, or None for the driver's memory.
        """

    def bind_publication(self, with_checkpoints: bool) -> None:
        """Told when the job publishes, on the driver, before the sink travels: with its checkpoints, or at the end of
        each epoch (or of the input), where what is published is not bound to the state of any checkpoint.
        """

    def bind_text_form(self, form: TextForm) -> None:
        """Told how the job writes rows as text, on the driver, before the sink travels."""

    @abstractmethod
    def begin(self, name: TransactionName) -> Any:
        """A transaction object that lives in the task for the rest of the epoch."""

    @abstractmethod
    def write(self, transaction: Any, batch: Batch) -> None: ...

    def end_input(self, transaction: Callable[[], Any]) -> None:
        """No more rows will come: write what was held back, to the transaction that ``transaction()`` gives."""

    def end_epoch(self, transaction: Callable[[], Any], end: EpochEnd) -> None:
        """Every epoch ends so, also one without rows: what was held back may still be written, to the transaction that
        ``transaction()`` gives. State is stored behind this.
        """

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

    def release(self, job_id: str, operator_id: str) -> None:
        """On the driver, when it commits nothing more for this job: let go of what commits kept open. Best effort."""

    def unpickles(self, handle: bytes) -> bool:
        """Whether ``commit`` unpickles anything of this handle. A handle that comes from a path, and not from the job's
        own checkpoints, is committed only where that is allowed.
        """
        return False

    @abstractmethod
    def name_of(self, handle: bytes) -> TransactionName:
        """The transaction that a handle commits."""

    def needs(self, handle: bytes) -> Iterable[TransactionName]:
        """The transactions that are not aborted while a checkpoint with this handle may be restored: the one that it
        commits, and earlier ones whose rows it publishes or leaves for later.
        """
        return [self.name_of(handle)]


class WrappingSink(WrappingFunction, TwoPhaseCommitSink):
    """A sink around another one, to which it passes all calls on. A subclass changes some of them and calls
    ``super()`` for the rest.
    """

    wrapped_function: TwoPhaseCommitSink

    def __init__(self, wrapped_sink: TwoPhaseCommitSink) -> None:
        super().__init__(wrapped_sink)
        self.publish_on = wrapped_sink.publish_on

    def bind_type(self, type_info: Any) -> None:
        self.wrapped_function.bind_type(type_info)

    def bind_parallelism(self, parallelism: int) -> None:
        self.wrapped_function.bind_parallelism(parallelism)

    def bind_checkpoint_directory(self, directory: str | None) -> None:
        self.wrapped_function.bind_checkpoint_directory(directory)

    def bind_publication(self, with_checkpoints: bool) -> None:
        self.wrapped_function.bind_publication(with_checkpoints)

    def bind_text_form(self, form: TextForm) -> None:
        self.wrapped_function.bind_text_form(form)

    def begin(self, name: TransactionName) -> Any:
        return self.wrapped_function.begin(name)

    def write(self, transaction: Any, batch: Batch) -> None:
        self.wrapped_function.write(transaction, batch)

    def end_input(self, transaction: Callable[[], Any]) -> None:
        self.wrapped_function.end_input(transaction)

    def end_epoch(self, transaction: Callable[[], Any], end: EpochEnd) -> None:
        self.wrapped_function.end_epoch(transaction, end)

    def pre_commit(self, transaction: Any) -> bytes | None:
        return self.wrapped_function.pre_commit(transaction)

    def discard(self, transaction: Any) -> None:
        self.wrapped_function.discard(transaction)

    def commit(self, handles: Sequence[bytes]) -> None:
        self.wrapped_function.commit(handles)

    def recover_and_commit(self, handles: Sequence[bytes]) -> None:
        self.wrapped_function.recover_and_commit(handles)

    def open_transactions(self, job_id: str) -> Iterable[TransactionName]:
        return self.wrapped_function.open_transactions(job_id)

    def abort(self, name: TransactionName) -> None:
        self.wrapped_function.abort(name)

    def release(self, job_id: str, operator_id: str) -> None:
        self.wrapped_function.release(job_id, operator_id)

    def unpickles(self, handle: bytes) -> bool:
        return self.wrapped_function.unpickles(handle)

    def name_of(self, handle: bytes) -> TransactionName:
        return self.wrapped_function.name_of(handle)

    def needs(self, handle: bytes) -> Iterable[TransactionName]:
        return self.wrapped_function.needs(handle)


class SinkFunction(Function):
    """Hands rows to another system one by one. It runs in tasks only and has no transactions: after a restart, rows
    since the last checkpoint come again.
    """

    @abstractmethod
    def invoke(self, value: Any, context: SinkContext) -> None:
        """One row."""

    def finish(self) -> None:
        """The input has ended: hand over what was held back."""


class SinkContext(Protocol):
    """The context of ``SinkFunction.invoke``, given with the row."""

    def timestamp(self) -> int | None:
        """The row's event time in milliseconds; None on a stream without timestamps."""

    def current_processing_time(self) -> int: ...

    def current_watermark(self) -> int: ...
