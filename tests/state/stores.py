"""What the tests of stores and states share: the backends under test and a store driven epoch by epoch."""

from __future__ import annotations

from pathlib import Path

from holdfast.state.heap import image as heap_images
from holdfast.state.heap.backend import HeapBackend
from holdfast.state.lmdb.backend import LmdbBackend
from holdfast.state.store import LocalStore, Stamp, StateBackend

BACKENDS = ("heap", "lmdb")
LOWEST, HIGHEST = b"", b"\xff" * 600


def make_backend(name: str) -> StateBackend:
    return {"heap": HeapBackend, "lmdb": LmdbBackend}[name]()


def forget_process_caches() -> None:
    """What another process does not have."""
    heap_images._images.clear()


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
