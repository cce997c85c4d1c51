"""One contract of the stores of completed checkpoints, run on each of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.checkpoint.completed import CompletedCheckpoint
from holdfast.checkpoint.completed_store import (
    CompletedCheckpointStore,
    FileCompletedCheckpointStore,
    MemoryCompletedCheckpointStore,
)
from holdfast.checkpoint.storage import CheckpointStorage, FileCheckpointStorage, MemoryCheckpointStorage
from holdfast.errors import ConfigurationError, StorageError
from tests.checkpoint.samples import JOB_ID, metadata

Opened = tuple[CheckpointStorage, CompletedCheckpointStore]


@pytest.fixture(params=["file", "memory"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[int], Opened]:
    def create(num_retained: int) -> Opened:
        if request.param == "file":
            files = FileCheckpointStorage(str(tmp_path), JOB_ID)
            return files, FileCompletedCheckpointStore(files, num_retained)
        memory = MemoryCheckpointStorage()
        return memory, MemoryCompletedCheckpointStore(memory, num_retained)

    return create


def add(storage: CheckpointStorage, store: CompletedCheckpointStore, number: int) -> list[int]:
    content = metadata(number)
    removed = store.add(CompletedCheckpoint(content, storage.write_metadata(content)))
    return [checkpoint.checkpoint_id for checkpoint in removed]


def ids(store: CompletedCheckpointStore) -> list[int]:
    return [checkpoint.checkpoint_id for checkpoint in store.all()]


class TestContract:
    def test_a_new_store_is_empty(self, open_store: Callable[[int], Opened]) -> None:
        _, store = open_store(1)
        assert (store.all(), store.latest(), store.recover()) == ([], None, [])

    def test_the_newest_are_kept(self, open_store: Callable[[int], Opened]) -> None:
        storage, store = open_store(3)
        removed = [add(storage, store, number) for number in range(1, 6)]
        assert removed == [[], [], [], [1], [2]]
        assert ids(store) == [3, 4, 5]
        latest = store.latest()
        assert latest is not None and latest.metadata == metadata(5)

    def test_one_that_comes_late_is_not_the_newest(self, open_store: Callable[[int], Opened]) -> None:
        storage, store = open_store(2)
        for number in (1, 3):
            add(storage, store, number)
        assert add(storage, store, 2) == [1]
        assert ids(store) == [2, 3]

    def test_remove(self, open_store: Callable[[int], Opened]) -> None:
        storage, store = open_store(3)
        for number in (1, 2, 3):
            add(storage, store, number)
        store.remove(2)
        store.remove(77)
        assert ids(store) == [1, 3]

    def test_a_recovery_finds_the_same(self, open_store: Callable[[int], Opened]) -> None:
        storage, store = open_store(2)
        for number in (1, 2, 3):
            add(storage, store, number)
        before = store.all()
        assert store.recover() == []
        assert store.all() == before

    def test_what_cannot_be_let_go_of_is_tried_again(
        self, open_store: Callable[[int], Opened], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        storage, store = open_store(1)
        add(storage, store, 1)

        def fail(checkpoint_id: int) -> None:
            raise StorageError("not now")

        with monkeypatch.context() as patch:
            patch.setattr(storage, "discard", fail)
            assert add(storage, store, 2) == []
        assert ids(store) == [1, 2]
        assert add(storage, store, 3) == [1, 2]
        assert ids(store) == [3]

    @pytest.mark.parametrize("number", [0, -1])
    def test_at_least_one_is_kept(self, open_store: Callable[[int], Opened], number: int) -> None:
        with pytest.raises(ConfigurationError, match=f"num-retained is {number}"):
            open_store(number)


class TestFiles:
    def files(self, root: Path) -> FileCheckpointStorage:
        return FileCheckpointStorage(str(root), JOB_ID)

    def test_a_new_driver_finds_what_is_visible(self, tmp_path: Path) -> None:
        storage = self.files(tmp_path)
        store = FileCompletedCheckpointStore(storage, 3)
        for number in (2, 10):
            add(storage, store, number)
        storage.writer(11, 1).write("unfinished", b"x" * 100_000)
        again = FileCompletedCheckpointStore(self.files(tmp_path), 3)
        assert ids(again) == [2, 10]
        assert again.all() == store.all()

    def test_removal_is_durable(self, tmp_path: Path) -> None:
        storage = self.files(tmp_path)
        store = FileCompletedCheckpointStore(storage, 1)
        for number in (1, 2):
            add(storage, store, number)
        assert ids(FileCompletedCheckpointStore(self.files(tmp_path), 5)) == [2]

    def test_unreadable_metadata_is_told_and_not_part_of_the_store(self, tmp_path: Path) -> None:
        storage = self.files(tmp_path)
        store = FileCompletedCheckpointStore(storage, 3)
        for number in (1, 2):
            add(storage, store, number)
        (tmp_path / JOB_ID / "chk-2/_metadata").write_bytes(b"?")
        damaged = store.recover()
        assert [entry.checkpoint_id for entry in damaged] == [2]
        assert "chk-2/_metadata" in str(damaged[0].error)
        assert ids(store) == [1]
