"""The file format of keyed snapshots."""

from __future__ import annotations

import struct

import msgspec
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import CorruptFileError
from holdfast.state import footed_file, keyed_file
from holdfast.state.handles import KeyedFile, SnapshotKind
from holdfast.state.keyed_file import EncodedPart, KeyedFileReader, encode_parts, reads_at_once
from holdfast.state.keygroups import KeyGroupRange
from tests.state.snapshot_memory import MemoryFiles

ALL = KeyGroupRange(0, 127)


def stored(part: EncodedPart) -> tuple[KeyedFile, MemoryFiles]:
    files = MemoryFiles()
    handle = files.write("file", part.data)
    file = KeyedFile(
        handle, SnapshotKind.FULL, part.first_key_group, part.last_key_group, part.entries, 1, part.index_bytes
    )
    return file, files


def read_all(part: EncodedPart, key_groups: KeyGroupRange = ALL) -> list:
    reader = KeyedFileReader(*stored(part), key_groups)
    return [entry for batch in reader.batches() for entry in batch]


def entry(group: int, number: int, value: bytes | None = b"v") -> tuple[bytes, bytes | None]:
    return struct.pack(">HHQ", group, 1, number), value


def random_entries(groups: int) -> list:
    """1,000 entries per key group that do not compress to nothing."""
    digest = xxhash.xxh3_128_digest
    return [entry(group, number, digest(b"%d" % number) * 4) for group in range(groups) for number in range(1000)]


_entries = st.dictionaries(
    st.builds(lambda group, tail: struct.pack(">H", group) + tail, st.integers(0, 127), st.binary(max_size=5)),
    st.one_of(st.none(), st.binary(max_size=2000)),
).map(lambda found: sorted(found.items()))


@given(entries=_entries, start=st.integers(0, 127), length=st.integers(0, 127), part_bytes=st.sampled_from([1, 10**6]))
def test_what_is_read_is_what_was_written(entries: list, start: int, length: int, part_bytes: int) -> None:
    wanted = KeyGroupRange(start, min(127, start + length))
    parts = list(encode_parts(entries, [(b"\0a", b"\0b")], ALL, part_bytes))
    assert sum(part.entries for part in parts) == len(entries)
    read = [one for part in parts for one in read_all(part, wanted)]
    assert read == [one for one in entries if struct.unpack(">H", one[0][:2])[0] in wanted]
    assert KeyedFileReader(*stored(parts[0]), ALL).ranges == [(b"\0a", b"\0b")]
    assert all(KeyedFileReader(*stored(part), ALL).ranges == [] for part in parts[1:])


def test_a_file_without_entries_is_a_file() -> None:
    [part] = encode_parts([], [], KeyGroupRange(3, 9))
    assert (part.first_key_group, part.last_key_group, part.entries) == (3, 9, 0)
    assert read_all(part) == []


def test_parts_say_their_key_groups_and_go_on_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed_file, "BLOCK_BYTES", 1000)
    entries = [entry(group, number) for group in range(10) for number in range(100)]
    parts = list(encode_parts(entries, [], ALL, part_bytes=300))
    assert len(parts) > 5
    spans = [(part.first_key_group, part.last_key_group) for part in parts]
    assert spans == sorted(spans)
    assert spans[0][0] == 0 and spans[-1][1] == 9
    assert [one for part in parts for one in read_all(part)] == entries


def test_small_key_groups_are_not_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed_file, "BLOCK_BYTES", 1000)
    entries = [entry(group, number) for group in range(100) for number in range(10)]
    [part] = encode_parts(entries, [], ALL)
    for batch in KeyedFileReader(*stored(part), ALL).batches():
        groups = [struct.unpack(">H", key[:2])[0] for key, _ in batch]
        assert all(groups.count(group) == 10 for group in set(groups))


def test_only_blocks_of_the_asked_key_groups_are_read() -> None:
    entries = random_entries(groups=100)
    [part] = encode_parts(entries, [], ALL)
    file, files = stored(part)
    reader = KeyedFileReader(file, files, KeyGroupRange(50, 50))
    assert files.bytes_read == file.index_bytes
    found = [one for batch in reader.batches() for one in batch]
    assert found == [one for one in entries if one[0][:2] == b"\0\x32"]
    assert files.bytes_read == reader.bytes_of(KeyGroupRange(50, 50)) < len(part.data) / 40


def test_a_file_whose_index_has_no_recorded_length_is_read_from_its_end() -> None:
    entries = random_entries(groups=100)
    [part] = encode_parts(entries, [], ALL)
    file, files = stored(msgspec.structs.replace(part, index_bytes=0))
    reader = KeyedFileReader(file, files, KeyGroupRange(50, 50))
    assert [one for batch in reader.batches() for one in batch] == entries[50_000:51_000]
    assert files.bytes_read == reader.bytes_of(KeyGroupRange(50, 50))


@pytest.mark.parametrize(("wanted", "reads"), [(ALL, 1), (KeyGroupRange(3, 5), 1), (KeyGroupRange(0, 4), 2)])
def test_a_small_file_is_read_at_once_only_when_all_of_it_is_wanted(wanted: KeyGroupRange, reads: int) -> None:
    entries = [entry(group, number) for group in (3, 4, 5) for number in range(1000)]
    [part] = encode_parts(entries, [], ALL)
    file, files = stored(part)
    assert reads_at_once(file, wanted) == (reads == 1)
    list(KeyedFileReader(file, files, wanted).batches())
    assert files.reads == reads
    assert files.bytes_read <= len(part.data)


def test_neighbouring_blocks_are_read_together() -> None:
    entries = random_entries(groups=50)
    [part] = encode_parts(entries, [], ALL)
    file, files = stored(part)
    assert len(list(KeyedFileReader(file, files, ALL).batches())) > 30
    assert files.reads == 2


@pytest.mark.parametrize(("whole", "recorded"), [(True, True), (False, True), (False, False)])
def test_every_flipped_byte_is_found(monkeypatch: pytest.MonkeyPatch, whole: bool, recorded: bool) -> None:
    monkeypatch.setattr(keyed_file, "BLOCK_BYTES", 200)
    if not whole:
        monkeypatch.setattr(keyed_file, "WHOLE_FILE_BYTES", 0)
        monkeypatch.setattr(footed_file, "_TAIL_BYTES", 64)
    entries = [entry(group, number, b"%d" % number) for group in range(4) for number in range(20)]
    [part] = encode_parts(entries, [(b"\0\1", b"\0\2")], ALL)
    assert read_all(part) == entries
    index_bytes = part.index_bytes if recorded else 0
    for at in range(len(part.data)):
        for flip in (0x01, 0x80, 0xFF):
            damaged = bytearray(part.data)
            damaged[at] ^= flip
            with pytest.raises(CorruptFileError):
                read_all(msgspec.structs.replace(part, data=bytes(damaged), index_bytes=index_bytes))


@pytest.mark.parametrize("length", [0, 10, 31, 100])
def test_a_shortened_file_is_found(length: int) -> None:
    [part] = encode_parts([entry(1, number) for number in range(100)], [], ALL)
    with pytest.raises(CorruptFileError):
        read_all(EncodedPart(part.data[:length], 0, 3, 0))
