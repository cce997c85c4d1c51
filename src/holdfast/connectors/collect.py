"""Rows for the program that runs the job: ``execute_and_collect``."""

from __future__ import annotations

import queue
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec

from holdfast.connectors.committed import CommittedNames
from holdfast.connectors.memory_sink import DriverSink, RowsHandle, RowsTransaction, decode_handle
from holdfast.errors import StateTypeError, TransactionError
from holdfast.runtime.batch import Batch
from holdfast.runtime.sink import TransactionName
from holdfast.state.serializers import Serializer, migration, serializer_for, serializer_from_snapshot
from holdfast.types.pickling import dumps, loads
from holdfast.types.resolve import resolve
from holdfast.types.row import Row

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

    def deliver(self, name: TransactionName, rows: Callable[[], list[Any]]) -> None:
        """``rows`` is called by the consumer."""
        if self._committed.add(name):
            self._rows.put(rows)

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
        if callable(arrived):
            return list(arrived())
        self._ended = True
        if isinstance(arrived, BaseException):
            raise arrived
        return []


#: Of this process, by id.
_collections: dict[str, Collection] = {}


class _Rows(msgspec.Struct, array_like=True, frozen=True):
    """The rows of a transaction: of a type, one by one; else all of them pickled, as the only element."""

    type_snapshot: dict[str, Any] | None
    rows: list[bytes]


class CollectSink(DriverSink):
    """Sends rows to the collection of an id in the driver's process. Exactly once as long as that process lives.

    Rows are pickled where their type was not declared, or where they are not of it.
    """

    rows_version = 1

    def __init__(self, collection_id: str) -> None:
        self._collection_id = collection_id
        self._type = resolve(None)

    def bind_type(self, type_info: Any) -> None:
        self._type = resolve(type_info)

    def write(self, transaction: RowsTransaction, batch: Batch) -> None:
        transaction.rows.extend(batch.values)

    def encode_rows(self, rows: list[Any]) -> bytes:
        encoded = None if self._type.pickled else _typed(serializer_for(self._type), rows)
        return msgspec.msgpack.encode(encoded or _Rows(None, [dumps(rows)]))

    def unpickles(self, handle: bytes) -> bool:
        rows = _rows_of(decode_handle(handle))
        return rows.type_snapshot is None or serializer_from_snapshot(rows.type_snapshot).type_info.pickled

    def deliver(self, handle: RowsHandle) -> None:
        collection = _collections.get(self._collection_id)
        if collection is None:
            raise TransactionError(
                f"{handle.name} holds rows for a collection that does not exist in this process. "
                "Rows are collected by the program that runs the job: keep its iterator open until the job has ended."
            )
        collection.deliver(handle.name, partial(_decoded, _rows_of(handle), serializer_for(self._type)))


def _typed(serializer: Serializer, rows: list[Any]) -> _Rows | None:
    """None unless the same rows come back."""
    try:
        encoded = serializer.encode_many(rows)
    except StateTypeError:
        return None
    if list(map(_shape, serializer.decode_many(encoded))) != list(map(_shape, rows)):
        return None
    return _Rows(serializer.snapshot(), encoded)


def _shape(row: Any) -> Any:
    """What a type may change in a row: its class, and of a ``Row``, which has many, its names and its kind."""
    return (row._fields, row.get_row_kind()) if isinstance(row, Row) else type(row)


def _rows_of(handle: RowsHandle) -> _Rows:
    """In version 0 they were pickled, without anything around them."""
    return msgspec.msgpack.decode(handle.rows, type=_Rows) if handle.version else _Rows(None, [handle.rows])


def _decoded(rows: _Rows, wanted: Serializer) -> list[Any]:
    if rows.type_snapshot is None:
        return list(loads(rows.rows[0]))
    change = migration(serializer_from_snapshot(rows.type_snapshot), wanted)
    return wanted.decode_many(list(map(change, rows.rows)))
