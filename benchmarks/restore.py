"""Restoring a large state with the same and with another number of subtasks: time, beside that of copying the same
files, and bytes read. Subtasks restore one after the other. Without Spark.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

PROJECT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PROJECT), str(PROJECT / "src")]

from benchmarks import suite  # noqa: E402
from benchmarks.catalogue import Size  # noqa: E402
from benchmarks.large_state import CODEC, state_bytes, write_state  # noqa: E402
from benchmarks.tables import Cell, Table  # noqa: E402
from holdfast.state.backends import load_backend  # noqa: E402
from holdfast.state.handles import KeyedSnapshot  # noqa: E402
from holdfast.state.keygroups import KeyGroupRange  # noqa: E402
from holdfast.state.regrouping import Regrouping  # noqa: E402
from holdfast.state.restore import KeyedShare, restore_into  # noqa: E402
from holdfast.state.snapshot_files import FileSnapshotReader, FileSnapshotWriter  # noqa: E402
from holdfast.state.snapshot_io import CountingReader  # noqa: E402
from holdfast.state.store import Stamp, StateBackend  # noqa: E402

MAX_PARALLELISM = 128
#: Beside the ranges: what it costs to compute the key groups anew.
OTHER_MAX_PARALLELISM = 256
#: By name: subtasks after the restore, and the maximum parallelism where it changes.
RESTORES = {"2 -> 2": (2,), "2 -> 3": (3,), "2 -> 3, 128 -> 256 groups": (3, OTHER_MAX_PARALLELISM)}

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
    keys = _KEYS[size]
    with tempfile.TemporaryDirectory() as directory:
        files = Path(directory)
        snapshots = write_state(keys, 2, MAX_PARALLELISM, FileSnapshotWriter(directory, 1, 1), _DELTAS)
        state = state_bytes(snapshots)
        copied, synced = (median(copy(files, sync) for _ in range(_REPEATS)) for sync in (False, True))
        rows: list[list[Cell]] = [
            ["copy of the same files", copied, None, None, 1.0, None],
            ["the same, and fsync", synced, None, None, synced / copied, None],
        ]
        for backend in _BACKENDS:
            for name, arguments in RESTORES.items():
                taken = [Restore(snapshots, files, load_backend(backend, {})).run(*arguments) for _ in range(_REPEATS)]
                seconds = [one.seconds for one in taken]
                middle = median(seconds)
                read = taken[0].bytes_read / state
                rows.append([f"{backend}, {name}", middle, min(seconds), max(seconds), middle / copied, read])
    title = f"restore of {keys:,} keys, {state / 1e6:,.1f} MB of checkpoint, by number of subtasks"
    return [Table("restore", title, ["", "s", "least", "most", "x copy", "read, x state"], rows)]


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
