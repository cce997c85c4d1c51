from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from holdfast.errors import CheckpointError, CorruptFileError, StorageError
from holdfast.state.handles import FileHandle
from holdfast.state.snapshot_files import (
    FileSnapshotReader,
    FileSnapshotWriter,
    InlineSnapshotReader,
    MemorySnapshotWriter,
)
from holdfast.storage.checksum import checksum


def writer(root: Path, threshold: int = 10) -> FileSnapshotWriter:
    return FileSnapshotWriter(str(root), checkpoint_id=7, attempt=3, inline_threshold=threshold)


class TestFiles:
    def test_paths_carry_the_attempt(self, tmp_path: Path) -> None:
        own = writer(tmp_path).write("op-0", b"x" * 11)
        shared = writer(tmp_path).write("op-0", b"y" * 11, shared=True)
        assert (own.path, shared.path) == ("chk-7/3-op-0", "shared/3-7-op-0")
        assert (tmp_path / own.path).read_bytes() == b"x" * 11
        assert (own.size, own.checksum, own.inline) == (11, checksum(b"x" * 11), None)

    @pytest.mark.parametrize("size", [0, 1, 10])
    def test_few_bytes_stay_in_the_handle(self, tmp_path: Path, size: int) -> None:
        handle = writer(tmp_path).write("op-0", b"z" * size, shared=True)
        assert (handle.path, handle.inline) == ("", b"z" * size)
        assert list(tmp_path.iterdir()) == []
        assert FileSnapshotReader(str(tmp_path)).read(handle) == b"z" * size

    def test_what_was_written_is_read(self, tmp_path: Path) -> None:
        data = bytes(range(200))
        handle = pickle.loads(pickle.dumps(writer(tmp_path))).write("op-0", data)
        reader = pickle.loads(pickle.dumps(FileSnapshotReader(str(tmp_path))))
        assert reader.read(handle) == data
        assert reader.read_range(handle, 50, 10) == data[50:60]

    @pytest.mark.parametrize("name", ["", "a/b"])
    def test_names_are_file_names(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(ValueError, match="without '/'"):
            writer(tmp_path).write(name, b"x" * 11)

    def test_damage_names_the_file(self, tmp_path: Path) -> None:
        handle = writer(tmp_path).write("op-0", b"x" * 100)
        file = tmp_path / handle.path
        file.write_bytes(b"x" * 99 + b"y")
        with pytest.raises(CorruptFileError, match="chk-7/3-op-0: the checksum"):
            FileSnapshotReader(str(tmp_path)).read(handle)
        file.write_bytes(b"x" * 99)
        with pytest.raises(CorruptFileError, match="chk-7/3-op-0: the file has 99 bytes"):
            FileSnapshotReader(str(tmp_path)).read(handle)
        with pytest.raises(CorruptFileError, match="10 bytes are expected at 90, 9 are there"):
            FileSnapshotReader(str(tmp_path)).read_range(handle, 90, 10)
        file.unlink()
        with pytest.raises(CorruptFileError, match="missing"):
            FileSnapshotReader(str(tmp_path)).read(handle)
        with pytest.raises(CorruptFileError, match="missing"):
            FileSnapshotReader(str(tmp_path)).read_range(handle, 0, 1)

    def test_a_directory_that_cannot_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "chk-7").write_bytes(b"a file")
        with pytest.raises(StorageError, match="chk-7/3-op-0"):
            writer(tmp_path).write("op-0", b"x" * 11)


class TestMemory:
    def test_everything_is_inline(self) -> None:
        handle = MemorySnapshotWriter(limit=100).write("op-0", b"x" * 100)
        assert handle.inline == b"x" * 100
        assert InlineSnapshotReader().read(handle) == b"x" * 100
        assert InlineSnapshotReader().read_range(handle, 1, 2) == b"xx"

    def test_too_much_names_size_limit_and_setting(self) -> None:
        with pytest.raises(
            CheckpointError, match=r"op-0 has 5242881 bytes.*5242880.*execution\.checkpointing\.storage"
        ):
            MemorySnapshotWriter().write("op-0", b"x" * (5 * 1024 * 1024 + 1))

    def test_damaged_inline_bytes_are_seen(self) -> None:
        with pytest.raises(CorruptFileError, match="inline snapshot: the checksum"):
            InlineSnapshotReader().read(FileHandle(path="", size=1, checksum=checksum(b"a"), inline=b"b"))

    def test_a_short_range_is_seen(self) -> None:
        handle = MemorySnapshotWriter().write("op-0", b"abc")
        with pytest.raises(CorruptFileError, match="cut short"):
            InlineSnapshotReader().read_range(handle, 2, 5)

    def test_a_file_cannot_be_read_from_memory(self) -> None:
        with pytest.raises(StorageError, match="have no files"):
            InlineSnapshotReader().read(FileHandle(path="chk-1/1-x", size=1, checksum=""))


def test_corrupt_file_errors_travel_between_processes() -> None:
    error = pickle.loads(pickle.dumps(CorruptFileError("chk-1/x", "too short")))
    assert (error.path, str(error)) == ("chk-1/x", "chk-1/x: too short")
