"""The runner of snapshot strategies: which one takes the snapshot of a subtask's keyed state, and its two steps.

What a task gives is its own files only. A snapshot that begins with a DELTA, or has no files because nothing changed,
continues the files of the checkpoint it is based on; the coordinator, which knows that checkpoint, joins them. A
snapshot of a database's own files names all of them, also those that an earlier checkpoint stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.state.entry_strategies import FullImage, KeyDelta
from holdfast.state.handles import CheckpointRequest, KeyedSnapshot, SavepointFormat
from holdfast.state.keyed_backend import KeyedStateBackend
from holdfast.state.snapshot_io import SnapshotWriter
from holdfast.state.strategies import PreparedSnapshot, SnapshotStrategy


def strategies_of(backend: KeyedStateBackend, request: CheckpointRequest) -> Sequence[SnapshotStrategy]:
    """In the order in which they are asked. The last one can always do it. Tables of the canonical format are made of
    entries.
    """
    if request.savepoint_format is SavepointFormat.CANONICAL:
        return (FullImage(),)
    return backend.store.strategies((KeyDelta(), FullImage()))


def sync_prepare(
    backend: KeyedStateBackend, request: CheckpointRequest, operator_id: str, subtask: int
) -> PreparedSnapshot:
    """Pin the backend's content as it is now, changes of the running epoch included. A savepoint builds on nothing, nor
    does the first checkpoint behind a migration: what was stored before has another form.
    """
    backend.end_epoch()
    base_epoch = None
    if not request.checkpoint_type.is_savepoint:
        base_epoch = request.base_epoch_for(operator_id, subtask)
        if base_epoch is not None and backend.migrated_in > base_epoch:
            base_epoch = None
    prepared = (strategy.prepare(backend, request, base_epoch) for strategy in strategies_of(backend, request))
    return next(one for one in prepared if one is not None)


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
    return prepared.write(writer, name, shared, heartbeat)
