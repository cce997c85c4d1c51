"""The events that every benchmark reads: (key bigint, value bigint), keys uniform, one Parquet file per epoch."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = "key BIGINT, value BIGINT"

_SEED = 20_260_101
_ROW_GROUPS_PER_FILE = 4


@dataclass(frozen=True)
class Shape:
    """How many events there are and how they are cut into epochs."""

    rows: int
    keys: int
    epoch_rows: int

    def __post_init__(self) -> None:
        if min(self.rows, self.keys, self.epoch_rows) < 1 or self.rows % self.epoch_rows:
            raise ValueError(
                f"rows={self.rows}, keys={self.keys}, epoch_rows={self.epoch_rows}: expected positive numbers, "
                "and rows to be a multiple of epoch_rows so that every epoch is one whole file"
            )

    @property
    def epochs(self) -> int:
        return self.rows // self.epoch_rows

    def shortened(self, epochs: int) -> Shape:
        """The same events, only the first epochs of them."""
        return Shape(self.epoch_rows * min(epochs, self.epochs), self.keys, self.epoch_rows)


def generate(root: Path, shape: Shape) -> Path:
    """The directory of the shape's files, written once and kept for later runs."""
    directory = root / f"events-{shape.rows}-{shape.keys}-{shape.epoch_rows}"
    if directory.exists():
        return directory
    draft = root / f".{directory.name}.{os.getpid()}"
    draft.mkdir(parents=True)
    for epoch in range(shape.epochs):
        key, value = _epoch(shape, epoch)
        table = pa.table({"key": key, "value": value})
        row_group = -(-shape.epoch_rows // _ROW_GROUPS_PER_FILE)
        pq.write_table(table, draft / f"part-{epoch:05}.parquet", row_group_size=row_group)
    try:
        # A directory under its final name is complete, also after an interrupted run.
        draft.rename(directory)
    except OSError:
        shutil.rmtree(draft)
    return directory


def expected_averages(shape: Shape) -> int:
    """How many averages of three values the keyed job must emit over all events."""
    counts = np.zeros(shape.keys, dtype=np.int64)
    for epoch in range(shape.epochs):
        counts += np.bincount(_epoch(shape, epoch)[0], minlength=shape.keys)
    return int((counts // 3).sum())


def _epoch(shape: Shape, epoch: int) -> tuple[np.ndarray, np.ndarray]:
    # Seeded by epoch: a shortened shape holds the same first epochs.
    generator = np.random.default_rng([_SEED, epoch])
    key = generator.integers(0, shape.keys, shape.epoch_rows, dtype=np.int64)
    value = generator.integers(0, 1_000, shape.epoch_rows, dtype=np.int64)
    return key, value
