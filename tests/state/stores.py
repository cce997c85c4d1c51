"""What the tests of stores and states share: the backends under test and a store driven epoch by epoch."""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from holdfast.state.backends import GROUP
from holdfast.state.heap import image as heap_images
from holdfast.state.heap.backend import HeapBackend
from holdfast.state.lmdb.backend import LmdbBackend
from holdfast.state.lmdb.options import LmdbOptions
from holdfast.state.rocksdb.backend import RocksDbBackend
from holdfast.state.rocksdb.options import RocksDbOptions
from holdfast.state.store import LocalStore, Stamp, StateBackend

BACKENDS = ("heap", "lmdb", "rocksdb")
#: Those whose snapshots are files of entries.
ENTRY_BACKENDS = ("heap", "lmdb", "rocksdb-keys")
#: Has images of its file however small it is.
LMDB_IMAGE = "lmdb-image"
LOWEST, HIGHEST = b"", b"\xff" * 600


def make_backend(name: str) -> StateBackend:
    if name == "rocksdb-keys":
        return RocksDbBackend(RocksDbOptions(snapshots="CHANGED_KEYS"))
    if name == LMDB_IMAGE:
        return lmdb_image({})
    return {"heap": HeapBackend, "lmdb": LmdbBackend, "rocksdb": RocksDbBackend}[name]()


def lmdb_image(options: Mapping[str, Any]) -> LmdbBackend:
    return LmdbBackend(LmdbOptions.from_mapping(options), images_from=0)


def entry_point_of_lmdb_image() -> EntryPoint:
    """By which jobs find it."""
    return EntryPoint(LMDB_IMAGE, "tests.state.stores:lmdb_image", GROUP)


def forget_process_caches() -> None:
    """What another process does not have."""
    heap_images._images.clear()


def commit_elsewhere(
    name: str, directory: Path, base: Stamp, entries: dict[bytes, bytes | None], stamp: Stamp, method: str | None = None
) -> int | None:
    """One committed epoch in a process of its own; the exit code. RocksDB does not survive a fork."""
    context = multiprocessing.get_context(method or ("forkserver" if name == "rocksdb" else "fork"))
    if method is None and name == "rocksdb":
        context.set_forkserver_preload(["tests.state.stores"])
    child = context.Process(target=_commit, args=(name, directory, base, entries, stamp))
    child.start()
    child.join(60)
    return child.exitcode


def _commit(name: str, directory: Path, base: Stamp, entries: dict[bytes, bytes | None], stamp: Stamp) -> None:
    store = make_backend(name).open(directory)
    run_epoch(store, base, entries, stamp.nonce)


def content(store: LocalStore) -> dict[bytes, bytes]:
    return dict(store.scan(LOWEST, HIGHEST))


def run_epoch(store: LocalStore, base: Stamp, entries: dict[bytes, bytes | None], nonce: str = "n") -> Stamp:
    """One committed epoch."""
    store.begin(base)
    store.write(sorted(entries.items()))
    stamp = Stamp(base.epoch + 1, nonce)
    store.commit(stamp)
    return stamp


def fresh_store(name: str, directory: Path, entries: dict[bytes, bytes] | None = None) -> tuple[LocalStore, Stamp]:
    """A store loaded at epoch 0."""
    store = make_backend(name).open(directory)
    start = Stamp(0, "start")
    store.load([sorted((entries or {}).items())], start)
    return store, start
