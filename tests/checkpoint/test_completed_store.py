"""The contract of the stores of completed checkpoints on each of them, and what each does beside it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.checkpoint.attempt_files import AttemptFiles
from holdfast.checkpoint.completed_store import FileCompletedCheckpointStore
from holdfast.checkpoint.driver_record import DriverRecord
from holdfast.checkpoint.job_home import JobHome
from holdfast.checkpoint.lease import LeaseRecord
from holdfast.checkpoint.recovery import select_for_restore
from holdfast.checkpoint.storage import FileCheckpointStorage
from holdfast.errors import CheckpointError, ConfigurationError
from holdfast.storage.filesystem import Storage
from holdfast.testing.contracts import CompletedStoreContract
from holdfast.testing.contracts.completed_stores import JOB_ID, Opened, add, ids_of, metadata
from holdfast.types.settings import CheckpointSettings
from tests.checkpoint.homes import NewDriver, new_driver_of
from tests.kit.zookeeper import ZooKeeperServer


def opened(home: JobHome) -> Opened:
    home.leadership.acquire(time.sleep)
    store = home.services().store
    store.recover()
    return home.storage, store


class TestContract(CompletedStoreContract):
    @pytest.fixture(params=["memory", "directory", "zookeeper"])
    def open_store(self, request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[int], Opened]:
        new_driver = new_driver_of(request.param, request, tmp_path)

        def create(num_retained: int) -> Opened:
            return opened(new_driver(num_retained))

        return create


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
        assert ids_of(again) == [2, 10]
        assert again.all() == store.all()

    def test_removal_is_durable(self, tmp_path: Path) -> None:
        storage = self.files(tmp_path)
        store = FileCompletedCheckpointStore(storage, 1)
        for number in (1, 2):
            add(storage, store, number)
        assert ids_of(FileCompletedCheckpointStore(self.files(tmp_path), 5)) == [2]

    def test_unreadable_metadata_is_told_and_not_part_of_the_store(self, tmp_path: Path) -> None:
        storage = self.files(tmp_path)
        store = FileCompletedCheckpointStore(storage, 3)
        for number in (1, 2):
            add(storage, store, number)
        (tmp_path / JOB_ID / "chk-2/_metadata").write_bytes(b"?")
        damaged = store.recover()
        assert [entry.checkpoint_id for entry in damaged] == [2]
        assert "chk-2/_metadata" in str(damaged[0].error)
        assert ids_of(store) == [1]


class TestOvertaken:
    """Checkpoints 1 and 2 of attempt 1, of which its driver completed the second when another one had its job."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> FileCompletedCheckpointStore:
        storage = FileCheckpointStorage(str(tmp_path), JOB_ID)
        store = FileCompletedCheckpointStore(storage, 3)
        add(storage, store, 1)
        add(storage, store, 2)
        return store

    def begin(self, root: Path, attempt: int, restored: int | None) -> None:
        files = AttemptFiles(Storage.for_uri(str(root)).child(JOB_ID))
        lease = LeaseRecord(DriverRecord.of_this_process(leased=True), 1_000, restored=restored)
        assert files.create(attempt, lease.encode())

    def test_it_does_not_count_and_is_removed(
        self, store: FileCompletedCheckpointStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        self.begin(tmp_path, 2, restored=1)
        storage = FileCheckpointStorage(str(tmp_path), JOB_ID)
        store.recover()
        assert ids_of(store) == [1] and storage.completed_ids() == [1, 2], "whoever only looks removes nothing"
        selected = select_for_restore(storage, store)
        assert selected is not None and selected.checkpoint_id == 1
        assert storage.completed_ids() == [1]
        assert "Checkpoint 2 of attempt 1 does not count and is removed" in caplog.text

    def test_a_job_that_began_anew_has_nothing_of_before(
        self, store: FileCompletedCheckpointStore, tmp_path: Path
    ) -> None:
        self.begin(tmp_path, 2, restored=0)
        store.recover()
        assert ids_of(store) == []

    @pytest.mark.parametrize(("attempt", "restored"), [(2, 2), (2, None), (1, 1)], ids=["from-it", "not-yet", "own"])
    def test_what_was_there_when_the_next_attempt_began_counts(
        self, store: FileCompletedCheckpointStore, tmp_path: Path, attempt: int, restored: int | None
    ) -> None:
        self.begin(tmp_path, attempt, restored)
        store.recover()
        assert ids_of(store) == [1, 2]

    def test_every_later_attempt_is_asked(self, store: FileCompletedCheckpointStore, tmp_path: Path) -> None:
        self.begin(tmp_path, 2, restored=1)
        self.begin(tmp_path, 3, restored=7)
        store.recover()
        assert ids_of(store) == [1]

    def test_attempts_of_a_version_without_leases_say_nothing(
        self, store: FileCompletedCheckpointStore, tmp_path: Path
    ) -> None:
        files = AttemptFiles(Storage.for_uri(str(tmp_path)).child(JOB_ID))
        assert files.create(2, DriverRecord.of_this_process().encode())
        store.recover()
        assert ids_of(store) == [1, 2]

    def test_one_whose_rows_may_be_published_stops_the_job(
        self, store: FileCompletedCheckpointStore, tmp_path: Path
    ) -> None:
        """Nothing is guessed: it cannot be, since its driver looked at its lease ahead of that."""
        store.mark_commit_begun(2)
        self.begin(tmp_path, 2, restored=1)
        storage = FileCheckpointStorage(str(tmp_path), JOB_ID)
        with pytest.raises(CheckpointError, match="rows of checkpoint 2 may have been published"):
            select_for_restore(storage, store)
        assert storage.completed_ids() == [1, 2]


class TestZooKeeper:
    @pytest.fixture
    def new_driver(self, request: pytest.FixtureRequest, tmp_path: Path) -> NewDriver:
        return new_driver_of("zookeeper", request, tmp_path)

    def test_a_new_driver_finds_what_was_completed(self, new_driver: NewDriver) -> None:
        first = new_driver(3)
        storage, store = opened(first)
        for number in (2, 10):
            add(storage, store, number)
        store.mark_commit_begun(10)
        first.leadership.release()
        _, again = opened(new_driver(3))
        assert again.all() == store.all()
        assert again.commits_begun() == {10}

    def test_metadata_without_a_record_is_no_checkpoint_and_is_deleted(self, new_driver: NewDriver) -> None:
        first = new_driver(3)
        storage, store = opened(first)
        ids = first.services().ids
        add(storage, store, ids.next())
        storage.write_metadata(metadata(ids.next()))
        first.leadership.release()
        files, again = opened(new_driver(3))
        assert ids_of(again) == [1]
        assert isinstance(files, FileCheckpointStorage) and files.completed_ids() == [1]

    def test_a_lost_file_of_a_recorded_checkpoint_is_told(self, new_driver: NewDriver, tmp_path: Path) -> None:
        storage, store = opened(new_driver(3))
        for number in (1, 2):
            add(storage, store, number)
        (tmp_path / "chk" / JOB_ID / "chk-2/_metadata").unlink()
        assert [entry.checkpoint_id for entry in store.recover()] == [2]
        assert ids_of(store) == [1]
        store.remove(2)
        assert store.recover() == []

    def test_what_a_job_kept_in_files_is_taken_over(self, new_driver: NewDriver, tmp_path: Path) -> None:
        files = FileCheckpointStorage(str(tmp_path / "chk"), JOB_ID)
        store = FileCompletedCheckpointStore(files, 3)
        for number in (4, 5):
            add(files, store, number)
        store.mark_commit_begun(5)
        home = new_driver(3)
        _, taken_over = opened(home)
        assert taken_over.all() == store.all()
        assert taken_over.commits_begun() == {5}
        assert home.services().ids.next() == 6

    def test_another_directory_is_an_error(
        self, new_driver: NewDriver, zookeeper: ZooKeeperServer, tmp_path: Path
    ) -> None:
        settings = zookeeper.settings(root=f"/{tmp_path.name}")
        home = JobHome.of(JOB_ID, CheckpointSettings(directory=str(tmp_path / "one")), settings)
        storage, store = opened(home)
        add(storage, store, 1)
        home.leadership.release()
        other = JobHome.of(JOB_ID, CheckpointSettings(directory=str(tmp_path / "two")), settings)
        try:
            with pytest.raises(ConfigurationError, match=r"checkpoint 1 .* is in .*one.*Set the directory back"):
                opened(other)
        finally:
            other.leadership.release()
