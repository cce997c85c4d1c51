"""What sinks share whose rows travel to the driver inside the handle: a transaction is its rows, and nothing is
outside."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import msgspec

from holdfast.errors import TransactionError
from holdfast.runtime.sink import TransactionName, TwoPhaseCommitSink


class RowsHandle(msgspec.Struct, frozen=True):
    """A transaction with its rows, encoded as the sink likes."""

    name: TransactionName
    rows: bytes
    #: Of the way in which the sink encodes them.
    version: int = 0


@dataclass
class RowsTransaction:
    name: TransactionName
    rows: list[Any] = field(default_factory=list)


class DriverSink(TwoPhaseCommitSink):
    """Rows are pre-committed into the handle and delivered in the driver by ``deliver``, each transaction at most
    once per process."""

    #: Of what ``encode_rows`` gives.
    rows_version: int = 0

    def begin(self, name: TransactionName) -> RowsTransaction:
        return RowsTransaction(name)

    def pre_commit(self, transaction: RowsTransaction) -> bytes | None:
        if not transaction.rows:
            return None
        rows = self.encode_rows(transaction.rows)
        return msgspec.msgpack.encode(RowsHandle(transaction.name, rows, self.rows_version))

    def discard(self, transaction: RowsTransaction) -> None:
        transaction.rows.clear()

    def commit(self, handles: Sequence[bytes]) -> None:
        order = attrgetter("name.attempt", "name.epoch", "name.subtask")
        for handle in sorted(map(decode_handle, handles), key=order):
            self.deliver(handle)

    @abstractmethod
    def encode_rows(self, rows: list[Any]) -> bytes:
        """In the task: the rows of one transaction as they travel."""

    @abstractmethod
    def deliver(self, handle: RowsHandle) -> None:
        """In the driver: hand out the rows of a transaction unless that was done before."""

    def open_transactions(self, job_id: str) -> Iterable[TransactionName]:
        return []

    def abort(self, name: TransactionName) -> None:
        """Nothing is outside of the handle."""

    def name_of(self, handle: bytes) -> TransactionName:
        return decode_handle(handle).name


def decode_handle(handle: bytes) -> RowsHandle:
    try:
        return msgspec.msgpack.decode(handle, type=RowsHandle)
    except (msgspec.MsgspecError, ValueError) as cause:
        raise TransactionError(
            f"A handle of {len(handle)} bytes does not hold rows ({cause}). "
            "Restore with the sink that wrote the checkpoint, or give this operator another uid."
        ) from cause
