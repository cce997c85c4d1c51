"""Latency at a fixed rate: a file appears ten times a second while a job runs, and is late by the time until the epoch
or micro-batch that read it is done. Counted over the second half of the time; jobs start and catch up in the first.
"""

from __future__ import annotations

import bisect
import os
import tempfile
import threading
import time
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks import measure as measuring
from benchmarks import suite
from benchmarks.catalogue import Entry, Size, select
from benchmarks.data import FILES_OF_EPOCH, Shape, generate
from benchmarks.environments import CACHE
from benchmarks.jobs.protocol import Epoch
from benchmarks.tables import Cell, Table

#: How often a file appears.
FILES_PER_SECOND = 10
_SECONDS = {Size.FULL: 60, Size.QUICK: 40, Size.TINY: 24}
_REPEATS = {Size.FULL: 3, Size.QUICK: 1, Size.TINY: 1}
#: Who takes part, by rows per second.
_RATES = {
    1_000: "floor,jvm-rocksdb,holdfast-lmdb,tws-row",
    20_000: "floor,jvm-rocksdb,holdfast-lmdb,holdfast-rocksdb",
}
_KEYS = 100_000


def measure(size: Size) -> Sequence[Table]:
    rows: list[list[Cell]] = []
    for rate, contestants in _RATES.items():
        if size is Size.TINY and rate != min(_RATES):
            continue
        shape = Shape(rate * _SECONDS[size], _KEYS, rate * FILES_OF_EPOCH // FILES_PER_SECOND)
        entries = select("average", contestants)
        taken: dict[str, list[tuple[float, float]]] = {entry.name: [] for entry in entries}
        errors: dict[str, str] = {}
        for _ in range(_REPEATS[size]):
            for entry in entries:
                try:
                    taken[entry.name].append(latencies(entry, shape))
                except measuring.BenchmarkFailed as failure:
                    errors[entry.name] = str(failure).splitlines()[0]
        rows += [_row(entry, rate, taken[entry.name], errors.get(entry.name)) for entry in entries]
    columns = ["", "rows/s", "p50 s", "p99 s", "p99 least", "p99 most"]
    note = "From the moment a file is there to the end of the epoch or micro-batch that read it."
    return [Table("latency", "latency at a fixed rate", columns, rows, note)]


def _row(entry: Entry, rate: int, taken: Sequence[tuple[float, float]], error: str | None) -> list[Cell]:
    if not taken:
        return [entry.contestant.title, rate, "failed", error, None, None]
    tails = [tail for _, tail in taken]
    return [entry.contestant.title, rate, median(p50 for p50, _ in taken), median(tails), min(tails), max(tails)]


def latencies(entry: Entry, shape: Shape) -> tuple[float, float]:
    """p50 and p99 in seconds."""
    files = sorted((generate(CACHE / "data", shape) / "events").iterdir())
    with tempfile.TemporaryDirectory(prefix="holdfast-benchmark-") as directory:
        live = Path(directory) / "events"
        live.mkdir()
        feeder = Feeder(files, live)
        try:
            outcome, _ = measuring.execute(entry, shape, live.parent, 10 * len(files), live=True)
        finally:
            feeder.stop()
    waits = lateness(outcome.epochs, feeder.appeared, shape.epoch_rows // FILES_OF_EPOCH)
    p50, p99 = np.percentile(waits[len(waits) // 2 :], [50, 99])
    return float(p50), float(p99)


def lateness(epochs: Sequence[Epoch], appeared: Sequence[float], file_rows: int) -> list[float]:
    """Seconds from the appearance of each file to the end of the epoch that read its last row."""
    ordered = sorted(epochs, key=lambda epoch: epoch.finished)
    read = list(accumulate(epoch.rows for epoch in ordered))
    ends = [bisect.bisect_left(read, (number + 1) * file_rows) for number in range(len(appeared))]
    return [ordered[end].finished - at for end, at in zip(ends, appeared, strict=True)]


class Feeder:
    """Puts files into a directory at a fixed rate, and keeps when each appeared."""

    def __init__(self, files: Sequence[Path], directory: Path) -> None:
        self.appeared: list[float] = []
        self._files = files
        self._directory = directory
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._feed, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _feed(self) -> None:
        started = time.time()
        for number, path in enumerate(self._files):
            if self._stopped.wait(max(0.0, started + number / FILES_PER_SECOND - time.time())):
                return
            # Complete when it appears. Copied under a hidden name where the directory is on another file system.
            hidden = self._directory / f".{path.name}"
            hidden.write_bytes(path.read_bytes())
            os.rename(hidden, self._directory / path.name)
            self.appeared.append(time.time())


if __name__ == "__main__":
    raise SystemExit(suite.main(__doc__, measure))
