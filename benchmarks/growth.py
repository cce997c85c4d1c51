"""What a row costs as state grows: every row reads and updates the state of another key, in epochs that are as large
for much state as for little. One process for each backend and size, without Spark.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks import suite
from benchmarks.backends import Bench, backend_of
from benchmarks.catalogue import Size
from benchmarks.tables import Cell, Table

_KEYS = {
    Size.FULL: (10_000, 100_000, 1_000_000, 10_000_000),
    Size.QUICK: (10_000, 100_000, 1_000_000),
    Size.TINY: (1_000, 2_000),
}
_ROWS = {Size.FULL: 10_000, Size.QUICK: 10_000, Size.TINY: 500}
_BACKENDS = ("lmdb", "rocksdb")
_EPOCHS = 5
_REPEATS = 3
_ONLY = "--only"


def measure(size: Size) -> Sequence[Table]:
    rows: list[list[Cell]] = []
    for backend in _BACKENDS:
        least: float | None = None
        for keys in _KEYS[size]:
            command = [sys.executable, "-m", "benchmarks.growth", _ONLY, backend, str(keys), str(_ROWS[size])]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            costs: list[float] = json.loads(done.stdout)
            cost = median(costs)
            least = least or cost
            rows.append([backend, keys, cost, min(costs), max(costs), cost / least])
    title = f"cost of a row as state grows: {_ROWS[size]:,} rows an epoch, each of another key"
    columns = ["", "keys", "us per row", "least", "most", "x the smallest"]
    note = "Read, update, commit of the epoch; the median of three times five epochs."
    return [Table("growth", title, columns, rows, note)]


def costs(backend: str, keys: int, rows: int, directory: Path) -> list[float]:
    """Microseconds of a row, of each repeat."""
    bench = Bench(backend_of(backend), keys, directory)
    # The first touches of pages and caches.
    bench.accesses("distinct", 1, rows)
    return [1e6 / bench.accesses("distinct", _EPOCHS, rows) for _ in range(_REPEATS)]


def main() -> int:
    if sys.argv[1:2] != [_ONLY]:
        return suite.main(__doc__, measure)
    backend, keys, rows = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    with tempfile.TemporaryDirectory() as directory:
        print(json.dumps(costs(backend, keys, rows, Path(directory))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
