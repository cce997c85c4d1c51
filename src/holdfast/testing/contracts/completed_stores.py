"""What every store of completed checkpoints must do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import pytest

from holdfast.checkpoint.completed import CompletedCheckpoint
from holdfast.checkpoint.completed_store import CompletedCheckpointStore
from holdfast.checkpoint.storage import CheckpointStorage
from holdfast.errors import ConfigurationError, StorageError
from holdfast.state.handles import CheckpointMetadata, SnapshotType

JOB_ID = "job-1"

#: A storage, and the store on top of it that a driver has recovered.
Opened = tuple[CheckpointStorage, CompletedCheckpointStore]


def metadata(checkpoint_id: int) -> CheckpointMetadata:
    """What a checkpoint without operators is."""
    return CheckpointMetadata(
        checkpoint_id=checkpoint_id,
        checkpoint_type=SnapshotType.CHECKPOINT,
        job_id=JOB_ID,
        job_name="a job",
        attempt=1,
        epoch=checkpoint_id * 10,
        trigger_timestamp=1_000,
        completion_timestamp=2_000,
        key_hash="spark-xxhash64-42",
        operators=(),
    )


def add(storage: CheckpointStorage, store: CompletedCheckpointStore, number: int) -> list[int]:
    """Complete a checkpoint as the coordinator does; those that the store has let go of."""
    content = metadata(number)
    removed = store.add(CompletedCheckpoint(content, storage.write_metadata(content)))
    return [checkpoint.checkpoint_id for checkpoint in removed]


def ids_of(store: CompletedCheckpointStore) -> list[int]:
    """The checkpoints that it keeps."""
    return [checkpoint.checkpoint_id for checkpoint in store.all()]


class CompletedStoreContract(ABC):
    """The suite for a store of completed checkpoints. A subclass gives by the fixture ``open_store`` what opens a store
    that retains so many, of the job ``JOB_ID``, in an empty storage.
    """

    @pytest.fixture
    @abstractmethod
    def open_store(self) -> Callable[[int], Opened]:
        """Called with ``num_retained``, once in a test."""

    def test_a_new_store_is_empty(self, open_store: Callable[[int], Opened]) -> None:
        _, store = open_store(1)
        assert (store.all(), store.latest(), store.recover()) == ([], None, [])

    def test_the_newest_are_kept(self, open_store: Callable[[int], Opened]) -> None:
        storage, store = open_store(3)
        removed = [add(storage, store, number) for number in range(1, 6)]
        assert removed == [[], [], [], [1], [2]]
        assert ids_of(store) == [3, 4, 5]
        latest = store.latest()
        assert latest is not None and latest.metadata == metadata(5)

    def test_one_that_comes_late_is_not_the_newest(self, open_store: Callable[[int], Opened]) -> None:
        storage, store = open_store(2)
        for number in (1, 3):
            add(storage, store, number)
        assert add(storage, store, 2) == [1]
        assert ids_of(store) == [2, 3]

    def test_remove(self, open_store: Callable[[int], Opened]) -> None:
        storage, store = open_store(3)
        for number in (1, 2, 3):
            add(storage, store, number)
        store.remove(2)
        store.remove(77)
        assert ids_of(store) == [1, 3]

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
        assert ids_of(store) == [1, 2]
        assert add(storage, store, 3) == [1, 2]
        assert ids_of(store) == [3]

    def test_commits_that_have_begun(self, open_store: Callable[[int], Opened]) -> None:
        storage, store = open_store(2)
        for number in (1, 2):
            add(storage, store, number)
        store.mark_commit_begun(2)
        assert store.commits_begun() == {2}
        store.mark_committed(2)
        assert store.commits_begun() == {2}
        store.recover()
        assert store.commits_begun() == {2}
        assert add(storage, store, 3) == [1]
        assert add(storage, store, 4) == [2]
        assert store.commits_begun() == frozenset()

    @pytest.mark.parametrize("number", [0, -1])
    def test_at_least_one_is_kept(self, open_store: Callable[[int], Opened], number: int) -> None:
        with pytest.raises(ConfigurationError, match=f"num-retained is {number}"):
            open_store(number)
