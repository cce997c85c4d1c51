"""What a subtask takes of a restored operator: asked by the task that restores it, and by a rehearsal."""

from __future__ import annotations

from typing import Any

from holdfast.errors import StateMigrationError
from holdfast.runtime.plan import OperatorSpec
from holdfast.runtime.state_context import OperatorStateContext
from holdfast.state.handles import ListStateSnapshot, OperatorRecord
from holdfast.state.key_migration import key_plan
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.keys import KeyCodec
from holdfast.state.operator_state_file import restore_operator_state
from holdfast.state.raw_state import open_raw_keyed, open_raw_operator
from holdfast.state.regrouping import Regrouping
from holdfast.state.restore import KeyedShare
from holdfast.state.snapshot_io import SnapshotReader


def keyed_share(spec: OperatorSpec, subtask: int, record: OperatorRecord | None) -> KeyedShare:
    """The keyed state of a subtask. StateMigrationError when there are keys and they cannot become the program's."""
    codec = KeyCodec.for_type(spec.key_type)
    stored = [s.keyed for s in record.subtasks if s.keyed is not None] if record is not None else []
    own = codec.snapshot(), spec.key_migrations.versions.current
    written = [one for one in stored if (one.key_serializer, one.key_version) == own or one.has_entries]
    _refuse_raw_keys(spec, record, own)
    plans = [key_plan(spec.name, codec, spec.key_migrations, snapshot) for snapshot in written]
    changed = next((plan for plan in plans if plan is not None), None)
    regroups = record is not None and record.max_parallelism != spec.max_parallelism
    regrouping = None
    if regroups or changed is not None:
        moves = regroups or (changed is not None and changed.moves)
        regrouping = Regrouping(codec, spec.max_parallelism, changed, moves)
    key_groups = KeyGroupRange.of(subtask, spec.max_parallelism, spec.parallelism)
    return KeyedShare.of(written, key_groups, regrouping, subtask)


def _refuse_raw_keys(spec: OperatorSpec, record: OperatorRecord | None, own: tuple[dict[str, Any], int]) -> None:
    for one in record.subtasks if record is not None else ():
        if one.raw_keyed is not None and one.keyed is not None:
            stored = one.keyed.key_serializer, one.keyed.key_version
            if stored != own:
                raise StateMigrationError(
                    f"The keys of operator '{spec.name}' change, and it has raw keyed state: bytes of its own per key "
                    "group, in which no keys can be found. Leave the keys as they were, or give it another uid."
                )


def restored_lists(
    spec: OperatorSpec, subtask: int, record: OperatorRecord | None, reader: SnapshotReader
) -> tuple[ListStateSnapshot, ...]:
    """The operator state of a subtask."""
    return _lists(record, subtask, spec.parallelism, reader) if record is not None else ()


def written_lists(record: OperatorRecord, reader: SnapshotReader) -> tuple[ListStateSnapshot, ...]:
    """The operator state that all old subtasks wrote."""
    return _lists(record, 0, 1, reader)


def _lists(
    record: OperatorRecord, subtask: int, parallelism: int, reader: SnapshotReader
) -> tuple[ListStateSnapshot, ...]:
    states = restore_operator_state(record.subtasks, subtask, parallelism, reader)
    return tuple(snapshot for _, entry in states.items() for snapshot in entry.restored)


def open_raw_state(
    state: OperatorStateContext, spec: OperatorSpec, subtask: int, record: OperatorRecord | None, reader: SnapshotReader
) -> None:
    """Lay out the raw state of a subtask, to be read by the operator. Without a ``key_by`` that is raw operator state
    only: the rules of restoring have allowed that the other is left behind.
    """
    if record is None:
        return
    if spec.keyed:
        key_groups = KeyGroupRange.of(subtask, spec.max_parallelism, spec.parallelism)
        written = [one.raw_keyed for one in record.subtasks if one.raw_keyed is not None]
        state.raw_keyed_inputs = open_raw_keyed(written, key_groups, reader)
    state.raw_operator_inputs = open_raw_operator(record.subtasks, subtask, spec.parallelism, reader)
