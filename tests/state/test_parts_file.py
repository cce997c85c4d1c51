"""Files of parts: any part can be read on its own, what is read is verified, and nothing else is read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import CorruptFileError
from holdfast.state.footed_file import WHOLE_FILE_BYTES
from holdfast.state.handles import FileHandle
from holdfast.state.parts_file import BLOCK_BYTES, PartsFileReader, encode_parts_file
from tests.state.snapshot_memory import MemoryFiles


def stored(parts: list[bytes], info: object = None) -> tuple[FileHandle, MemoryFiles]:
    files = MemoryFiles()
    return files.write("parts", encode_parts_file(info, parts)), files


@given(
    st.lists(st.integers(0, BLOCK_BYTES * 2), max_size=12).flatmap(
        lambda sizes: st.tuples(st.just(sizes), st.lists(st.integers(0, max(len(sizes) - 1, 0)), max_size=8))
    )
)
def test_any_parts_in_any_order(drawn: tuple[list[int], list[int]]) -> None:
    sizes, wanted = drawn
    parts = [bytes([number]) * size for number, size in enumerate(sizes)]
    handle, files = stored(parts, {"a": 1})
    with PartsFileReader(handle, files) as reader:
        assert reader.info(dict[str, int]) == {"a": 1}
        assert reader.lengths == sizes
        assert reader.read(wanted if sizes else []) == ([parts[number] for number in wanted] if sizes else [])


def test_only_blocks_with_a_wanted_part_are_read() -> None:
    parts = [bytes([number % 251]) * 1000 for number in range(2000)]
    handle, files = stored(parts)
    reader = PartsFileReader(handle, files)
    footer = files.bytes_read
    assert footer <= 80 << 10
    assert reader.read(range(500, 600)) == parts[500:600]
    assert files.bytes_read - footer <= 100 * 1000 + 2 * BLOCK_BYTES
    assert files.reads == 2, "neighbours are read at once"


def test_a_small_file_is_read_once() -> None:
    handle, files = stored([b"a", b"b"])
    reader = PartsFileReader(handle, files)
    assert reader.read([1]) == [b"b"] and reader.read([0]) == [b"a"]
    assert files.reads == 1


@pytest.mark.parametrize("size", [3, WHOLE_FILE_BYTES])
def test_every_damaged_byte_that_is_used_is_found(size: int) -> None:
    parts = [b"x" * size, b"y" * size]
    handle, files = stored(parts, ["info"])
    (path,) = files.files
    whole = files.files[path]
    places = range(len(whole)) if size == 3 else [0, size - 1, size, len(whole) - 1, len(whole) - 40, 2 * size + 3]
    for place in places:
        files.files[path] = whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
        with pytest.raises(CorruptFileError, match=path):
            PartsFileReader(handle, files).read([0, 1])


def test_a_file_of_something_else_is_refused() -> None:
    files = MemoryFiles()
    for data in (b"", b"short", b"x" * 100):
        with pytest.raises(CorruptFileError):
            PartsFileReader(files.write("other", data), files)
    handle, files = stored([b"a"], ["not", "numbers"])
    with pytest.raises(CorruptFileError, match="what was expected"):
        PartsFileReader(handle, files).info(list[int])


def test_a_closed_file_gives_nothing() -> None:
    for size in (1, WHOLE_FILE_BYTES):
        handle, files = stored([b"a" * size])
        reader = PartsFileReader(handle, files)
        reader.close()
        with pytest.raises(ValueError, match="during a restore only"):
            reader.read([0])
