"""Raw state: bytes per key group and in partitions, and where they go when the parallelism changes."""

from __future__ import annotations

import pickle
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import CorruptFileError, StateAccessError
from holdfast.state.handles import RawKeyedSnapshot, SubtaskSnapshot
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.raw_state import RawStateOutputs, open_raw_keyed, open_raw_operator
from tests.state.snapshot_memory import MemoryFiles

MAX_PARALLELISM = 16


def keyed(content: dict[int, bytes], parallelism: int, files: MemoryFiles) -> list[RawKeyedSnapshot]:
    """What subtasks of ``parallelism`` write, when a key group has this content."""
    snapshots = []
    for subtask in range(parallelism):
        groups = KeyGroupRange.of(subtask, MAX_PARALLELISM, parallelism)
        with RawStateOutputs("op", groups) as outputs:
            for group in reversed(outputs.keyed().get_key_group_list()):
                if group in content:
                    outputs.keyed().start_new_key_group(group)
                    outputs.keyed().write(content[group])
        data = outputs.encoded_keyed()
        if data is not None:
            snapshots.append(RawKeyedSnapshot(groups.start, groups.end, files.write("raw", data)))
    return snapshots


@given(
    st.dictionaries(st.integers(0, MAX_PARALLELISM - 1), st.binary(max_size=20)), st.integers(1, 16), st.integers(1, 16)
)
def test_key_groups_go_to_the_subtasks_that_own_them(content: dict[int, bytes], before: int, after: int) -> None:
    files = MemoryFiles()
    snapshots = keyed(content, before, files)
    found: dict[int, bytes] = {}
    for subtask in range(after):
        groups = KeyGroupRange.of(subtask, MAX_PARALLELISM, after)
        inputs = open_raw_keyed(snapshots, groups, files)
        mine = [(one.get_key_group_id(), one.get_stream().read()) for one in inputs]
        assert [group for group, _ in mine] == [group for group in groups if group in content]
        found.update(mine)
    assert found == content


def partitions(lists: list[list[bytes]], files: MemoryFiles) -> list[SubtaskSnapshot]:
    snapshots = []
    for subtask, parts in enumerate(lists):
        with RawStateOutputs("op", None) as outputs:
            for part in parts:
                outputs.operator().start_new_partition()
                outputs.operator().write(part[:1])
                outputs.operator().write(memoryview(part[1:]))
            assert outputs.operator().get_number_of_partitions() == len(parts)
        data = outputs.encoded_operator()
        handle = None if data is None else files.write("raw", data)
        snapshots.append(SubtaskSnapshot("op", subtask, raw_operator=handle))
    return snapshots


@given(st.lists(st.lists(st.binary(max_size=8), max_size=5), min_size=1, max_size=5), st.integers(1, 6))
def test_partitions_split_like_lists(lists: list[list[bytes]], after: int) -> None:
    files = MemoryFiles()
    snapshots = partitions(lists, files)
    shares = [
        [one.get_stream().read() for one in open_raw_operator(snapshots, subtask, after, files)]
        for subtask in range(after)
    ]
    assert [part for share in shares for part in share] == [part for parts in lists for part in parts]
    if after == len(lists):
        assert shares == lists
    else:
        assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_only_streams_that_are_asked_for_are_read() -> None:
    files = MemoryFiles()
    content = {group: bytes([group]) * 200_000 for group in range(MAX_PARALLELISM)}
    snapshots = keyed(content, 1, files)
    files.bytes_read = 0
    inputs = open_raw_keyed(snapshots, KeyGroupRange(4, 7), files)
    assert files.bytes_read <= 64 << 10
    assert next(iter(inputs)).get_stream().read() == content[4]
    assert files.bytes_read <= 200_000 + (64 << 10)


def test_streams_are_files_as_python_knows_them() -> None:
    files = MemoryFiles()
    with RawStateOutputs("op", None) as outputs:
        outputs.operator().start_new_partition()
        pickle.dump({"a": [1, 2]}, outputs.operator())
    data = outputs.encoded_operator()
    assert data is not None
    snapshot = SubtaskSnapshot("op", 0, raw_operator=files.write("raw", data))
    (provider,) = open_raw_operator([snapshot], 0, 1, files)
    assert pickle.load(provider.get_stream()) == {"a": [1, 2]}
    assert isinstance(provider.get_stream(), BytesIO), "each call gives a stream from the beginning"


class TestMistakes:
    def test_bytes_before_a_start(self) -> None:
        outputs = RawStateOutputs("operator 'o', subtask 1/2", KeyGroupRange(0, 7))
        with pytest.raises(StateAccessError, match=r"operator 'o', subtask 1/2 .*start_new_key_group\(key_group\)"):
            outputs.keyed().write(b"x")
        with pytest.raises(StateAccessError, match=r"start_new_partition\(\)"):
            outputs.operator().write(b"x")

    def test_key_groups_of_others_and_twice(self) -> None:
        keyed = RawStateOutputs("operator 'o'", KeyGroupRange(0, 7)).keyed()
        with pytest.raises(StateAccessError, match=r"starts key group 8 .* has the key groups 0 to 7"):
            keyed.start_new_key_group(8)
        keyed.start_new_key_group(3)
        with pytest.raises(StateAccessError, match=r"starts key group 3 .* twice"):
            keyed.start_new_key_group(3)

    def test_keyed_without_keys(self) -> None:
        with pytest.raises(StateAccessError, match=r"operator 'o': raw keyed state exists behind a key_by"):
            RawStateOutputs("operator 'o'", None).keyed()

    def test_after_the_snapshot(self) -> None:
        with RawStateOutputs("operator 'o'", KeyGroupRange(0, 7)) as outputs:
            keyed, operator = outputs.keyed(), outputs.operator()
        for use in (lambda: keyed.start_new_key_group(1), operator.start_new_partition, lambda: operator.write(b"")):
            with pytest.raises(StateAccessError, match="during snapshot_state only"):
                use()

    def test_streams_end_with_the_restore(self) -> None:
        files = MemoryFiles()
        inputs = open_raw_operator(partitions([[b"ab", b"cd"]], files), 0, 1, files)
        first, second = inputs
        stream = first.get_stream()
        inputs.close()
        with pytest.raises(ValueError, match="closed"):
            stream.read()
        with pytest.raises(ValueError, match="during a restore only"):
            second.get_stream()

    def test_damage_is_found_when_it_is_read(self) -> None:
        files = MemoryFiles()
        snapshots = partitions([[b"x" * 100_000, b"y" * 100_000, b"z" * 100_000]], files)
        (path,) = files.files
        damaged = bytearray(files.files[path])
        damaged[150_000] ^= 1
        files.files[path] = bytes(damaged)
        providers = list(open_raw_operator(snapshots, 0, 1, files))
        assert providers[0].get_stream().read() == b"x" * 100_000
        with pytest.raises(CorruptFileError, match=path):
            providers[1].get_stream()
