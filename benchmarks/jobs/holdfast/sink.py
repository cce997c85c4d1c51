"""A discarding sink that knows how much it dropped."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path

import msgspec
import pyarrow.compute as pc

from holdfast.connectors.discard import DiscardSink
from holdfast.runtime.batch import Batch
from holdfast.runtime.sink import TransactionName


class Counted(msgspec.Struct):
    """How many rows a transaction dropped, and the sum of their checked columns."""

    name: TransactionName
    rows: int = 0
    checksum: int = 0


class CheckingSink(DiscardSink):
    """Drops rows and writes down their number and the sum of some columns, one file a committed transaction: proof
    that the job did its work.
    """

    def __init__(self, directory: Path, columns: Sequence[int]) -> None:
        self._directory = directory
        self._columns = tuple(columns)

    def begin(self, name: TransactionName) -> Counted:  # type: ignore[override]  # its own transaction
        return Counted(name)

    def write(self, transaction: Counted, batch: Batch) -> None:  # type: ignore[override]  # its own transaction
        transaction.rows += len(batch)
        for column in self._columns:
            if batch.arrow is not None:
                transaction.checksum += pc.sum(batch.arrow.column(column)).as_py() or 0
            else:
                transaction.checksum += sum(map(itemgetter(column), batch.values))

    def pre_commit(self, transaction: Counted) -> bytes:  # type: ignore[override]  # its own transaction
        return msgspec.msgpack.encode(transaction)

    def commit(self, handles: Sequence[bytes]) -> None:
        for handle in handles:
            counted = msgspec.msgpack.decode(handle, type=Counted)
            name = counted.name
            # A transaction that is committed again has the same file.
            (self._directory / f"{name.epoch}-{name.subtask}-{name.nonce}").write_bytes(handle)

    def name_of(self, handle: bytes) -> TransactionName:
        return msgspec.msgpack.decode(handle, type=Counted).name

    def committed(self) -> tuple[int, int]:
        """Rows and checksum of all transactions."""
        counted = [msgspec.msgpack.decode(path.read_bytes(), type=Counted) for path in self._directory.iterdir()]
        return sum(one.rows for one in counted), sum(one.checksum for one in counted)
