"""Restoring a large state: beside a copy of the same files, and with the same and with another number of subtasks.
Without Spark.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import median

PROJECT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PROJECT), str(PROJECT / "src")]

from benchmarks import suite  # noqa: E402 - behind the path that finds it
from benchmarks.backends import VALUE_BYTES, Bench, backend_of  # noqa: E402 - behind the path that finds it
from benchmarks.catalogue import Size  # noqa: E402 - behind the path that finds it
from benchmarks.large_state import CODEC, state_bytes, write_state  # noqa: E402 - behind the path that finds it
from benchmarks.tables import Cell, Table  # noqa: E402 - behind the path that finds it
from holdfast.state.handles import KeyedSnapshot  # noqa: E402 - behind the path that finds it
from holdfast.state.keygroups import KeyGroupRange  # noqa: E402 - behind the path that finds it
from holdfast.state.regrouping import Regrouping  # noqa: E402 - behind the path that finds it
from holdfast.state.restore import KeyedShare, restore_into  # noqa: E402 - behind the path that finds it
from holdfast.state.snapshot_files import FileSnapshotReader, FileSnapshotWriter  # noqa: E402 - behind the path that finds it
from holdfast.state.snapshot_io import CountingReader  # noqa: E402 - behind the path that finds it
from holdfast.state.store import Stamp, StateBackend  # noqa: E402 - behind the path that finds it

MAX_PARALLELISM = 128
#: Beside the ranges: what it costs to compute the key groups anew.
OTHER_MAX_PARALLELISM = 256
#: By name: subtasks after the restore, and the maximum parallelism where it changes; and how often it is measured.
RESTORES: dict[str, tuple[tuple[int, ...], int]] = {
    "2 -> 2": ((2,), 3),
    "2 -> 3": ((3,), 3),
    "2 -> 3, 128 -> 256 groups": ((3, OTHER_MAX_PARALLELISM), 1),
}

_KEYS = {Size.FULL: 10_000_000, Size.QUICK: 1_000_000, Size.TINY: 3_000}
#: Files behind the image, each a hundredth of it.
_DELTAS = 5
_BACKENDS = ("lmdb", "rocksdb")
_REPEATS = 3


class Restore:
    """One restore of all subtasks, one after the other; ``seconds`` and ``bytes_read`` are those of all."""

    def __init__(self, snapshots: Sequence[KeyedSnapshot], files: Path, backend: StateBackend) -> None:
        self._snapshots = snapshots
        self._files = files
        self._backend = backend
        self.seconds = 0.0
        self.bytes_read = 0

    def run(self, parallelism: int, max_parallelism: int = MAX_PARALLELISM) -> Restore:
        self.seconds = 0.0
        regrouping = Regrouping(CODEC, max_parallelism) if max_parallelism != MAX_PARALLELISM else None
        reader = CountingReader(FileSnapshotReader(str(self._files)))
        for subtask in range(parallelism):
            key_groups = KeyGroupRange.of(subtask, max_parallelism, parallelism)
            share = KeyedShare.of(self._snapshots, key_groups, regrouping)
            with tempfile.TemporaryDirectory(dir=self._files) as directory:
                started = time.perf_counter()
                store = self._backend.open(Path(directory))
                restore_into(store, share, reader, Stamp(1, "restored"))
                store.close()
                self.seconds += time.perf_counter() - started
        self.bytes_read = reader.bytes_read
        return self


def measure(size: Size) -> Sequence[Table]:
    return [own_checkpoints(_KEYS[size]), subtasks(_KEYS[size])]


def own_checkpoints(keys: int) -> Table:
    """A full checkpoint of each backend, in its own form, of values that cannot be compressed."""
    rows: list[list[Cell]] = []
    for name in _BACKENDS:
        with tempfile.TemporaryDirectory() as directory:
            bench = Bench(backend_of(name), keys, Path(directory))
            snapshot, _ = bench.checkpoint(1, None, 1)
            bench.store.close()
            files = Path(directory) / "storage"
            copied, synced = copies(files)
            restore = Restore([snapshot], files, backend_of(name))
            seconds = [restore.run(1).seconds for _ in range(_REPEATS)]
            size = sum(path.stat().st_size for path in files.rglob("*") if path.is_file()) / 1e6
            times = [median(seconds), min(seconds), max(seconds)]
            rows.append([name, size, copied, synced, *times, median(seconds) / copied, median(seconds) / synced])
    columns = ["", "MB", "copy s", "copy and fsync s", "restore s", "least", "most", "x copy", "x copy and fsync"]
    title = f"restore of {keys:,} keys of {VALUE_BYTES} bytes beside a copy of the same files"
    return Table("restore", title, columns, rows, "One subtask; files are in the page cache for both.")


def subtasks(keys: int) -> Table:
    """Restores by the number of subtasks before and after, from the files that all backends can read."""
    rows: list[list[Cell]] = []
    with tempfile.TemporaryDirectory() as directory:
        files = Path(directory)
        snapshots = write_state(keys, 2, MAX_PARALLELISM, FileSnapshotWriter(directory, 1, 1), _DELTAS)
        state = state_bytes(snapshots)
        for backend, (name, (arguments, repeats)) in product(_BACKENDS, RESTORES.items()):
            restore = Restore(snapshots, files, backend_of(backend))
            taken = [restore.run(*arguments).seconds for _ in range(repeats)]
            read = restore.bytes_read / state
            rows.append([f"{backend}, {name}", median(taken), min(taken), max(taken), read])
    title = f"restore of {keys:,} small keys, {state / 1e6:,.1f} MB compressed, by number of subtasks"
    columns = ["", "s of all subtasks", "least", "most", "read, x state"]
    return Table("restore", title, columns, rows, "Subtasks restore one after the other here.")


def copies(files: Path) -> tuple[float, float]:
    """Seconds to copy files, without and with fsync."""
    copied, synced = (median(copy(files, sync) for _ in range(_REPEATS)) for sync in (False, True))
    return copied, synced


def copy(files: Path, sync: bool) -> float:
    """Seconds to copy all files of a checkpoint to the same disk."""
    with tempfile.TemporaryDirectory(dir=files.parent) as directory:
        started = time.perf_counter()
        for number, path in enumerate(path for path in files.rglob("*") if path.is_file()):
            target = Path(directory) / str(number)
            shutil.copyfile(path, target)
            if sync:
                with target.open("rb+") as copied:
                    os.fsync(copied.fileno())
        return time.perf_counter() - started


if __name__ == "__main__":
    raise SystemExit(suite.main(__doc__, measure))
