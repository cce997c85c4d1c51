"""The two ends of a job: operators that host a source or a two-phase-commit sink."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from holdfast.errors import HoldfastError
from holdfast.runtime.batch import Batch
from holdfast.runtime.epoch import SinkHandle
from holdfast.runtime.operator import MAX_WATERMARK, Operator
from holdfast.runtime.sink import TransactionName
from holdfast.runtime.source import ReaderContext, ReadLimit, SourceReader
from holdfast.state.descriptors import ListStateDescriptor
from holdfast.types.typeinfo import Types


class SourceOperator(Operator):
    """Reads one slice per epoch. The reader's positions are a union list: every subtask sees all of them at a
    restore.
    """

    reader: SourceReader

    def bind_state(self) -> None:
        store = self.environment.operator_state
        self._positions = store.get_union_list_state(ListStateDescriptor("_positions", Types.PICKLED_BYTE_ARRAY()))
        restored = list(self._positions.get()) if self.environment.has_restored_state else None
        self._restored = restored

    def open(self) -> None:
        context = ReaderContext(self.environment.subtask, self.spec.parallelism, self._restored)
        self.reader = self.body.create_reader(context)

    def read(self, rows: int, max_millis: int) -> Iterator[int]:
        """Push this epoch's rows down the chain, a batch for each step of the iterator."""
        limit = ReadLimit(rows, time.monotonic() + max_millis / 1000)
        batches = iter(self.reader.read(limit))
        while True:
            try:
                batch = next(batches, None)
            except HoldfastError:
                raise
            except Exception as error:
                raise self.failure(error, "the source could not be read") from error
            if batch is None:
                return
            self.rows_in += len(batch)
            self.output.collect(batch)
            yield len(batch)

    @property
    def ended(self) -> bool:
        return self.reader.ended

    def end_of_input(self) -> None:
        self.process_watermark(MAX_WATERMARK)

    def snapshot_state(self, checkpoint_id: int, timestamp: int) -> None:
        self._positions.update(self.reader.positions())

    def notify_complete(self, checkpoint_id: int) -> None:
        self.reader.notify_checkpoint_complete(checkpoint_id)

    def close(self) -> None:
        self.reader.close()

    def travelling_fields(self) -> dict[str, Any]:
        return {**super().travelling_fields(), "reader": self.reader}

    def adopt_fields(self, fields: dict[str, Any]) -> None:
        super().adopt_fields(fields)
        self.reader = fields["reader"]


class SinkOperator(Operator):
    """Writes each epoch's rows in a transaction of its own, pre-committed at the epoch's end."""

    def setup(self, environment: Any) -> None:
        super().setup(environment)
        self._transaction: Any = None

    def process(self, batch: Batch, input_index: int) -> None:
        environment = self.environment
        try:
            if self._transaction is None:
                self._transaction = self.body.begin(
                    TransactionName(
                        environment.job_id,
                        self.spec.operator_id,
                        environment.subtask,
                        environment.attempt,
                        environment.epoch,
                        environment.nonce,
                    )
                )
            self.body.write(self._transaction, batch)
        except Exception as error:
            raise self.failure(error, batch.values[0]) from error

    def end_epoch(self) -> list[SinkHandle]:
        if self._transaction is None:
            return []
        transaction, self._transaction = self._transaction, None
        handle = self.body.pre_commit(transaction)
        if handle is None:
            return []
        return [SinkHandle(self.spec.operator_id, self.environment.subtask, handle)]

    def fail_epoch(self) -> None:
        if self._transaction is not None:
            transaction, self._transaction = self._transaction, None
            self.body.discard(transaction)
