"""Rows for the program that runs the job: ``execute_and_collect``."""

from __future__ import annotations

import queue
import uuid
from collections.abc import Iterator
from typing import Any

from holdfast.connectors.committed import CommittedNames
from holdfast.connectors.memory_sink import DriverSink, RowsHandle, RowsTransaction
from holdfast.errors import TransactionError
from holdfast.runtime.batch import Batch
from holdfast.types.pickling import dumps, loads

_END = object()


class Collection:
    """The receiving end, in the driver: rows in the order in which their transactions are committed. For one
    consumer thread."""

    def __init__(self) -> None:
        self.id = uuid.uuid4().hex
        self._rows: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._committed = CommittedNames()
        self._ended = False
        _collections[self.id] = self

    def sink(self) -> CollectSink:
        return CollectSink(self.id)

    def deliver(self, handle: RowsHandle) -> None:
        if self._committed.add(handle.name):
            self._rows.put(handle.rows)

    def finish(self, error: BaseException | None = None) -> None:
        """No more rows will come; whoever iterates gets the error after the last of them."""
        self._rows.put(_END if error is None else error)

    def available(self) -> list[Any]:
        """The rows that have arrived and were not taken yet, without waiting. Raises the job's error when it is
        next."""
        rows: list[Any] = []
        while not self._ended:
            try:
                rows.extend(self._take(block=False))
            except queue.Empty:
                break
        return rows

    def __iter__(self) -> Iterator[Any]:
        """Waits for rows until ``finish``."""
        while not self._ended:
            yield from self._take(block=True)

    def close(self) -> None:
        """Forget it: a transaction that is committed later is an error."""
        _collections.pop(self.id, None)

    def _take(self, block: bool) -> list[Any]:
        arrived = self._rows.get(block=block)
        if isinstance(arrived, bytes):
            return list(loads(arrived))
        self._ended = True
        if isinstance(arrived, BaseException):
            raise arrived
        return []


#: Of this process, by id.
_collections: dict[str, Collection] = {}


class CollectSink(DriverSink):
    """Sends rows, pickled, to the collection of an id in the driver's process. Exactly once as long as that process
    lives."""

    def __init__(self, collection_id: str) -> None:
        self._collection_id = collection_id

    def write(self, transaction: RowsTransaction, batch: Batch) -> None:
        transaction.rows.extend(batch.values)

    def encode_rows(self, rows: list[Any]) -> bytes:
        return dumps(rows)

    def deliver(self, handle: RowsHandle) -> None:
        collection = _collections.get(self._collection_id)
        if collection is None:
            raise TransactionError(
                f"{handle.name} holds rows for a collection that does not exist in this process. "
                "Rows are collected by the program that runs the job: keep its iterator open until the job has ended."
            )
        collection.deliver(handle)
