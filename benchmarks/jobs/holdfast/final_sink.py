"""A discarding sink for jobs that emit the totals of a key whenever they like: it knows the last of each key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np

from benchmarks.jobs.holdfast.sink import CheckingSink, Counted
from holdfast.runtime.batch import Batch
from holdfast.runtime.sink import TransactionName


@dataclass
class Totals:
    """What a transaction was given: for each batch the keys, and the checked columns."""

    name: TransactionName
    batches: list[list[np.ndarray]] = field(default_factory=list)


class FinalSink(CheckingSink):
    """Rows are (key, ...), and the checked columns of a key never decrease: its highest ones are its last.

    ``committed`` gives the number of keys, and the sum of their last columns.
    """

    def begin(self, name: TransactionName) -> Totals:  # type: ignore[override]  # its own kind of transaction
        return Totals(name)

    def write(self, transaction: Totals, batch: Batch) -> None:  # type: ignore[override]  # its own kind of transaction
        transaction.batches.append([_numbers(batch, column) for column in (0, *self._columns)])

    def pre_commit(self, transaction: Totals) -> bytes:  # type: ignore[override]  # its own kind of transaction
        nothing = np.zeros((1 + len(self._columns), 0), dtype=np.int64)
        np.save(self._staged(transaction.name), np.concatenate([nothing, *map(np.array, transaction.batches)], axis=1))
        return msgspec.msgpack.encode(Counted(transaction.name))

    def commit(self, handles: Sequence[bytes]) -> None:
        for handle in handles:
            staged = self._staged(self.name_of(handle))
            if staged.exists():
                staged.rename(staged.with_name(staged.name.removeprefix(".")))

    def committed(self) -> tuple[int, int]:
        tables = [np.load(path) for path in self._directory.glob("[!.]*.npy")]
        if not tables:
            return 0, 0
        keys, *columns = np.concatenate(tables, axis=1)
        known, places = np.unique(keys, return_inverse=True)
        checksum = 0
        for column in columns:
            last = np.zeros(len(known), dtype=np.int64)
            np.maximum.at(last, places, column)
            checksum += int(last.sum())
        return len(known), checksum

    def _staged(self, name: TransactionName) -> Path:
        return self._directory / f".{name.epoch}-{name.subtask}-{name.nonce}.npy"


def _numbers(batch: Batch, column: int) -> np.ndarray:
    if batch.arrow is not None:
        return np.asarray(batch.arrow.column(column))
    return np.fromiter((row[column] for row in batch.values), dtype=np.int64, count=len(batch))
