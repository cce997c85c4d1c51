"""Operator state and raw state through tables give what they give through files."""

from __future__ import annotations

import io
from collections.abc import Sequence

import msgspec
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import CorruptFileError
from holdfast.state.canonical import operator_tables
from holdfast.state.canonical.operator_tables import write_operator_tables, write_raw_table
from holdfast.state.canonical.places import TablePlace
from holdfast.state.descriptors import ListStateDescriptor, MapStateDescriptor
from holdfast.state.handles import DistributionMode, ListStateSnapshot, RawKeyedSnapshot, SubtaskSnapshot
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.operator_state import DefaultOperatorStateBackend
from holdfast.state.operator_state_file import encode_operator_state, restore_operator_state
from holdfast.state.raw_state import RawStateOutputs, open_raw_keyed, open_raw_operator
from holdfast.state.serializers import serializer_for
from holdfast.types.typeinfo import Types
from tests.state.canonical.typed_values import VALUE_TYPES
from tests.state.snapshot_memory import MemoryFiles

#: (split list, union list, broadcast map), as encoded elements.
Encoded = tuple[list[bytes], list[bytes], list[tuple[bytes, bytes]]]


def place(subtask: int) -> TablePlace:
    return TablePlace.of("op-id", None, "Op", subtask, "nonce")


def in_tables(states: Sequence[tuple[ListStateSnapshot, ...]], files: MemoryFiles) -> list[SubtaskSnapshot]:
    return [
        SubtaskSnapshot("op", n, operator_tables=write_operator_tables(one, files, place(n), lambda: None))
        for n, one in enumerate(states)
    ]


def in_files(states: Sequence[tuple[ListStateSnapshot, ...]], files: MemoryFiles) -> list[SubtaskSnapshot]:
    return [
        SubtaskSnapshot("op", n, operator_state=files.write("lists", encode_operator_state(one)))
        for n, one in enumerate(states)
    ]


@given(st.data())
def test_lists_and_maps_of_any_type(data: st.DataObject) -> None:
    types = [data.draw(VALUE_TYPES) for _ in range(2)]
    serializers = [serializer_for(type_info) for type_info, _ in types]
    lists = [st.lists(values.map(one.encode), max_size=4) for (_, values), one in zip(types, serializers, strict=True)]
    key, value = (one.snapshot() for one in serializers)
    states = []
    for _ in range(data.draw(st.integers(1, 4))):
        pairs = zip(data.draw(lists[0]), data.draw(lists[1]), strict=False)
        states.append(
            (
                ListStateSnapshot(
                    "split", DistributionMode.SPLIT_DISTRIBUTE, {"value": key}, tuple(data.draw(lists[0]))
                ),
                ListStateSnapshot("union", DistributionMode.UNION, {"value": value}, tuple(data.draw(lists[1]))),
                ListStateSnapshot(
                    "map",
                    DistributionMode.BROADCAST,
                    {"map_key": key, "value": value},
                    tuple(part for pair in pairs for part in pair),
                ),
            )
        )
    files = MemoryFiles()
    tables, plain = in_tables(states, files), in_files(states, files)
    parallelism = data.draw(st.integers(1, 5))
    for subtask in range(parallelism):
        found, expected = (restore_operator_state(one, subtask, parallelism, files) for one in (tables, plain))
        assert found == expected
        assert set(found.lists) == {"split", "union"}, "also where they have no elements"


def test_a_split_reads_only_its_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_tables, "ROW_GROUP_ROWS", 100)
    serializer = serializer_for(Types.STRING())
    elements = tuple(serializer.encode_many([f"{n * 7919 % 104729:>200}" for n in range(20_000)]))
    mode = DistributionMode.SPLIT_DISTRIBUTE
    one = (ListStateSnapshot("big", mode, {"value": serializer.snapshot()}, elements),)
    files = MemoryFiles()
    snapshots = in_tables([one, one], files)
    total = sum(len(data) for data in files.files.values())
    footers = sum(one.handle.table.footer_bytes for s in snapshots for one in s.operator_tables)  # type: ignore[union-attr]
    for subtask in range(8):
        files.bytes_read = 0
        found = restore_operator_state(snapshots, subtask, 8, files)
        assert sum(len(part.elements) for part in found.lists["big"].restored) == 5000
        assert files.bytes_read <= total / 8 * 1.1 + footers


def test_a_flipped_byte_is_found() -> None:
    files = MemoryFiles()
    serializer = serializer_for(Types.LONG())
    elements = tuple(serializer.encode_many(range(100_000)))
    one = (ListStateSnapshot("n", DistributionMode.UNION, {"value": serializer.snapshot()}, elements),)
    snapshots = in_tables([one], files)
    path, data = next(iter(files.files.items()))
    for position in (0, len(data) // 2, len(data) - 1):
        files.files[path] = data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]
        with pytest.raises(CorruptFileError, match="checksum"):
            restore_operator_state(snapshots, 0, 1, files)


def test_arrow_alone_reads_them() -> None:
    backend = DefaultOperatorStateBackend("op")
    backend.get_list_state(ListStateDescriptor("numbers", Types.LONG())).update([5, 6])
    backend.get_broadcast_state(MapStateDescriptor("rules", Types.STRING(), Types.DOUBLE())).put("limit", 1.5)
    backend.get_union_list_state(ListStateDescriptor("empty", Types.LONG()))
    files = MemoryFiles()
    tables = write_operator_tables(backend.snapshot(), files, place(0), lambda: None)
    read = {
        table.name: pq.read_table(io.BytesIO(files.files[table.handle.path])).to_pylist()
        for table in tables
        if table.handle is not None
    }
    assert read == {
        "numbers": [{"position": 0, "element": 5}, {"position": 1, "element": 6}],
        "rules": [{"key": "limit", "value": 1.5}],
    }
    assert [table.name for table in tables if table.handle is None] == ["empty"]


@given(st.dictionaries(st.integers(0, 127), st.binary(max_size=20), min_size=1), st.integers(1, 8))
def test_raw_keyed_state(content: dict[int, bytes], parallelism: int) -> None:
    files = MemoryFiles()
    with RawStateOutputs("op", KeyGroupRange(0, 127)) as outputs:
        for group, data in content.items():
            outputs.keyed().start_new_key_group(group)
            outputs.keyed().write(data)
    handle = write_raw_table(outputs.encoded_keyed() or b"", True, files, place(0), lambda: None)
    written = [RawKeyedSnapshot(0, 127, handle)]
    found: dict[int, bytes] = {}
    for subtask in range(parallelism):
        groups = KeyGroupRange.of(subtask, 128, parallelism)
        inputs = open_raw_keyed(written, groups, files)
        found |= {one.get_key_group_id(): one.get_stream().read() for one in inputs}
        first = next(iter(inputs), None)
        inputs.close()
        if first is not None:
            with pytest.raises(ValueError, match="closed"):
                first.get_stream()
    assert found == content
    rows = pq.read_table(io.BytesIO(files.files[handle.path])).to_pylist()
    assert {row["key_group"]: row["data"] for row in rows} == content


@given(st.lists(st.lists(st.binary(max_size=8), min_size=1, max_size=5), min_size=1, max_size=4), st.integers(1, 6))
def test_raw_operator_state(lists: list[list[bytes]], parallelism: int) -> None:
    files = MemoryFiles()
    snapshots = []
    for subtask, parts in enumerate(lists):
        with RawStateOutputs("op", None) as outputs:
            for part in parts:
                outputs.operator().start_new_partition()
                outputs.operator().write(part)
        encoded = outputs.encoded_operator() or b""
        plain = SubtaskSnapshot("op", subtask, raw_operator=files.write("raw", encoded))
        table = write_raw_table(encoded, False, files, place(subtask), lambda: None)
        snapshots.append((plain, msgspec.structs.replace(plain, raw_operator=table)))
    for subtask in range(parallelism):
        expected, found = (
            [one.get_stream().read() for one in open_raw_operator(side, subtask, parallelism, files)]
            for side in zip(*snapshots, strict=True)
        )
        assert found == expected
