"""Snapshots of a RocksDB store by its own files: all of them, or those that the base checkpoint does not hold.

The pinned view is a folder of hard links (see state/rocksdb/images.py). It is made in milliseconds, however large the
state is, and a restore of the same key groups costs little more than to copy the files.

Behind a compaction nearly all files may be new although little has changed. Then the changed keys are stored instead,
on top of the files that the base holds, until these deltas together come up to what the files would take. So what a
compaction costs is spread over the checkpoints behind it, and is never more than twice what it must be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from holdfast.state.entry_strategies import Changes, KeyDelta, PreparedEntries
from holdfast.state.handles import CheckpointRequest, KeyedSnapshot, NativeFile, NativeImage
from holdfast.state.keyed_backend import KeyedStateBackend
from holdfast.state.layout import group_bytes, groups_end
from holdfast.state.rocksdb.images import ENGINE, Deltas, LocalImage
from holdfast.state.snapshot_io import SnapshotWriter
from holdfast.state.strategies import PreparedSnapshot, SnapshotStrategy, empty_frame

if TYPE_CHECKING:
    from holdfast.state.rocksdb.store import RocksDbStore


#: New files that take no more than this, or than this share of all, are stored without a look at what has changed.
_FEW_BYTES, _SMALL_SHARE = 64 << 10, 0.03
#: Files of changed keys on top of each other. A chain that comes to its limit (checkpoint/rebase.py) is given up for an
#: image of all files, not only of the new ones.
_MOST_DELTAS = 56


@dataclass(frozen=True)
class NativeFull(SnapshotStrategy):
    """All files of the database. Not where expired entries are to be left out of full images: they are in the files."""

    store: RocksDbStore

    name = "native-full"

    def prepare(
        self, backend: KeyedStateBackend, request: CheckpointRequest, base_epoch: int | None
    ) -> PreparedSnapshot | None:
        if backend.ttl.filters_full_images:
            return None
        return _prepared(self.name, self.store, backend, request, None)


@dataclass(frozen=True)
class NativeIncremental(SnapshotStrategy):
    """The files of the database that the base does not hold, where this host has the image of the base."""

    store: RocksDbStore

    name = "native-incremental"

    def prepare(
        self, backend: KeyedStateBackend, request: CheckpointRequest, base_epoch: int | None
    ) -> PreparedSnapshot | None:
        base = None if base_epoch is None else self.store.images.stored_at(base_epoch)
        if base is None:
            return None
        prepared = _prepared(self.name, self.store, backend, request, base)
        assert base_epoch is not None
        return _smaller(prepared, base, backend, base_epoch) or prepared


def _prepared(
    strategy: str,
    store: RocksDbStore,
    backend: KeyedStateBackend,
    request: CheckpointRequest,
    base: LocalImage | None,
) -> PreparedImage:
    key_groups = backend.scope.key_groups
    first = next(store.scan(group_bytes(key_groups.start), groups_end(key_groups.end)), None)
    image = store.pin(request.checkpoint_type.is_savepoint)
    held = {} if base is None else image.held_of(base)
    known = {} if base is None else image.known_of(base)
    return PreparedImage(strategy, request, image, held, first is None, empty_frame(backend), known)


def _smaller(
    prepared: PreparedImage, base: LocalImage, backend: KeyedStateBackend, base_epoch: int
) -> PreparedChanges | None:
    """The changed keys, where they take less than the new files: now, and with those that were stored for these before.
    They are read only where the new files are many.
    """
    names = prepared.image.names()
    new = prepared.image.size_of(name for name in names if name not in prepared.held)
    before = base.deltas
    if new <= max(_FEW_BYTES, _SMALL_SHARE * prepared.image.size_of(names)) or before.files >= _MOST_DELTAS:
        return None
    marks = backend.store.changes_since(base_epoch)
    if marks is None or before.bytes + sum(map(len, marks.keys)) >= new:
        return None
    changes = Changes.read(backend, marks)
    if before.bytes + changes.size() >= new:
        return None
    entries = changes.prepared(KeyDelta.name, prepared.request.checkpoint_id, prepared.frame)
    held = tuple(prepared.held.values())
    return PreparedChanges(entries.strategy, entries, prepared.image, held, before, prepared.known)


@dataclass(frozen=True)
class PreparedChanges(PreparedSnapshot):
    """Changed keys in place of new files. The image is kept all the same: for a later attempt, and for the next
    checkpoint, with those of its files that are stored.
    """

    strategy: str
    entries: PreparedEntries
    image: LocalImage
    held: tuple[NativeFile, ...]
    #: Of the checkpoints before this one.
    before: Deltas
    #: Checksums of files that the base has, too.
    known: Mapping[str, str]

    def write(
        self, writer: SnapshotWriter, name: str, shared: bool, heartbeat: Callable[[], None] | None
    ) -> KeyedSnapshot:
        written = self.entries.write(writer, name, shared, heartbeat)
        size = sum(handle.size for handle in written.handles())
        self.image.set_stored(self.held, Deltas(self.before.bytes + size, self.before.files + len(written.files)))
        self.image.take_checksums(self.known)
        return written


@dataclass(frozen=True)
class PreparedImage(PreparedSnapshot):
    """An image on this host, and those of its files that are stored already."""

    strategy: str
    request: CheckpointRequest
    image: LocalImage
    held: Mapping[str, NativeFile]
    empty: bool
    frame: KeyedSnapshot
    #: Checksums of files that the base has, too.
    known: Mapping[str, str]

    def write(
        self, writer: SnapshotWriter, name: str, shared: bool, heartbeat: Callable[[], None] | None
    ) -> KeyedSnapshot:
        files: list[NativeFile] = []
        for own_name in self.image.names():
            file = self.held.get(own_name)
            if file is None:
                if heartbeat is not None:
                    heartbeat()
                data = (self.image.database / own_name).read_bytes()
                reusable = shared and own_name.endswith(".sst")
                handle = writer.write(f"{name}-{own_name}", data, reusable)
                file = NativeFile(own_name, handle, self.request.checkpoint_id)
            files.append(file)
        if shared and not self.request.checkpoint_type.is_savepoint:
            self.image.set_stored(files)
        if not self.request.checkpoint_type.is_savepoint:
            self.image.take_checksums(self.known)
        return msgspec.structs.replace(self.frame, native=NativeImage(ENGINE, tuple(files), self.empty))

    def release(self) -> None:
        """The image of a checkpoint has other uses."""
        if self.request.checkpoint_type.is_savepoint:
            self.image.drop()
