"""Snapshots of keyed state: full images and deltas, taken in two steps.

``sync_prepare`` runs inside the task, before its commit, and pins what is to be stored; ``async_write`` stores it,
later and perhaps in another thread. A full image is encoded while it is read, in parts that go to a temporary file
when they are large. A delta holds what changed since an epoch: present values, tombstones, and range tombstones.

What a task gives is its own files only. A snapshot that begins with a DELTA, or has no files because nothing changed,
continues the files of the checkpoint it is based on; the coordinator, which knows that checkpoint, joins them. An image
or a delta may take several files: the first has the kind, the others are DELTAs on top of it with other keys, so that
applying files in order is all a restore does. A full image has one file at least.
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
from holdfast.state.keyed_file import EncodedPart, encode_parts
from holdfast.state.layout import STATES_END, group_bytes
from holdfast.state.snapshot_io import SnapshotWriter
from holdfast.state.store import ChangedKeys

#: Parts of a full image beyond this many bytes wait in a temporary file.
_SPOOL_MEMORY = 64 << 20


@dataclass(frozen=True)
class PreparedSnapshot:
    """A pinned view of a subtask's keyed state, to be written once."""

    checkpoint_id: int
    kind: SnapshotKind
    parts: Iterable[EncodedPart]
    #: What the written files are put into.
    frame: KeyedSnapshot


def sync_prepare(
    backend: KeyedStateBackend, request: CheckpointRequest, operator_id: str, subtask: int
) -> PreparedSnapshot:
    """Pin the backend's content as it is now, changes of the running epoch included.

    A delta where the request has a base for this subtask and the change marks of the store reach back to it;
    otherwise, and for every savepoint, a full image.
    """
    backend.end_epoch()
    savepoint = request.checkpoint_type.is_savepoint
    base_epoch = None if savepoint else request.base_epoch_for(operator_id, subtask)
    changes = None if base_epoch is None else backend.store.changes_since(base_epoch)
    scope = backend.scope
    frame = KeyedSnapshot(
        first_key_group=scope.key_groups.start,
        last_key_group=scope.key_groups.end,
        files=(),
        states=backend.states_meta(),
        key_serializer=scope.key_codec.snapshot(),
        backend=backend.backend_name,
    )
    if changes is None:
        return PreparedSnapshot(request.checkpoint_id, SnapshotKind.FULL, _full_parts(backend), frame)
    return PreparedSnapshot(request.checkpoint_id, SnapshotKind.DELTA, _delta_parts(backend, changes), frame)


def async_write(
    prepared: PreparedSnapshot,
    writer: SnapshotWriter,
    name: str,
    shared: bool = True,
    heartbeat: Callable[[], None] | None = None,
) -> KeyedSnapshot:
    """Store a prepared snapshot. ``name`` is unique for operator, subtask and execution.

    ``heartbeat`` is called before every file; what it raises cancels the rest.
    """
    files: list[KeyedFile] = []
    for number, part in enumerate(prepared.parts):
        if heartbeat is not None:
            heartbeat()
        kind = prepared.kind if number == 0 else SnapshotKind.DELTA
        handle = writer.write(f"{name}-{number}", part.data, shared)
        files.append(
            KeyedFile(
                handle,
                kind,
                part.first_key_group,
                part.last_key_group,
                part.entries,
                prepared.checkpoint_id,
                part.index_bytes,
            )
        )
    return msgspec.structs.replace(prepared.frame, files=tuple(files))


def _full_parts(backend: KeyedStateBackend) -> Iterable[EncodedPart]:
    """All entries of the key groups, but for expired ones that are to be left out, encoded now. The local area is above
    them all.
    """
    key_groups = backend.scope.key_groups
    entries = backend.ttl.unexpired(backend.store.scan(group_bytes(key_groups.start), _end_of(key_groups.end)))
    spool = _Spool()
    for part in encode_parts(entries, (), key_groups):
        spool.add(part)
    return spool


def _delta_parts(backend: KeyedStateBackend, changes: ChangedKeys) -> Iterable[EncodedPart]:
    """What changed, read now and encoded later; nothing when nothing changed."""
    key_groups = backend.scope.key_groups
    low, high = group_bytes(key_groups.start), _end_of(key_groups.end)
    ranges = [(max(start, low), min(end, high)) for start, end in changes.ranges if start < high and end > low]
    keys = changes.keys[bisect_left(changes.keys, low) : bisect_left(changes.keys, high)]
    if not keys and not ranges:
        return ()
    entries = list(zip(keys, backend.store.get_many(keys), strict=True))
    if ranges:
        # A range tombstone says what single ones inside of it would say again.
        deleted = RangeSet(ranges)
        entries = [entry for entry in entries if entry[1] is not None or entry[0] not in deleted]
    return encode_parts(entries, ranges, key_groups)


def _end_of(last_group: int) -> bytes:
    return group_bytes(last_group + 1) if last_group + 1 < int.from_bytes(STATES_END, "big") else STATES_END


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
