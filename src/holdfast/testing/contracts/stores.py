"""Local stores, driven epoch by epoch, in this process and in others."""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping
from pathlib import Path

from holdfast.state.store import LocalStore, Stamp, StateBackend

#: Below and above every key.
LOWEST, HIGHEST = b"", b"\xff" * 600

_SECONDS = 60


def content(store: LocalStore) -> dict[bytes, bytes]:
    """All entries, in a transaction."""
    return dict(store.scan(LOWEST, HIGHEST))


def run_epoch(store: LocalStore, base: Stamp, entries: Mapping[bytes, bytes | None], nonce: str = "n") -> Stamp:
    """One committed epoch."""
    store.begin(base)
    store.write(sorted(entries.items()))
    stamp = Stamp(base.epoch + 1, nonce)
    store.commit(stamp)
    return stamp


def fresh_store(
    backend: StateBackend, directory: Path, entries: Mapping[bytes, bytes] | None = None
) -> tuple[LocalStore, Stamp]:
    """A store loaded at epoch 0."""
    store = backend.open(directory)
    start = Stamp(0, "start")
    store.load([sorted((entries or {}).items())], start)
    return store, start


def commit_elsewhere(
    backend: StateBackend, directory: Path, base: Stamp, entries: Mapping[bytes, bytes | None], nonce: str, method: str
) -> Stamp:
    """One committed epoch in a process of its own, which is started by a method of ``multiprocessing``."""
    context = multiprocessing.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload([__name__])
    child = context.Process(target=_commit, args=(backend, directory, base, dict(entries), nonce))  # type: ignore[attr-defined]
    child.start()
    child.join(_SECONDS)
    assert child.exitcode == 0, f"the process that was to commit ended with {child.exitcode}"
    return Stamp(base.epoch + 1, nonce)


def _commit(
    backend: StateBackend, directory: Path, base: Stamp, entries: Mapping[bytes, bytes | None], nonce: str
) -> None:
    run_epoch(backend.open(directory), base, entries, nonce)
