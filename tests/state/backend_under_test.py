"""A keyed state backend for tests, driven epoch by epoch in one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.state.keyed_backend import KeyedScope, KeyedStateBackend
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.keys import KeyCodec
from holdfast.state.store import LocalStore, Stamp
from holdfast.testing import ManualClock
from holdfast.types.resolve import resolve
from tests.state.stores import forget_process_caches, make_backend

MAX_PARALLELISM = 128


def scope_of(key_type: Any = "bigint", key_groups: KeyGroupRange | None = None) -> KeyedScope:
    codec = KeyCodec.for_type(None if key_type is None else resolve(key_type))
    return KeyedScope("counter", codec, key_groups or KeyGroupRange(0, MAX_PARALLELISM - 1), MAX_PARALLELISM)


class Subtask:
    """A store and the backend on top of it. ``at`` sets the current key; ``next_epoch`` commits and goes on.

    ``cached=False`` goes on as another process would: with a new backend and no caches. ``clock`` stands still until
    ``advance``.
    """

    def __init__(
        self,
        name: str,
        directory: Path,
        scope: KeyedScope | None = None,
        cache_limit: int | None = None,
        clock: ManualClock | None = None,
    ):
        self.name = name
        self.clock = clock or ManualClock(1_000_000)
        self.directory = directory
        self.scope = scope or scope_of()
        self.cache_limit = cache_limit
        self.store: LocalStore = make_backend(name).open(directory)
        self.stamp = Stamp(0, "start")
        if self.store.stamp() is None:
            self.store.load([], self.stamp)
        self.stamp = self.store.stamp()
        self.store.begin(self.stamp)
        self.backend = self._make()

    def _make(self) -> KeyedStateBackend:
        return KeyedStateBackend(self.store, self.scope, self.name, self.cache_limit, self.clock)

    def at(self, key: Any) -> None:
        self.backend.context.key = key
        self.backend.context.identity = self.scope.key_codec.identity(key)

    def advance(self, milliseconds: int) -> None:
        """Time goes on, and the next batch begins."""
        self.clock.advance(milliseconds)
        self.backend.begin_batch(1)

    def commit(self) -> Stamp:
        self.stamp = Stamp(self.stamp.epoch + 1, f"nonce-{self.stamp.epoch + 1}")
        self.backend.commit(self.stamp)
        return self.stamp

    def next_epoch(self, cached: bool = False) -> None:
        self.commit()
        if cached:
            assert self.backend.resume(self.stamp)
            return
        self.restart()

    def restart(self) -> None:
        """Go on from the last commit in what might be another process."""
        self.store.close()
        forget_process_caches()
        self.store = make_backend(self.name).open(self.directory)
        self.store.begin(self.stamp)
        self.backend = self._make()

    def close(self) -> None:
        self.store.close()
        forget_process_caches()
