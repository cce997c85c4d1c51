"""The state backends side by side, in one process each and without Spark: state of many keys, read and updated key by
key, uniformly and by Zipf's law; disk and memory that it takes; checkpoints and a restore. RocksDB gets a fifth of the
state as its budget of memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

PROJECT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PROJECT), str(PROJECT / "src")]

from benchmarks import suite  # noqa: E402 - behind the path that finds it
from benchmarks.catalogue import Size  # noqa: E402 - behind the path that finds it
from benchmarks.tables import Cell, Table  # noqa: E402 - behind the path that finds it
from holdfast.runtime.keyed import ROWS_AT_ONCE  # noqa: E402 - behind the path that finds it
from holdfast.state.backends import load_backend  # noqa: E402 - behind the path that finds it
from holdfast.state.descriptors import ValueStateDescriptor  # noqa: E402 - behind the path that finds it
from holdfast.state.handles import CheckpointRequest, KeyedSnapshot, SnapshotType  # noqa: E402 - behind the path that finds it
from holdfast.state.keyed_backend import KeyedScope, KeyedStateBackend  # noqa: E402 - behind the path that finds it
from holdfast.state.keyed_state import VOID  # noqa: E402 - behind the path that finds it
from holdfast.state.keygroups import KeyGroupRange  # noqa: E402 - behind the path that finds it
from holdfast.state.keys import KeyCodec  # noqa: E402 - behind the path that finds it
from holdfast.state.layout import group_bytes, id_bytes, sized  # noqa: E402 - behind the path that finds it
from holdfast.state.restore import KeyedShare, restore_into  # noqa: E402 - behind the path that finds it
from holdfast.state.rocksdb.backend import RocksDbBackend  # noqa: E402 - behind the path that finds it
from holdfast.state.rocksdb.memory import memory_of  # noqa: E402 - behind the path that finds it
from holdfast.state.snapshot_files import FileSnapshotReader, FileSnapshotWriter  # noqa: E402 - behind the path that finds it
from holdfast.state.snapshots import async_write, sync_prepare  # noqa: E402 - behind the path that finds it
from holdfast.state.store import Stamp, StateBackend  # noqa: E402 - behind the path that finds it
from holdfast.types.typeinfo import Types  # noqa: E402 - behind the path that finds it

_KEYS = {Size.FULL: 10_000_000, Size.QUICK: 1_000_000, Size.TINY: 2_000}
#: Of each distribution, and rows of each.
_EPOCHS = 10
_ROWS = {Size.FULL: 100_000, Size.QUICK: 100_000, Size.TINY: 500}
#: Before the name of the variant that a process of its own measures.
_ONLY = "--only"

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
        chosen = [self._choose(distribution, rows) for _ in range(epochs)]
        started = time.perf_counter()
        for keys in chosen:
            self._touch(keys)
            self._next_epoch()
        return epochs * rows / (time.perf_counter() - started)

    def checkpoint(
        self, number: int, base: int | None, changes: int, distribution: str = "uniform"
    ) -> tuple[KeyedSnapshot, dict[str, float]]:
        """A checkpoint after so many changes: milliseconds of its two parts, and bytes."""
        writer = FileSnapshotWriter(str(self.directory / "storage"), number, 1)
        self._touch(self._choose(distribution, changes))
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
        if distribution == "distinct":
            return self.random.choice(self.keys, rows, replace=False, shuffle=True).tolist()  # type: ignore[no-any-return]  # numpy
        if distribution == "uniform":
            return self.random.integers(0, self.keys, rows).tolist()  # type: ignore[no-any-return]  # numpy
        ranks = self.random.zipf(1.2, rows) % self.keys
        # So that frequent keys are not neighbours.
        return (ranks * 2654435761 % self.keys).tolist()  # type: ignore[no-any-return]  # numpy

    def _touch(self, keys: list[int]) -> None:
        """As operators do: the state is told of the keys of some rows before their turn comes."""
        state, context = self.keyed.state(VALUE), self.keyed.context
        for start in range(0, len(keys), ROWS_AT_ONCE):
            piece = keys[start : start + ROWS_AT_ONCE]
            self.keyed.expect(piece, piece)
            for key in piece:
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
    """The memory of this process, without what the page cache has for it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


def _free_memory() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))


def _engine_memory(backend: StateBackend) -> int:
    """What RocksDB itself says that it holds: its cache, with write buffers charged to it."""
    return int(memory_of(backend.settings).cache.get_usage()) if isinstance(backend, RocksDbBackend) else 0


def measure(size: Size) -> Sequence[Table]:
    rows: list[list[Cell]] = []
    for variant in VARIANTS:
        if variant == "heap" and _KEYS[size] * HEAP_BYTES > _free_memory():
            rows.append([variant, f"not run: it takes {_KEYS[size] * HEAP_BYTES / 1e9:.0f} GB", *[None] * 11])
            continue
        command = [sys.executable, "-m", "benchmarks.backends", _ONLY, variant, size]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        rows.append([variant, *json.loads(done.stdout)])
    columns = ["", "uniform rows/s", "Zipf rows/s", "disk MB", "worker MB", "engine MB", "budget MB"]
    columns += ["full: sync ms", "full: MB", "1 %: sync ms", "1 %: async ms", "1 %: MB", "restore s"]
    title = f"backends: {_KEYS[size]:,} keys of {VALUE_BYTES} bytes, {_EPOCHS} epochs of {_ROWS[size]:,} rows"
    return [Table("backends", title, columns, rows)]


def measure_one(variant: str, size: Size, directory: Path) -> list[Cell]:
    """One row of the table without its name."""
    name, options = VARIANTS[variant]
    keys, rows = _KEYS[size], _ROWS[size]
    budget = max(8 << 20, keys * VALUE_BYTES // 5) if name == "rocksdb" else None
    before = _anonymous_memory()
    bench = Bench(backend_of(name, options, budget), keys, directory)
    rates: list[Cell] = [bench.accesses(how, _EPOCHS, rows) for how in ("uniform", "zipf")]
    memory: list[Cell] = [bench.disk_bytes() / 1e6, (bench.memory - before) / 1e6, None, None]
    if budget is not None:
        memory[2:] = [bench.engine_memory / 1e6, budget / 1e6]
    first, full = bench.checkpoint(1, None, keys // 100)
    second, delta = bench.checkpoint(2, bench.stamp.epoch, keys // 100)
    checkpoints: list[Cell] = [full["sync ms"], full["MB"], delta["sync ms"], delta["async ms"], delta["MB"]]
    restored = bench.restore(second if second.stands_alone else joined(first, second))
    return [*rates, *memory, *checkpoints, restored]


def backend_of(name: str, options: dict[str, Any] | None = None, budget: int | None = None) -> StateBackend:
    settings = {f"state.backend.rocksdb.{key}": value for key, value in (options or {}).items()}
    if budget is not None:
        settings["state.backend.rocksdb.memory.fixed-per-slot"] = budget
    return load_backend(name, settings)


def joined(base: KeyedSnapshot, newer: KeyedSnapshot) -> KeyedSnapshot:
    return msgspec.structs.replace(newer, native=base.native, files=base.files + newer.files)


def main() -> int:
    if sys.argv[1:2] != [_ONLY]:
        return suite.main(__doc__, measure)
    with tempfile.TemporaryDirectory() as directory:
        print(json.dumps(measure_one(sys.argv[2], Size(sys.argv[3]), Path(directory))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
