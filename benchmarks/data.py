"""The rows that every benchmark reads: whole numbers, made from a seed, in Parquet or CSV files.

- ``events`` (key, value): keys uniform or by Zipf's law. All values of a key are equal, so that what a job emits does
  not depend on the order in which an engine reads its files.
- ``clicks`` (key, time): users come, are active for a while with pauses, and go; times never go back.
- ``readings`` (key, value, time): of sensors, each of which is as likely as the others to be the next.
- ``bids`` (auction, bidder, price, time) and ``arrivals``, which are ``persons`` (person, time) and ``auctions``
  (auction, seller, time): after the proportions of Nexmark's generator.

An epoch is two Parquet files of every second row, which are read side by side as the partitions of a topic are. Of a
single file Spark would make one task, and leave a core idle. Had each reader epochs of its own, it would be ahead of
the others by whole ones. CSV files, one an epoch, are for an engine that is given them behind one another.

Tables with times end with rows of the key -1 far in the future, in epochs of their own: they close the windows of
engines that know no end of input. Jobs drop what comes of them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

#: Columns of each table; all are BIGINT.
COLUMNS = {
    "events": ("key", "value"),
    "clicks": ("key", "time"),
    "readings": ("key", "value", "time"),
    "bids": ("auction", "bidder", "price", "time"),
    "persons": ("person", "time"),
    "auctions": ("auction", "seller", "time"),
}
#: Tables of each kind of data, and how many of the rows are in them.
KINDS: dict[str, dict[str, float]] = {
    "events": {"events": 1},
    "clicks": {"clicks": 1},
    "readings": {"readings": 1},
    "bids": {"bids": 1},
    "arrivals": {"persons": 0.25, "auctions": 0.75},
}
#: Event time between two rows of a table, in milliseconds. Even, so that no pause is as long as a gap, which is odd.
STEP_MS = 2
#: Parquet files of an epoch: one for each core.
FILES_OF_EPOCH = 2
#: Epochs at the end of tables with times, which have one row in each file.
_CLOSING = 2
CLOSING_TIME = 10**10

_SEED = 20_260_101
_BLOCK = 10_000
_ROW_GROUPS_PER_FILE = 4
_ZIPF = 1.2


def schema(table: str) -> str:
    """As Spark writes it."""
    return ", ".join(f"{column} BIGINT" for column in COLUMNS[table])


@dataclass(frozen=True)
class Shape:
    """How many rows there are and how they are cut into epochs. ``keys`` of clicks are those active at a time."""

    rows: int
    keys: int
    epoch_rows: int
    kind: str = "events"
    distribution: str = "uniform"
    #: Epochs at the start that are not measured: processes start in them, and code is compiled.
    warm_up: int = 2

    def __post_init__(self) -> None:
        if min(self.rows, self.keys, self.epoch_rows) < 1 or self.rows % self.epoch_rows:
            raise ValueError(
                f"rows={self.rows}, keys={self.keys}, epoch_rows={self.epoch_rows}: expected positive numbers, "
                "and rows to be a multiple of epoch_rows so that every epoch is whole files"
            )

    @property
    def epochs(self) -> int:
        return self.rows // self.epoch_rows

    @property
    def gap_ms(self) -> int:
        """The gap of sessions: a user who is active pauses for longer at every twentieth click."""
        return 3 * self.keys * STEP_MS + 1

    @property
    def closing(self) -> int:
        """Rows of each table that close windows."""
        timed = all("time" in COLUMNS[table] for table in KINDS[self.kind])
        return _CLOSING * FILES_OF_EPOCH if timed else 0

    def prefix(self, rows: int, epochs: int) -> Shape:
        """The first rows of the same ones, in so many epochs; no more than there are."""
        each = max(1, min(rows, self.rows) // epochs)
        return replace(self, rows=each * epochs, epoch_rows=each)

    def name(self) -> str:
        return f"{self.kind}-{self.distribution}-{self.rows}-{self.keys}-{self.epoch_rows}"


def generate(root: Path, shape: Shape, form: str = "parquet") -> Path:
    """The directory of the shape's tables, each a directory of files, written once and kept for later runs."""
    files = FILES_OF_EPOCH if form == "parquet" else 1
    # With what is in a file in its name: those that an older generator left have something else.
    directory = root / f"{shape.name()}-{files}-{shape.closing}-{form}"
    if directory.exists():
        return directory
    draft = root / f".{directory.name}.{os.getpid()}"
    for table in KINDS[shape.kind]:
        (draft / table).mkdir(parents=True)
        parts = (
            {name: column[part::files] for name, column in columns.items()}
            for columns in epochs_of(table, shape)
            for part in range(files)
        )
        for number, columns in enumerate(parts):
            path = draft / table / f"part-{number:05}.{form}"
            _write(pa.table(columns), path)
            # Spark reads files in the order of their times.
            os.utime(path, (1_700_000_000 + number,) * 2)
    try:
        # A directory under its final name is complete, also after an interrupted run.
        draft.rename(directory)
    except OSError:
        shutil.rmtree(draft)
    return directory


def epochs_of(table: str, shape: Shape) -> Iterator[dict[str, np.ndarray]]:
    """The columns of each epoch, the closing ones too."""
    rows = round(shape.epoch_rows * KINDS[shape.kind][table])
    for epoch in range(shape.epochs):
        yield _columns(table, shape, epoch * rows, (epoch + 1) * rows)
    for number in range(_CLOSING if shape.closing else 0):
        nothing = np.full(FILES_OF_EPOCH, -1)
        times = {"time": np.full(len(nothing), CLOSING_TIME + number * STEP_MS)}
        yield {column: times.get(column, nothing) for column in COLUMNS[table]}


def value_of(key: np.ndarray) -> np.ndarray:
    """The value of all events of a key."""
    return (key * 2654435761 >> 8) % 1000


def _write(table: pa.Table, path: Path) -> None:
    if path.suffix == ".csv":
        pa.csv.write_csv(table, path, pa.csv.WriteOptions(include_header=False))
    else:
        pq.write_table(table, path, row_group_size=max(1, -(-table.num_rows // _ROW_GROUPS_PER_FILE)))


def _columns(table: str, shape: Shape, start: int, stop: int) -> dict[str, np.ndarray]:
    # Seeded by block: a prefix that is cut into other epochs holds the same rows.
    first, last = start // _BLOCK, -(-stop // _BLOCK)
    blocks = [_block(table, shape, number) for number in range(first, last)]
    cut = slice(start - first * _BLOCK, stop - first * _BLOCK)
    return {column: np.concatenate([block[column] for block in blocks])[cut] for column in COLUMNS[table]}


def _block(table: str, shape: Shape, number: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng([_SEED, number])
    index = np.arange(number * _BLOCK, (number + 1) * _BLOCK)
    time = index * STEP_MS
    if table == "events":
        key = _keys(random, shape)
        return {"key": key, "value": value_of(key)}
    if table == "clicks":
        # The active users move on by one with every twentieth click.
        return {"key": index // 20 + random.integers(0, shape.keys, _BLOCK), "time": time}
    if table == "readings":
        return {"key": _keys(random, shape), "value": random.integers(-1000, 1000, _BLOCK), "time": time}
    if table == "bids":
        # Half of the bids are for hot auctions: one in a hundred.
        hot = random.random(_BLOCK) < 0.5
        recent = index // 15 + random.integers(0, shape.keys, _BLOCK)
        price = random.integers(100, 10_000_000, _BLOCK) * 100_000 + index % 100_000
        return {
            "auction": np.where(hot, recent // 100 * 100, recent),
            "bidder": random.integers(0, shape.keys, _BLOCK),
            "price": price,
            "time": time,
        }
    if table == "persons":
        return {"person": index, "time": time * 3}
    seller = np.maximum(index // 3 - random.integers(0, 3_000, _BLOCK), 0)
    return {"auction": index, "seller": seller, "time": time}


def _keys(random: np.random.Generator, shape: Shape) -> np.ndarray:
    if shape.distribution == "uniform":
        return random.integers(0, shape.keys, _BLOCK)
    # So that frequent keys are not neighbours.
    return random.zipf(_ZIPF, _BLOCK) % shape.keys * 2654435761 % shape.keys
