"""Restoring a large state with the same and with another number of subtasks: time, and bytes read.

Run: python benchmarks/restore.py [--keys N] [--backend lmdb]. It fails when 2 -> 3 subtasks takes twice as long as
2 -> 2, or reads more than 1.1 times the state.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PROJECT), str(PROJECT / "src")]

from benchmarks.large_state import CODEC, state_bytes, write_state  # noqa: E402
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


def main() -> int:
    options = _options()
    backend = load_backend(options.backend, {})
    with tempfile.TemporaryDirectory() as directory:
        files = Path(directory)
        snapshots = write_state(options.keys, 2, MAX_PARALLELISM, FileSnapshotWriter(directory, 1, 1), options.deltas)
        size = state_bytes(snapshots)
        print(f"{options.keys:,} keys, {size:,} bytes in {sum(len(s.files) for s in snapshots)} files, {backend.name}")
        same = Restore(snapshots, files, backend).run(2)
        more = Restore(snapshots, files, backend).run(3)
        again = Restore(snapshots, files, backend).run(2)
        anew = Restore(snapshots, files, backend).run(3, OTHER_MAX_PARALLELISM)
    base = min(same.seconds, again.seconds)
    for name, restore in [("2 -> 2", same), ("2 -> 3", more), ("2 -> 2", again), ("2 -> 3, 128 -> 256 groups", anew)]:
        ratio = f"{restore.seconds / base:.2f} x time, {restore.bytes_read / size:.3f} x state"
        print(f"  {name:<26} {restore.seconds:7.2f} s {restore.bytes_read:>14,} bytes   {ratio}")
    return 0 if more.seconds < 2 * base and more.bytes_read < 1.1 * size else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--deltas", type=int, default=5, help="files behind the image, each a hundredth of it")
    parser.add_argument("--backend", default="lmdb")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
