"""A discarding sink that knows how much it dropped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from holdfast.connectors.discard import DiscardSink
from holdfast.runtime.batch import Batch
from holdfast.runtime.sink import TransactionName


class Counted(msgspec.Struct):
    """How many rows a transaction dropped."""

    name: TransactionName
    rows: int = 0


class CountingDiscardSink(DiscardSink):
    """Drops rows and writes down how many were committed, one file a transaction: proof that the job did its work."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def begin(self, name: TransactionName) -> Counted:  # type: ignore[override]
        return Counted(name)

    def write(self, transaction: Counted, batch: Batch) -> None:  # type: ignore[override]
        transaction.rows += len(batch)

    def pre_commit(self, transaction: Counted) -> bytes:  # type: ignore[override]
        return msgspec.msgpack.encode(transaction)

    def commit(self, handles: Sequence[bytes]) -> None:
        for handle in handles:
            counted = msgspec.msgpack.decode(handle, type=Counted)
            name = counted.name
            (self._directory / f"{name.epoch}-{name.subtask}-{name.nonce}").write_text(str(counted.rows))

    def name_of(self, handle: bytes) -> TransactionName:
        return msgspec.msgpack.decode(handle, type=Counted).name

    def committed(self) -> int:
        return sum(int(path.read_text()) for path in self._directory.iterdir())
