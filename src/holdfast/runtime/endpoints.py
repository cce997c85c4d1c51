"""The two ends of a job: operators that host a source or a sink."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from holdfast.errors import HoldfastError
from holdfast.runtime.batch import Batch, SideBatch
from holdfast.runtime.epoch import EpochEnd, SinkHandle
from holdfast.runtime.functions import FunctionOperator, method_of
from holdfast.runtime.plan import OperatorSpec
from holdfast.runtime.sink import TransactionName
from holdfast.runtime.source import ReadingFunction, ReadLimit, Source


class SourceOperator(FunctionOperator):
    """Reads one slice per epoch from a source function."""

    def __init__(self, spec: OperatorSpec) -> None:
        super().__init__(spec)
        #: Whether it has more than it was to read in this epoch, as far as that is known.
        self.has_more = False
        if isinstance(self.body, Source):
            self.function = ReadingFunction(self.body)

    def read(self, limit: ReadLimit) -> Iterator[int]:
        """Push this epoch's rows down the chain, a batch for each step of the iterator."""
        batches: Iterator[Batch | list[Any]] | None = None
        while True:
            try:
                batches = batches or iter(self.function.read(limit))
                rows_read = next(batches, None)
            except HoldfastError:
                raise
            except BaseException as error:
                raise self.failure(error, "the source could not be read") from error
            if rows_read is None:
                # One that comes to an end has all its rows before it; of another it is only known when it is stopped.
                stopped = self.rows_in >= limit.rows or time.monotonic() >= limit.deadline
                self.has_more = not self.ended and (self.body.bounded or stopped)
                return
            batch = rows_read if isinstance(rows_read, Batch) else Batch(rows_read)
            self.rows_in += len(batch)
            if isinstance(batch, SideBatch):
                self.output.collect_side(batch.tag_id, batch)
            else:
                self.output.collect_untagged(batch)
            yield len(batch)

    @property
    def ended(self) -> bool:
        return bool(self.function.ended)


class SinkOperator(FunctionOperator):
    """Writes each epoch's rows in a transaction of its own, pre-committed at the epoch's end."""

    def setup(self, environment: Any) -> None:
        super().setup(environment)
        self._transaction: Any = None

    def process(self, batch: Batch, input_index: int) -> None:
        try:
            self.function.write(self._begun(), batch)
        except BaseException as error:
            raise self.failure(error, batch.values[0]) from error

    def _begun(self) -> Any:
        """The transaction of this epoch."""
        environment = self.environment
        if self._transaction is None:
            self._transaction = self.function.begin(
                TransactionName(
                    environment.job_id,
                    self.spec.operator_id,
                    environment.subtask,
                    environment.attempt,
                    environment.epoch,
                    environment.nonce,
                )
            )
        return self._transaction

    def finish(self) -> None:
        self._call("end_input", self._begun)
        super().finish()

    def end_epoch(self, end: EpochEnd) -> list[SinkHandle]:
        self._call("end_epoch", self._begun, end)
        if self._transaction is None:
            return []
        transaction, self._transaction = self._transaction, None
        handle = self.function.pre_commit(transaction)
        if handle is None:
            return []
        return [SinkHandle(self.spec.operator_id, self.environment.subtask, handle)]

    def fail_epoch(self) -> None:
        if self._transaction is not None:
            transaction, self._transaction = self._transaction, None
            self.function.discard(transaction)


class SinkFunctionOperator(FunctionOperator):
    """Hands rows to a sink function."""

    def bind_state(self) -> None:
        super().bind_state()
        self._timestamp: int | None = None

    def process(self, batch: Batch, input_index: int) -> None:
        invoke = method_of(self.function, "invoke")
        value: Any = None
        try:
            if batch.timestamps is None:
                for value in batch.values:
                    invoke(value, self)
            else:
                for value, self._timestamp in zip(batch.values, batch.timestamps, strict=True):
                    invoke(value, self)
        except BaseException as error:
            raise self.failure(error, value) from error

    # What ``invoke`` is given with each row.

    def timestamp(self) -> int | None:
        return self._timestamp

    def current_processing_time(self) -> int:
        return self.environment.clock()

    def current_watermark(self) -> int:
        return self.watermark
