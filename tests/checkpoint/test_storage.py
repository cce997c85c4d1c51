from __future__ import annotations

import pickle
from pathlib import Path

import msgspec
import pytest

from holdfast.checkpoint.shared_files import FileOrigin
from holdfast.checkpoint.storage import CheckpointStorage, FileCheckpointStorage, MemoryCheckpointStorage, open_snapshot
from holdfast.errors import CheckpointError, CorruptFileError, StorageError
from holdfast.storage.filesystem import temporary_path
from tests.checkpoint.samples import JOB_ID, handle, metadata, record, snapshot


@pytest.fixture(params=["file", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> CheckpointStorage:
    return FileCheckpointStorage(str(tmp_path), JOB_ID) if request.param == "file" else MemoryCheckpointStorage()


@pytest.fixture
def files(tmp_path: Path) -> FileCheckpointStorage:
    return FileCheckpointStorage(str(tmp_path), JOB_ID, inline_threshold=4)


class TestContract:
    def test_what_a_task_writes_a_task_reads(self, storage: CheckpointStorage) -> None:
        writer = pickle.loads(pickle.dumps(storage.writer(checkpoint_id=1, attempt=1)))
        stored = writer.write("name", b"x" * 100_000, shared=True)
        assert pickle.loads(pickle.dumps(storage.reader())).read(stored) == b"x" * 100_000

    def test_an_intact_checkpoint_is_verified(self, storage: CheckpointStorage) -> None:
        stored = storage.writer(1, 1).write("name", b"x" * 100_000)
        storage.verify(metadata(1, [record(subtasks=[snapshot(operator_state=stored)])]))

    def test_damaged_inline_bytes_are_found(self, storage: CheckpointStorage) -> None:
        damaged = handle(inline=b"not what was written", size=20)
        with pytest.raises(CorruptFileError):
            storage.verify(metadata(1, [record(subtasks=[snapshot(operator_state=damaged)])]))

    def test_a_commit_has_begun_until_its_checkpoint_is_discarded(self, storage: CheckpointStorage) -> None:
        for number in (1, 2, 3):
            storage.write_metadata(metadata(number))
        assert storage.commits_begun() == frozenset()
        storage.mark_commit_begun(1)
        assert storage.commits_begun() == {1}
        storage.mark_committed(1)
        storage.mark_commit_begun(2)
        assert storage.commits_begun() == {1, 2}
        storage.discard(1)
        assert storage.commits_begun() == {2}

    def test_a_commit_can_be_repeated(self, storage: CheckpointStorage) -> None:
        for _ in range(2):
            storage.mark_commit_begun(1)
            storage.mark_committed(1)
        assert storage.commits_begun() == {1}

    def test_every_number_is_seen(self, storage: CheckpointStorage) -> None:
        assert storage.seen_ids() == frozenset()
        storage.write_metadata(metadata(4))
        assert storage.seen_ids() == {4}


class TestFiles:
    def test_layout(self, files: FileCheckpointStorage, tmp_path: Path) -> None:
        files.writer(3, 2).write("list", b"x" * 5)
        files.writer(3, 2).write("keys", b"x" * 5, shared=True)
        assert files.write_metadata(metadata(3)) == f"{tmp_path}/{JOB_ID}/chk-3"
        job = tmp_path / JOB_ID
        found = {str(path.relative_to(job)) for path in job.rglob("*") if path.is_file()}
        assert found == {"chk-3/_metadata", "chk-3/2-list", "shared/2-3-keys"}

    def test_only_metadata_makes_a_checkpoint_visible(self, files: FileCheckpointStorage) -> None:
        files.writer(1, 1).write("list", b"x" * 5)
        files.write_metadata(metadata(2))
        assert files.completed_ids() == [2]
        assert files.seen_ids() == {1, 2}

    def test_numbers_are_also_seen_in_shared_files(self, files: FileCheckpointStorage) -> None:
        files.writer(9, 1).write("keys", b"x" * 5, shared=True)
        assert files.seen_ids() == {9}

    def test_a_checkpoint_is_made_visible_once(self, files: FileCheckpointStorage) -> None:
        files.write_metadata(metadata(1))
        with pytest.raises(StorageError, match=r"chk-1/_metadata exists already: another driver"):
            files.write_metadata(metadata(1))

    def test_one_that_an_earlier_attempt_completed_late_is_replaced(self, files: FileCheckpointStorage) -> None:
        later = msgspec.structs.replace(metadata(1), attempt=2)
        files.write_metadata(metadata(1))
        files.write_metadata(later)
        assert files.read_metadata(1) == later
        with pytest.raises(StorageError, match=r"chk-1/_metadata exists already: another driver"):
            files.write_metadata(metadata(1))
        assert files.read_metadata(1) == later

    def test_one_whose_rows_may_be_published_is_not_replaced(self, files: FileCheckpointStorage) -> None:
        files.write_metadata(metadata(1))
        files.mark_commit_begun(1)
        with pytest.raises(StorageError, match=r"chk-1/_metadata exists already: another driver"):
            files.write_metadata(msgspec.structs.replace(metadata(1), attempt=2))

    def test_metadata_of_another_checkpoint_is_damage(self, files: FileCheckpointStorage, tmp_path: Path) -> None:
        files.write_metadata(metadata(1))
        (tmp_path / JOB_ID / "chk-2").mkdir()
        (tmp_path / JOB_ID / "chk-1/_metadata").rename(tmp_path / JOB_ID / "chk-2/_metadata")
        with pytest.raises(CorruptFileError, match=r"chk-2/_metadata: this is the metadata of checkpoint 1"):
            files.read_metadata(2)

    def test_a_discarded_checkpoint_leaves_no_folder(self, files: FileCheckpointStorage, tmp_path: Path) -> None:
        files.write_metadata(metadata(1))
        files.mark_commit_begun(1)
        files.discard(1)
        assert list((tmp_path / JOB_ID).iterdir()) == []

    @pytest.mark.parametrize("content", [b"", b"\xff" * 30])
    def test_a_damaged_record_of_a_commit_counts(
        self, files: FileCheckpointStorage, tmp_path: Path, content: bytes
    ) -> None:
        files.mark_commit_begun(1)
        (tmp_path / JOB_ID / "chk-1/_committing").write_bytes(content)
        assert files.commits_begun() == {1}

    @pytest.mark.parametrize("shared", [False, True])
    @pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: b"y" + data[1:], lambda data: None])
    def test_verification_names_the_damaged_file(
        self, files: FileCheckpointStorage, tmp_path: Path, shared: bool, damage: object
    ) -> None:
        handles = [files.writer(1, 1).write(f"name{number}", b"x" * 50, shared) for number in range(10)]
        checkpoint = metadata(1, [record(subtasks=[snapshot(n, operator_state=h) for n, h in enumerate(handles)])])
        files.verify(checkpoint)
        victim = tmp_path / JOB_ID / handles[6].path
        content = damage(victim.read_bytes())  # type: ignore[operator]  # a callable
        if content is None:
            victim.unlink()
        else:
            victim.write_bytes(content)
        with pytest.raises(CorruptFileError) as caught:
            files.verify(checkpoint)
        assert caught.value.path == str(victim)

    def test_files_of_one_checkpoint_of_one_attempt(self, files: FileCheckpointStorage, tmp_path: Path) -> None:
        wanted = {files.writer(3, 2).write("a", b"x" * 5, shared).path for shared in (False, True)}
        unfinished = temporary_path("shared/2-3-b")
        (tmp_path / JOB_ID / unfinished).write_bytes(b"half")
        for checkpoint, attempt in ((3, 1), (4, 2), (2, 3)):
            files.writer(checkpoint, attempt).write("a", b"x" * 5, shared=True)
        assert files.paths_of(FileOrigin(attempt=2, checkpoint_id=3)) == wanted | {unfinished}

    def test_deleting_removes_empty_folders(self, files: FileCheckpointStorage, tmp_path: Path) -> None:
        own = files.writer(3, 2).write("a", b"x" * 5).path
        files.writer(4, 2).write("a", b"x" * 5)
        assert files.delete_paths([own, "chk-4/2-absent"]) == set()
        assert sorted(path.name for path in (tmp_path / JOB_ID).iterdir()) == ["chk-4"]

    def test_what_cannot_be_deleted_is_given_back(self, files: FileCheckpointStorage, tmp_path: Path) -> None:
        (tmp_path / JOB_ID / "shared/1-1-folder").mkdir(parents=True)
        assert files.delete_paths(["shared/1-1-folder"]) == {"shared/1-1-folder"}

    def test_a_directory_that_cannot_be_used(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(StorageError, match="a file is where a directory is expected"):
            FileCheckpointStorage(str(tmp_path / "file"), JOB_ID).write_metadata(metadata(1))


class TestMemory:
    def test_a_file_is_no_part_of_it(self) -> None:
        with pytest.raises(CheckpointError, match="chk-1/1-x cannot be part"):
            MemoryCheckpointStorage().write_metadata(
                metadata(1, [record(subtasks=[snapshot(operator_state=handle("chk-1/1-x"))])])
            )

    def test_the_limit_is_per_handle(self) -> None:
        writer = MemoryCheckpointStorage(limit=10).writer(1, 1)
        writer.write("a", b"x" * 10)
        writer.write("b", b"x" * 10)
        with pytest.raises(CheckpointError, match="c has 11 bytes"):
            writer.write("c", b"x" * 11)


class TestOpening:
    @pytest.mark.parametrize("suffix", ["", "/", "/_metadata"])
    @pytest.mark.parametrize("prefix", ["", "file://"])
    def test_by_folder_or_metadata_file(
        self, files: FileCheckpointStorage, tmp_path: Path, prefix: str, suffix: str
    ) -> None:
        stored = files.writer(3, 1).write("keys", b"x" * 50, shared=True)
        written = metadata(3, [record(subtasks=[snapshot(operator_state=stored)])])
        files.write_metadata(written)
        found, reader = open_snapshot(f"{prefix}{tmp_path}/{JOB_ID}/chk-3{suffix}")
        assert found == written
        assert reader.read(stored) == b"x" * 50

    def test_a_relocatable_snapshot_is_read_from_its_own_folder(self, tmp_path: Path) -> None:
        files = FileCheckpointStorage(str(tmp_path), JOB_ID)
        files.write_metadata(metadata(3, properties={"relocatable": True}))
        target = tmp_path / "elsewhere"
        (tmp_path / JOB_ID / "chk-3").rename(target)
        (target / "data").write_bytes(b"content")
        _, reader = open_snapshot(str(target))
        assert reader.read_range(handle("data", 7), 0, 7) == b"content"

    def test_what_is_no_checkpoint(self, tmp_path: Path) -> None:
        with pytest.raises(CheckpointError, match=r"is not a completed checkpoint or savepoint: .*chk-9/_metadata"):
            open_snapshot(str(tmp_path / JOB_ID / "chk-9"))

    def test_a_damaged_one_names_the_file(self, files: FileCheckpointStorage, tmp_path: Path) -> None:
        files.write_metadata(metadata(3))
        (tmp_path / JOB_ID / "chk-3/_metadata").write_bytes(b"something else")
        with pytest.raises(CorruptFileError, match=r"chk-3/_metadata: the header is damaged"):
            open_snapshot(str(tmp_path / JOB_ID / "chk-3"))
