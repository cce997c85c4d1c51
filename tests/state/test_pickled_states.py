"""What of a snapshot is pickled, found by stored types."""

from __future__ import annotations

import pytest

from holdfast.common import Types
from holdfast.state.handles import (
    CheckpointMetadata,
    DistributionMode,
    FileHandle,
    ListStateSnapshot,
    OperatorRecord,
    SnapshotType,
    SubtaskSnapshot,
)
from holdfast.state.operator_state_file import encode_operator_state
from holdfast.state.pickled_states import named_states
from holdfast.state.serializers import serializer_for
from holdfast.state.snapshot_files import InlineSnapshotReader
from holdfast.storage.checksum import checksum
from holdfast.types.typeinfo import TypeInformation

OPEN, LONG = Types.PICKLED_BYTE_ARRAY(), Types.LONG()


@pytest.mark.parametrize(
    ("type_info", "pickled"),
    [
        (LONG, False),
        (OPEN, True),
        (Types.LIST(LONG), False),
        (Types.LIST(Types.LIST(OPEN)), True),
        (Types.MAP(LONG, LONG), False),
        (Types.MAP(OPEN, LONG), True),
        (Types.MAP(LONG, OPEN), True),
        (Types.TUPLE([LONG, LONG]), False),
        (Types.ROW_NAMED(["a", "b"], [LONG, Types.TUPLE([OPEN])]), True),
    ],
    ids=str,
)
def test_types_that_are_left_open(type_info: TypeInformation, pickled: bool) -> None:
    assert type_info.pickled is pickled


def inline(data: bytes) -> FileHandle:
    return FileHandle("", len(data), checksum(data), inline=data)


def snapshot_of(*subtasks: SubtaskSnapshot) -> CheckpointMetadata:
    record = OperatorRecord("id", "me", "mine", len(subtasks), 128, subtasks)
    return CheckpointMetadata(1, SnapshotType.CHECKPOINT, "job", "job", 1, 1, 0, 0, "hash", (record,))


def test_a_state_is_named_once_whatever_number_of_subtasks_has_it() -> None:
    def stored(name: str, type_info: TypeInformation) -> ListStateSnapshot:
        return ListStateSnapshot(name, DistributionMode.UNION, {"value": serializer_for(type_info).snapshot()}, ())

    file = inline(encode_operator_state([stored("typed", LONG), stored("open", Types.LIST(OPEN))]))
    subtasks = [SubtaskSnapshot("id", number, operator_state=file) for number in range(3)]
    (found,) = named_states(snapshot_of(*subtasks), InlineSnapshotReader())
    assert found.advice() == (
        "operator 'mine' (uid me): operator union list 'open' of LIST<PICKLED_BYTE_ARRAY> is pickled. To declare its "
        "type: its ListStateDescriptor."
    )


@pytest.mark.parametrize("position", [b"read", b"", bytes(200)])
def test_positions_of_what_spark_reads_are_none_of_them(position: bytes) -> None:
    metadata = snapshot_of(SubtaskSnapshot("id", 0, operator_state=inline(position)))
    assert named_states(metadata, InlineSnapshotReader()) == []
