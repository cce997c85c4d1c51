"""Keyed state of one subtask on a local store, driven epoch by epoch in one process, with snapshots and restores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from holdfast.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from holdfast.state.handles import CheckpointRequest, KeyedSnapshot, SnapshotType
from holdfast.state.keyed_backend import KeyedScope, KeyedStateBackend
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.keys import KeyCodec
from holdfast.state.restore import KeyedShare, restore_into
from holdfast.state.snapshot_files import FileSnapshotReader, FileSnapshotWriter
from holdfast.state.snapshots import async_write, sync_prepare
from holdfast.state.store import LocalStore, Stamp, StateBackend
from holdfast.state.strategies import PreparedSnapshot
from holdfast.state.timers import TimeDomain
from holdfast.testing.clock import ManualClock
from holdfast.types.resolve import resolve
from holdfast.types.typeinfo import Types

MAX_PARALLELISM = 128
ALL = KeyGroupRange(0, MAX_PARALLELISM - 1)

_VALUE = ValueStateDescriptor("value", Types.TUPLE([Types.LONG(), Types.LONG()]))
_ENTRIES = MapStateDescriptor("map", Types.LONG(), Types.STRING())
_ELEMENTS = ListStateDescriptor("list", Types.STRING())
#: Later than every timer of ``fill``.
_LATE = 10**9


def scope_of(key_type: Any = "bigint", key_groups: KeyGroupRange = ALL) -> KeyedScope:
    """The scope of a subtask of an operator ``counter``."""
    codec = KeyCodec.for_type(None if key_type is None else resolve(key_type))
    return KeyedScope("counter", codec, key_groups, MAX_PARALLELISM)


class KeyedSubtask:
    """A store and the keyed state on top of it. ``at`` sets the current key; ``next_epoch`` commits and goes on.

    ``next_epoch`` goes on as another process would, with another object and no caches, unless it is told that this is
    the same one. ``clock`` stands still until ``advance``. ``forget`` drops what the store keeps in the process.
    """

    def __init__(
        self,
        kind: StateBackend,
        directory: Path,
        scope: KeyedScope | None = None,
        cache_limit: int | None = None,
        clock: ManualClock | None = None,
        forget: Callable[[], None] = lambda: None,
    ) -> None:
        self.kind = kind
        self.clock = clock or ManualClock(1_000_000)
        self.directory = directory
        self.scope = scope or scope_of()
        self.cache_limit = cache_limit
        self._forget = forget
        self.store: LocalStore = kind.open(directory)
        found = self.store.stamp()
        if found is None:
            found = Stamp(0, "start")
            self.store.load([], found)
        self.stamp = found
        self.store.begin(found)
        self.backend = self._make()

    def _make(self) -> KeyedStateBackend:
        return KeyedStateBackend(self.store, self.scope, self.kind.name, self.cache_limit, self.clock)

    def at(self, key: Any) -> None:
        """Work on the state of this key from now on."""
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
        """Commit and begin again; ``cached``: in the same process, with its caches."""
        self.commit()
        if cached:
            assert self.backend.resume(self.stamp)
            return
        self.restart()

    def restart(self) -> None:
        """Go on from the last commit in what might be another process."""
        self.store.close()
        self._forget()
        self.store = self.kind.open(self.directory)
        self.store.begin(self.stamp)
        self.backend = self._make()

    def close(self) -> None:
        self.store.close()
        self._forget()


def fill(task: KeyedSubtask, keys: Iterable[int]) -> None:
    """State of all shapes, and a timer, for each of these keys."""
    value, entries = task.backend.state(_VALUE), task.backend.state(_ENTRIES)
    elements, timers = task.backend.state(_ELEMENTS), task.backend.timers("t", TimeDomain.EVENT_TIME)
    for key in keys:
        task.at(key)
        value.update((key, -key))
        entries.put_all({1: "one", 2: str(key)})
        elements.add_all([str(key), "x"])
        timers.register(key, key)


def clear(task: KeyedSubtask, keys: Iterable[int]) -> None:
    """No state for these keys; timers stay."""
    for descriptor in (_VALUE, _ENTRIES, _ELEMENTS):
        state = task.backend.state(descriptor)
        for key in keys:
            task.at(key)
            state.clear()


def content_of(task: KeyedSubtask, keys: Iterable[int]) -> dict[int, Any]:
    """What these keys have."""
    value, entries, elements = (task.backend.state(each) for each in (_VALUE, _ENTRIES, _ELEMENTS))
    found = {}
    for key in keys:
        task.at(key)
        found[key] = (value.value(), dict(entries.items()), list(elements.get()))
    return found


def owned(task: KeyedSubtask, keys: Iterable[int]) -> list[int]:
    """The keys that are this subtask's."""
    scope = task.scope
    return [key for key in keys if scope.key_codec.hash(key) % scope.max_parallelism in scope.key_groups]


def fired(task: KeyedSubtask) -> list[tuple[int, int]]:
    """All timers, time and key, which are gone then."""
    return [timer[:2] for timer in task.backend.timers("t", TimeDomain.EVENT_TIME).advance(_LATE)]


def prepare(task: KeyedSubtask, number: int, base: int | None = None) -> PreparedSnapshot:
    """The first step of a checkpoint, in the running epoch; ``base`` is the epoch of the one that it builds on."""
    request = CheckpointRequest(number, SnapshotType.CHECKPOINT, 0, 1, task.stamp.epoch + 1, base)
    return sync_prepare(task.backend, request, "counter", 0)


def write(prepared: PreparedSnapshot, storage: Path, number: int) -> KeyedSnapshot:
    """The second step of a checkpoint."""
    return async_write(prepared, FileSnapshotWriter(str(storage), number, 1, 0), f"keyed-{number}")


def checkpoint(task: KeyedSubtask, storage: Path, number: int, base: int | None = None) -> KeyedSnapshot:
    """A checkpoint at the end of the running epoch, the next one begun."""
    prepared = prepare(task, number, base)
    task.next_epoch()
    return write(prepared, storage, number)


def chain(base: KeyedSnapshot, newer: KeyedSnapshot) -> KeyedSnapshot:
    """``newer`` with the files that it is based on before its own, as the coordinator joins them."""
    if newer.stands_alone:
        return newer
    return msgspec.structs.replace(newer, native=base.native, files=base.files + newer.files)


def restored(
    kind: StateBackend,
    directory: Path,
    snapshots: Sequence[KeyedSnapshot],
    storage: Path,
    key_groups: KeyGroupRange = ALL,
) -> KeyedSubtask:
    """A subtask that begins with its share of snapshots."""
    store = kind.open(directory)
    share = KeyedShare.of(list(snapshots), key_groups)
    restore_into(store, share, FileSnapshotReader(str(storage)), Stamp(7, "restored"), scratch=directory)
    store.close()
    return KeyedSubtask(kind, directory, scope_of(key_groups=key_groups))
