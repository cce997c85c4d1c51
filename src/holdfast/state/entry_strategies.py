"""Snapshots of any backend as files of entries: a full image, and a delta by changed keys.

A full image is encoded while it is read, in parts that go to a temporary file when they are large. A delta holds what
changed since an epoch: present values, tombstones, and range tombstones. Either may take several files: the first has
the kind, the others are DELTAs on top of it with other keys, so that applying files in order is all a restore does. A
full image has one file at least.
"""

from __future__ import annotations

import tempfile
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import IO

import msgspec

from holdfast.state.epoch_log import RangeSet
from holdfast.state.handles import CheckpointRequest, KeyedFile, KeyedSnapshot, SnapshotKind
from holdfast.state.keyed_backend import KeyedStateBackend
from holdfast.state.keyed_file import EncodedPart, Entry, KeyRange, encode_parts
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.layout import group_bytes, groups_end
from holdfast.state.snapshot_io import SnapshotWriter
from holdfast.state.store import ChangedKeys
from holdfast.state.strategies import PreparedSnapshot, SnapshotStrategy, empty_frame

#: Parts of a full image beyond this many bytes wait in a temporary file.
_SPOOL_MEMORY = 64 << 20


class FullImage(SnapshotStrategy):
    """Everything, but for expired entries that are to be left out."""

    name = "full"

    def prepare(
        self, backend: KeyedStateBackend, request: CheckpointRequest, base_epoch: int | None
    ) -> PreparedSnapshot:
        parts = _full_parts(backend)
        return PreparedEntries(self.name, request.checkpoint_id, SnapshotKind.FULL, parts, empty_frame(backend))


class KeyDelta(SnapshotStrategy):
    """What changed since the base, where the change marks of the store reach back to it."""

    name = "changed-keys"

    def prepare(
        self, backend: KeyedStateBackend, request: CheckpointRequest, base_epoch: int | None
    ) -> PreparedSnapshot | None:
        changes = None if base_epoch is None else backend.store.changes_since(base_epoch)
        if changes is None:
            return None
        return Changes.read(backend, changes).prepared(self.name, request.checkpoint_id, empty_frame(backend))


@dataclass(frozen=True)
class PreparedEntries(PreparedSnapshot):
    """Files of entries, encoded by now or while they are written."""

    strategy: str
    checkpoint_id: int
    kind: SnapshotKind
    parts: Iterable[EncodedPart]
    frame: KeyedSnapshot

    def write(
        self, writer: SnapshotWriter, name: str, shared: bool, heartbeat: Callable[[], None] | None
    ) -> KeyedSnapshot:
        files: list[KeyedFile] = []
        for number, part in enumerate(self.parts):
            if heartbeat is not None:
                heartbeat()
            kind = self.kind if number == 0 else SnapshotKind.DELTA
            handle = writer.write(f"{name}-{number}", part.data, shared)
            span = part.first_key_group, part.last_key_group
            files.append(KeyedFile(handle, kind, *span, part.entries, self.checkpoint_id, part.index_bytes))
        return msgspec.structs.replace(self.frame, files=tuple(files))


def _full_parts(backend: KeyedStateBackend) -> Iterable[EncodedPart]:
    """All entries of the key groups, but for expired ones that are to be left out, encoded now. The local area is above
    them all.
    """
    key_groups = backend.scope.key_groups
    entries = backend.ttl.unexpired(backend.store.scan(group_bytes(key_groups.start), groups_end(key_groups.end)))
    spool = _Spool()
    for part in encode_parts(entries, (), key_groups):
        spool.add(part)
    return spool


@dataclass(frozen=True)
class Changes:
    """What changed in the key groups of a subtask: entries, tombstones among them, and deleted ranges."""

    entries: list[Entry]
    ranges: list[KeyRange]
    key_groups: KeyGroupRange

    @classmethod
    def read(cls, backend: KeyedStateBackend, changes: ChangedKeys) -> Changes:
        key_groups = backend.scope.key_groups
        low, high = group_bytes(key_groups.start), groups_end(key_groups.end)
        ranges = [(max(start, low), min(end, high)) for start, end in changes.ranges if start < high and end > low]
        keys = changes.keys[bisect_left(changes.keys, low) : bisect_left(changes.keys, high)]
        entries = list(zip(keys, backend.store.get_many(keys), strict=True))
        if ranges:
            # A range tombstone says what single ones inside of it would say again.
            deleted = RangeSet(ranges)
            entries = [entry for entry in entries if entry[1] is not None or entry[0] not in deleted]
        return cls(entries, ranges, key_groups)

    def size(self) -> int:
        """The bytes of the entries. Stored, they take less."""
        return sum(len(key) + len(value or b"") for key, value in self.entries)

    def prepared(self, strategy: str, checkpoint_id: int, frame: KeyedSnapshot) -> PreparedEntries:
        """Encoded while they are written; no file when nothing changed."""
        changed = self.entries or self.ranges
        parts = encode_parts(self.entries, self.ranges, self.key_groups) if changed else ()
        return PreparedEntries(strategy, checkpoint_id, SnapshotKind.DELTA, parts, frame)


class _Spool:
    """Parts in order: the first ones in memory, the others in a temporary file."""

    def __init__(self) -> None:
        self._memory: list[EncodedPart] = []
        self._in_memory = 0
        self._file: IO[bytes] | None = None
        self._on_disk: list[tuple[EncodedPart, int]] = []

    def add(self, part: EncodedPart) -> None:
        if self._in_memory + len(part.data) <= _SPOOL_MEMORY or not self._memory:
            self._memory.append(part)
            self._in_memory += len(part.data)
            return
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as this object
        self._file.write(part.data)
        self._on_disk.append((msgspec.structs.replace(part, data=b""), len(part.data)))

    def __iter__(self) -> Iterator[EncodedPart]:
        yield from self._memory
        if self._file is not None:
            self._file.seek(0)
            for part, size in self._on_disk:
                yield msgspec.structs.replace(part, data=self._file.read(size))
