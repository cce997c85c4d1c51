"""Operator state through files: what states there are first, then only the elements of the subtask."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import CorruptFileError
from holdfast.state import parts_file
from holdfast.state.descriptors import ListStateDescriptor, MapStateDescriptor
from holdfast.state.handles import DistributionMode, ListStateSnapshot, SubtaskSnapshot
from holdfast.state.operator_state import DefaultOperatorStateBackend
from holdfast.state.operator_state_file import encode_operator_state, restore_operator_state
from holdfast.state.parts_file import PartsFileReader
from holdfast.state.redistribution import redistribute
from holdfast.types.typeinfo import Types
from tests.state.snapshot_memory import MemoryFiles

NUMBERS = ListStateDescriptor("numbers", Types.LONG())
NAMES = ListStateDescriptor("names", Types.STRING())
RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())
TYPES: dict[str, Any] = {"value": {"version": 1, "type": Types.LONG().to_json()}}


def written(states: list[tuple[ListStateSnapshot, ...]], files: MemoryFiles) -> list[SubtaskSnapshot]:
    """What subtasks acknowledge; nothing where there is no state."""
    return [
        SubtaskSnapshot(
            "operator",
            subtask,
            operator_state=files.write(f"s{subtask}", encode_operator_state(one)) if one else None,
        )
        for subtask, one in enumerate(states)
    ]


def restored(snapshots: list[SubtaskSnapshot], parallelism: int, files: MemoryFiles) -> list[Any]:
    return [
        DefaultOperatorStateBackend("op", restore_operator_state(snapshots, subtask, parallelism, files))
        for subtask in range(parallelism)
    ]


def test_rescaling_through_files() -> None:
    states = []
    for subtask in range(3):
        one = DefaultOperatorStateBackend("op")
        one.get_list_state(NUMBERS).update(range(subtask * 10, subtask * 10 + 2))
        one.get_union_list_state(NAMES).add(f"s{subtask}")
        one.get_broadcast_state(RULES).put("a", 7)
        states.append(one.snapshot())
    files = MemoryFiles()
    new = restored(written(states, files), 2, files)
    assert [one.get_list_state(NUMBERS).get() for one in new] == [[0, 1, 10], [11, 20, 21]]
    assert [one.get_union_list_state(NAMES).get() for one in new] == [["s0", "s1", "s2"]] * 2
    assert [one.get_broadcast_state(RULES).get("a") for one in new] == [7] * 2


@given(
    st.lists(st.tuples(st.lists(st.binary(max_size=5)), st.lists(st.binary(max_size=5))), min_size=1, max_size=4),
    st.integers(1, 5),
)
def test_files_give_what_redistribution_of_the_values_gives(
    lists: list[tuple[list[bytes], list[bytes]]], parallelism: int
) -> None:
    states = [
        (
            ListStateSnapshot("split", DistributionMode.SPLIT_DISTRIBUTE, TYPES, tuple(split)),
            ListStateSnapshot("union", DistributionMode.UNION, TYPES, tuple(union)),
        )
        for split, union in lists
    ]
    files = MemoryFiles()
    snapshots = written(states, files)
    for subtask, expected in enumerate(redistribute(states, parallelism)):
        found = restore_operator_state(snapshots, subtask, parallelism, files)
        of_name = {name: [one for one in expected if one.name == name] for name in ("split", "union")}
        bare = {one.name: msgspec.structs.replace(one, elements=()) for one in states[0]}
        assert {name: entry.restored for name, entry in found.items()} == {
            name: given or [bare[name]] for name, given in of_name.items()
        }


def test_a_split_reads_only_its_share() -> None:
    """Two old subtasks with 2 MB each; of eight new ones each reads an eighth of it and the two footers."""
    elements = tuple(number.to_bytes(4, "big") * 250 for number in range(2_000))
    one = (ListStateSnapshot("big", DistributionMode.SPLIT_DISTRIBUTE, TYPES, elements),)
    files = MemoryFiles()
    snapshots = written([one, one], files)
    total = sum(len(data) for data in files.files.values())
    assert total > 4_000_000
    footers = 2 * (64 << 10)
    for subtask in range(8):
        files.bytes_read = 0
        states = restore_operator_state(snapshots, subtask, 8, files)
        assert sum(len(part.elements) for part in states.lists["big"].restored) == 500
        assert files.bytes_read <= total / 8 + footers + 2 * parts_file.BLOCK_BYTES


def test_a_failed_restore_closes_every_file(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[PartsFileReader] = []
    make = PartsFileReader.__init__

    def noting(self: PartsFileReader, *arguments: Any) -> None:
        opened.append(self)
        make(self, *arguments)

    monkeypatch.setattr(PartsFileReader, "__init__", noting)
    one = (ListStateSnapshot("big", DistributionMode.UNION, TYPES, (b"x" * 100_000,) * 5),)
    files = MemoryFiles()
    snapshots = written([one, one, one], files)
    for damaged in (0, -1):  # an element of the last file, and its footer
        opened.clear()
        path = list(files.files)[-1]
        whole = bytearray(files.files[path])
        whole[damaged] ^= 1
        files.files[path] = bytes(whole)
        with pytest.raises(CorruptFileError, match=path):
            restore_operator_state(snapshots, 0, 2, files)
        assert len(opened) == 3
        assert all(file.closed for file in opened[:2])
