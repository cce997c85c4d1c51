"""What a subtask takes of a restored operator: asked by the task that restores it, and by a rehearsal."""

from __future__ import annotations

from holdfast.runtime.plan import OperatorSpec
from holdfast.state.handles import ListStateSnapshot, OperatorRecord
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.keys import KeyCodec
from holdfast.state.operator_state import decode_operator_state
from holdfast.state.redistribution import redistribute
from holdfast.state.regrouping import Regrouping
from holdfast.state.restore import KeyedShare
from holdfast.state.snapshot_io import SnapshotReader


def keyed_share(spec: OperatorSpec, subtask: int, record: OperatorRecord | None) -> KeyedShare:
    """The keyed state of a subtask. StateMigrationError when the keys were stored with another type."""
    codec = KeyCodec.for_type(spec.key_type)
    written = [s.keyed for s in record.subtasks if s.keyed is not None] if record is not None else []
    for snapshot in written:
        codec.require_compatible(snapshot.key_serializer, spec.name)
    regroups = record is not None and record.max_parallelism != spec.max_parallelism
    regrouping = Regrouping(codec, spec.max_parallelism) if regroups else None
    return KeyedShare.of(written, KeyGroupRange.of(subtask, spec.max_parallelism, spec.parallelism), regrouping)


def restored_lists(
    spec: OperatorSpec, subtask: int, record: OperatorRecord | None, reader: SnapshotReader
) -> tuple[ListStateSnapshot, ...]:
    """The operator state of a subtask."""
    if record is None:
        return ()
    return redistribute(written_lists(record, reader), spec.parallelism)[subtask]


def written_lists(record: OperatorRecord, reader: SnapshotReader) -> list[tuple[ListStateSnapshot, ...]]:
    """The operator state that each old subtask wrote."""
    return [
        decode_operator_state(reader.read(s.operator_state)) if s.operator_state is not None else ()
        for s in record.subtasks
    ]
