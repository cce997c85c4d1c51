"""What a checkpoint costs in proportion to what changed since the one before. Without Spark."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import suite
from benchmarks.backends import Bench, backend_of
from benchmarks.catalogue import Size
from benchmarks.tables import Cell, Table

_KEYS = {Size.FULL: 1_000_000, Size.QUICK: 200_000, Size.TINY: 2_000}
_BACKENDS: dict[str, tuple[str, dict[str, str]]] = {
    "lmdb": ("lmdb", {}),
    "rocksdb": ("rocksdb", {}),
    "rocksdb, CHANGED_KEYS": ("rocksdb", {"snapshot-strategy": "CHANGED_KEYS"}),
}
#: Of all keys, one after the other.
_CHANGED = (0.001, 0.01, 0.1, 1.0)
_REPEATS = 3


def measure(size: Size) -> Sequence[Table]:
    keys = _KEYS[size]
    rows: list[list[Cell]] = []
    for name, (backend, options) in _BACKENDS.items():
        with tempfile.TemporaryDirectory() as directory:
            bench = Bench(backend_of(backend, options), keys, Path(directory))
            _, full = bench.checkpoint(1, None, 1)
            number = 1
            for share in _CHANGED:
                changed = max(1, round(keys * share))
                taken = []
                for _ in range(_REPEATS):
                    number += 1
                    taken.append(bench.checkpoint(number, bench.stamp.epoch, changed, "distinct")[1])
                taken.sort(key=lambda one: one["MB"])
                sync, later, size_mb = taken[len(taken) // 2].values()
                rows.append([name, changed, sync, later, size_mb, size_mb / full["MB"]])
            bench.store.close()
    title = f"cost of a checkpoint in proportion to change: {keys:,} keys of 100 bytes"
    columns = ["", "changed keys", "sync ms", "async ms", "MB", "of a full one"]
    return [Table("checkpoints", title, columns, rows)]


if __name__ == "__main__":
    raise SystemExit(suite.main(__doc__, measure))
