"""The state backends side by side, in one process each and without Spark: state of many keys, read and updated key by
key, uniformly and by Zipf's law; disk and memory that it takes; checkpoints and a restore.

Run: python benchmarks/backends.py [--keys N] [--quick] [--backends rocksdb ...]. RocksDB gets a fifth of the state as
its budget of memory. It fails when RocksDB holds more than that.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

PROJECT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PROJECT), str(PROJECT / "src")]

from holdfast.state.backends import load_backend  # noqa: E402
from holdfast.state.descriptors import ValueStateDescriptor  # noqa: E402
from holdfast.state.handles import CheckpointRequest, KeyedSnapshot, SnapshotType  # noqa: E402
from holdfast.state.keyed_backend import KeyedScope, KeyedStateBackend  # noqa: E402
from holdfast.state.keyed_state import VOID  # noqa: E402
from holdfast.state.keygroups import KeyGroupRange  # noqa: E402
from holdfast.state.keys import KeyCodec  # noqa: E402
from holdfast.state.layout import group_bytes, id_bytes, sized  # noqa: E402
from holdfast.state.restore import KeyedShare, restore_into  # noqa: E402
from holdfast.state.rocksdb.backend import RocksDbBackend  # noqa: E402
from holdfast.state.rocksdb.memory import memory_of  # noqa: E402
from holdfast.state.snapshot_files import FileSnapshotReader, FileSnapshotWriter  # noqa: E402
from holdfast.state.snapshots import async_write, sync_prepare  # noqa: E402
from holdfast.state.store import Stamp, StateBackend  # noqa: E402
from holdfast.types.typeinfo import Types  # noqa: E402

CODEC = KeyCodec.for_type(Types.LONG())
GROUPS = KeyGroupRange(0, 127)
SCOPE = KeyedScope("bench", CODEC, GROUPS, 128)
VALUE = ValueStateDescriptor("value", "binary")
VALUE_BYTES = 100
#: Memory that a key takes on the heap.
HEAP_BYTES = 800
#: Of random bytes that values are cut from.
NOISE = os.urandom(1 << 20)
#: Name of a row, its backend and what is set beside the defaults.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "heap": ("heap", {}),
    "lmdb": ("lmdb", {}),
    "rocksdb": ("rocksdb", {}),
    "rocksdb, UNIVERSAL": ("rocksdb", {"compaction.style": "UNIVERSAL"}),
    "rocksdb, CHANGED_KEYS": ("rocksdb", {"snapshot-strategy": "CHANGED_KEYS"}),
}


class Bench:
    """One backend, from the load to the restore."""

    def __init__(self, backend: StateBackend, keys: int, directory: Path) -> None:
        self.backend = backend
        self.keys = keys
        self.directory = directory
        self.stamp = Stamp(0, "start")
        self.memory = self.engine_memory = 0
        self.random = np.random.default_rng(1)
        self.store = backend.open(directory / "store")
        self.store.load(_entries(keys), self.stamp)
        self.store.begin(self.stamp)
        self.keyed = KeyedStateBackend(self.store, SCOPE, backend.name, backend.cache_limit)

    def accesses(self, distribution: str, epochs: int, rows: int) -> float:
        """Rows per second; each reads and updates the state of its key."""
        started = time.perf_counter()
        for _ in range(epochs):
            self._touch(self._choose(distribution, rows))
            self._next_epoch()
        return epochs * rows / (time.perf_counter() - started)

    def checkpoint(self, number: int, base: int | None, changes: int) -> tuple[KeyedSnapshot, dict[str, float]]:
        """A checkpoint after so many changes: milliseconds of its two parts, and bytes."""
        writer = FileSnapshotWriter(str(self.directory / "storage"), number, 1)
        self._touch(self._choose("uniform", changes))
        request = CheckpointRequest(number, SnapshotType.CHECKPOINT, 0, 1, self.stamp.epoch + 1, base)
        self.keyed.flush()
        began = time.perf_counter()
        prepared = sync_prepare(self.keyed, request, "bench", 0)
        pinned = time.perf_counter()
        self._next_epoch()
        wrote = time.perf_counter()
        snapshot = async_write(prepared, writer, "keyed")
        done = time.perf_counter()
        size = sum(handle.size for handle in snapshot.written_by(number))
        return snapshot, {"sync ms": (pinned - began) * 1e3, "async ms": (done - wrote) * 1e3, "MB": size / 1e6}

    def restore(self, snapshot: KeyedSnapshot) -> float:
        """Seconds."""
        self.store.close()
        started = time.perf_counter()
        store = self.backend.open(self.directory / "restored")
        reader = FileSnapshotReader(str(self.directory / "storage"))
        restore_into(store, KeyedShare.of([snapshot], GROUPS), reader, Stamp(1, "restored"))
        store.begin(Stamp(1, "restored"))
        store.close()
        return time.perf_counter() - started

    def disk_bytes(self) -> int:
        files = {path.stat() for path in (self.directory / "store").rglob("*") if path.is_file()}
        return sum({(one.st_dev, one.st_ino): one.st_blocks * 512 for one in files}.values())

    def _next_epoch(self) -> None:
        self.stamp = Stamp(self.stamp.epoch + 1, "n")
        self.keyed.commit(self.stamp)
        self.memory = max(self.memory, _anonymous_memory())
        self.engine_memory = max(self.engine_memory, _engine_memory(self.backend))
        self.keyed.resume(self.stamp)
        self.store.forget_changes(self.stamp.epoch - 1)

    def _choose(self, distribution: str, rows: int) -> list[int]:
        if distribution == "uniform":
            return self.random.integers(0, self.keys, rows).tolist()  # type: ignore[no-any-return]
        ranks = self.random.zipf(1.2, rows) % self.keys
        # So that frequent keys are not neighbours.
        return (ranks * 2654435761 % self.keys).tolist()  # type: ignore[no-any-return]

    def _touch(self, keys: list[int]) -> None:
        state, context = self.keyed.state(VALUE), self.keyed.context
        for key in keys:
            context.key = context.identity = key
            state.value()
            state.update(_value(key + self.stamp.epoch))


def _value(number: int) -> bytes:
    at = number * 40_503 % (len(NOISE) - VALUE_BYTES)
    return NOISE[at : at + VALUE_BYTES]


def _entries(keys: int) -> Iterator[list[tuple[bytes, bytes | None]]]:
    """What the state holds before the first epoch, as stored, in batches."""
    encode, head = VALUE.serializers()["value"].encode, id_bytes(0)
    numbers = np.arange(keys)
    groups = np.concatenate(
        [CODEC.hash_many(numbers[at : at + 100_000].tolist()) % 128 for at in range(0, keys, 100_000)]
    )
    for group in range(128):
        own = numbers[groups == group].tolist()
        front = group_bytes(group) + head
        yield [(front + sized(CODEC.encode(key)) + VOID, encode(_value(key))) for key in own]


def _anonymous_memory() -> int:
    """Of this process, without what the page cache has for it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


def _free_memory() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))


def _engine_memory(backend: StateBackend) -> int:
    """What RocksDB itself says that it holds: its cache, with write buffers charged to it."""
    return int(memory_of(backend.settings).cache.get_usage()) if isinstance(backend, RocksDbBackend) else 0


def measure(variant: str, keys: int, epochs: int, rows: int, directory: Path) -> dict[str, Any]:
    """One row of the table, in a process of its own."""
    name, options = VARIANTS[variant]
    settings = {f"state.backend.rocksdb.{key}": value for key, value in options.items()}
    budget = max(8 << 20, keys * VALUE_BYTES // 5)
    if name == "rocksdb":
        settings["state.backend.rocksdb.memory.fixed-per-slot"] = budget
    before = _anonymous_memory()
    bench = Bench(load_backend(name, settings), keys, directory)
    row: dict[str, Any] = {"name": variant, "budget MB": budget / 1e6 if name == "rocksdb" else None}
    row["uniform rows/s"] = bench.accesses("uniform", epochs, rows)
    row["zipf rows/s"] = bench.accesses("zipf", epochs, rows)
    row["disk MB"] = bench.disk_bytes() / 1e6
    row["worker MB"] = (bench.memory - before) / 1e6
    row["engine MB"] = bench.engine_memory / 1e6 if name == "rocksdb" else None
    first, row["full"] = bench.checkpoint(1, None, keys // 100)
    second, row["1 %"] = bench.checkpoint(2, bench.stamp.epoch, keys // 100)
    complete = second if second.stands_alone else _joined(first, second)
    row["restore s"] = bench.restore(complete)
    return row


def _joined(base: KeyedSnapshot, newer: KeyedSnapshot) -> KeyedSnapshot:
    return msgspec.structs.replace(newer, native=base.native, files=base.files + newer.files)


def main() -> int:
    options = _options()
    if options.only is not None:
        with tempfile.TemporaryDirectory(dir=options.directory) as directory:
            print(json.dumps(measure(options.only, options.keys, options.epochs, options.rows, Path(directory))))
        return 0
    print(
        f"{options.keys:,} keys of {VALUE_BYTES} bytes; {options.epochs} epochs of {options.rows:,} reads and updates"
    )
    print(
        f"{'':<22} {'uniform/s':>10} {'zipf/s':>10} {'disk MB':>8} {'worker MB':>9} {'engine MB':>9} {'budget':>7}"
        f" {'full: sync ms':>13} {'MB':>7} {'1 %: sync ms':>12} {'async ms':>8} {'MB':>7} {'restore s':>9}"
    )
    too_large = False
    for variant in options.backends or VARIANTS:
        if variant == "heap" and options.keys * HEAP_BYTES > _free_memory():
            print(f"{variant:<22} not run: it takes about {options.keys * HEAP_BYTES / 1e9:.0f} GB of memory")
            continue
        row = _run(variant, options)
        print(_line(row), flush=True)
        engine, budget = row["engine MB"], row["budget MB"]
        too_large = too_large or (budget is not None and engine > budget)
    return 1 if too_large else 0


def _run(variant: str, options: argparse.Namespace) -> dict[str, Any]:
    command = [sys.executable, __file__, "--only", variant, "--keys", str(options.keys), "--rows", str(options.rows)]
    command += ["--epochs", str(options.epochs), "--directory", options.directory or tempfile.gettempdir()]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    row: dict[str, Any] = json.loads(done.stdout)
    return row


def _line(row: dict[str, Any]) -> str:
    def number(value: float | None, width: int, digits: int = 0) -> str:
        return f"{'-' if value is None else format(value, f',.{digits}f'):>{width}}"

    full, delta = row["full"], row["1 %"]
    return (
        f"{row['name']:<22} {number(row['uniform rows/s'], 10)} {number(row['zipf rows/s'], 10)}"
        f" {number(row['disk MB'], 8)} {number(row['worker MB'], 9)} {number(row['engine MB'], 9, 1)}"
        f" {number(row['budget MB'], 7)} {number(full['sync ms'], 13)} {number(full['MB'], 7, 1)}"
        f" {number(delta['sync ms'], 12)} {number(delta['async ms'], 8)} {number(delta['MB'], 7, 1)}"
        f" {number(row['restore s'], 9, 2)}"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=None)
    parser.add_argument("--rows", type=int, default=100_000, help="of one epoch")
    parser.add_argument("--epochs", type=int, default=10, help="for each distribution")
    parser.add_argument("--quick", action="store_true", help="a million keys instead of ten")
    parser.add_argument("--backends", nargs="*", choices=list(VARIANTS))
    parser.add_argument("--directory", help="where the stores are; by default temporary files")
    parser.add_argument("--only", choices=list(VARIANTS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.keys = options.keys or (1_000_000 if options.quick else 10_000_000)
    return options


if __name__ == "__main__":
    raise SystemExit(main())
