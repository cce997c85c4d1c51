"""What the tests of stores and states share: the backends under test and a store driven epoch by epoch."""

from __future__ import annotations

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
from holdfast.testing.contracts import stores

BACKENDS = ("heap", "lmdb", "rocksdb")
#: Those whose snapshots are files of entries.
ENTRY_BACKENDS = ("heap", "lmdb", "rocksdb-keys")
#: Has images of its file however small it is.
LMDB_IMAGE = "lmdb-image"


def make_backend(name: str) -> StateBackend:
    if name == "rocksdb-keys":
        return RocksDbBackend(RocksDbOptions(snapshots="CHANGED_KEYS"))
    if name == LMDB_IMAGE:
        return lmdb_image({})
    return {"heap": HeapBackend, "lmdb": LmdbBackend, "rocksdb": RocksDbBackend}[name]()


def lmdb_image(options: Mapping[str, Any]) -> LmdbBackend:
    return LmdbBackend(LmdbOptions.from_mapping(options), images_from=0)


def entry_point_of_lmdb_image() -> EntryPoint:
    """The entry point by which jobs find it."""
    return EntryPoint(LMDB_IMAGE, "tests.state.stores:lmdb_image", GROUP)


def forget_process_caches() -> None:
    """What another process does not have."""
    heap_images._images.clear()


def fresh_store(name: str, directory: Path, entries: dict[bytes, bytes] | None = None) -> tuple[LocalStore, Stamp]:
    """A store loaded at epoch 0."""
    return stores.fresh_store(make_backend(name), directory, entries)
