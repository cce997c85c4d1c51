"""The lease of a driver on a storage that fails, loses answers, or replaces a file in two steps."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyarrow import fs

from holdfast.checkpoint import lease
from holdfast.checkpoint.driver_record import DriverRecord
from holdfast.checkpoint.job_lock import JobLock
from holdfast.checkpoint.lease import LeaseRecord
from holdfast.errors import JobLockedError, LeadershipLostError, StorageError
from holdfast.storage.filesystem import Storage
from holdfast.storage.local import LocalStorage
from holdfast.storage.remote import ArrowStorage
from holdfast.testing.clock import ManualClock
from holdfast.types.settings import LeaseSettings

QUICK = LeaseSettings(interval_ms=100, timeout_ms=300)
#: Nothing happens by itself in the time of a test.
CALM = LeaseSettings(interval_ms=60_000, timeout_ms=180_000)


@pytest.fixture(autouse=True)
def settles_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "_SETTLE_SECONDS", 0.0)


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(str(tmp_path))


@pytest.fixture
def without_exclusion(tmp_path: Path) -> ArrowStorage:
    """As HDFS by libhdfs."""
    return ArrowStorage("hdfs://service/job", fs.LocalFileSystem(), str(tmp_path), atomic_rename=True)


@pytest.fixture
def led(request: pytest.FixtureRequest) -> Callable[[Storage], JobLock]:
    def acquire(storage: Storage, settings: LeaseSettings = CALM) -> JobLock:
        lock = JobLock(storage, "job", settings)
        request.addfinalizer(lock.release)
        lock.acquire(None)
        assert lock.lease.next_attempt() == 1
        return lock

    return acquire


def read(root: Path, number: int) -> LeaseRecord:
    found = LeaseRecord.decode((root / f"attempts/{number}").read_bytes())
    assert found is not None
    return found


def rival(root: Path, number: int) -> bytes:
    """Leave the lease of a driver on another host."""
    driver = msgspec.structs.replace(DriverRecord.of_this_process(leased=True), host="elsewhere", boot="another start")
    content = LeaseRecord(driver, 300).encode()
    (root / f"attempts/{number}").write_bytes(content)
    return content


def fail(*arguments: Any) -> Any:
    raise StorageError("a hiccup")


def carry_out_and_fail(action: Callable[..., Any]) -> Callable[..., Any]:
    """As when the request arrives and the answer does not."""

    def act(*arguments: Any) -> Any:
        action(*arguments)
        raise StorageError("the answer is lost")

    return act


class TestLostAnswers:
    @pytest.mark.parametrize("action", ["list", "delete"])
    def test_an_attempt_begins_although_old_ones_cannot_be_forgotten(
        self, storage: LocalStorage, led: Any, action: str, monkeypatch: pytest.MonkeyPatch, caplog: Any
    ) -> None:
        lock = led(storage)
        for number in range(2, 18):
            assert lock.lease.next_attempt() == number
        create = storage.create_exclusive

        def fail_from_now_on(*arguments: Any) -> bool:
            monkeypatch.setattr(storage, action, fail)
            return create(*arguments)

        monkeypatch.setattr(storage, "create_exclusive", fail_from_now_on)
        assert lock.lease.next_attempt() == 18
        assert "stay behind until the next attempt: a hiccup" in caplog.text
        monkeypatch.undo()
        lock.check()
        assert lock.lease.next_attempt() == 19

    @pytest.mark.parametrize("answer", ["lost", "refused"])
    def test_a_creation_of_its_own_is_known_again(
        self, storage: LocalStorage, led: Any, answer: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lock, create = led(storage), storage.create_exclusive
        wrong = carry_out_and_fail(create) if answer == "lost" else lambda *arguments: not create(*arguments)
        monkeypatch.setattr(storage, "create_exclusive", wrong)
        assert lock.lease.next_attempt() == 2
        monkeypatch.undo()
        lock.check()
        assert lock.lease.next_attempt() == 3

    def test_a_job_is_taken_although_the_answer_is_lost(
        self, storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(storage, "create_exclusive", carry_out_and_fail(storage.create_exclusive))
        lock = JobLock(storage, "job", CALM)
        lock.acquire(None)
        assert lock.lease.next_attempt() == 1
        lock.release()

    def test_a_creation_that_was_not_carried_out_fails_and_can_be_repeated(
        self, storage: LocalStorage, led: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lock = led(storage)
        monkeypatch.setattr(storage, "create_exclusive", fail)
        with pytest.raises(StorageError, match="a hiccup"):
            lock.lease.next_attempt()
        monkeypatch.undo()
        assert lock.lease.next_attempt() == 2

    def test_that_of_another_driver_is_none_of_its_own(
        self, storage: LocalStorage, led: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lock = led(storage)

        def overtake(*arguments: Any) -> bool:
            rival(tmp_path, 2)
            raise StorageError("a hiccup")

        monkeypatch.setattr(storage, "create_exclusive", overtake)
        with pytest.raises(StorageError, match="a hiccup"):
            lock.lease.next_attempt()
        with pytest.raises(LeadershipLostError, match="is in attempt 2, and this driver began attempt 1"):
            lock.check()

    @pytest.fixture
    def untold(self, storage: LocalStorage, led: Any, monkeypatch: pytest.MonkeyPatch) -> JobLock:
        """Attempt 2 is that of this driver, which could not learn so."""
        lock: JobLock = led(storage)
        lock.lease.begin_from(7)
        monkeypatch.setattr(storage, "create_exclusive", carry_out_and_fail(storage.create_exclusive))
        monkeypatch.setattr(storage, "read", fail)
        with pytest.raises(StorageError, match="the answer is lost"):
            lock.lease.next_attempt()
        monkeypatch.undo()
        return lock

    def test_the_next_beat_takes_the_number_over(self, untold: JobLock, tmp_path: Path) -> None:
        untold.lease._renew_once()
        assert read(tmp_path, 1).restored == 7
        # What attempt 1 began from is nothing of attempt 2: checkpoints of the first would not count any more.
        assert (read(tmp_path, 2).restored, read(tmp_path, 2).beat) == (None, 2)
        untold.check()
        assert untold.lease.next_attempt() == 3

    def test_a_look_takes_it_over(self, untold: JobLock) -> None:
        untold.check()
        assert not untold.lease.in_doubt
        assert untold.lease.next_attempt() == 3

    def test_its_end_is_recorded_where_others_look(self, untold: JobLock, tmp_path: Path) -> None:
        untold.release()
        assert read(tmp_path, 2).released and read(tmp_path, 2).restored is None


class TestReplacedInTwoSteps:
    @pytest.fixture
    def replacing(self, without_exclusion: ArrowStorage, tmp_path: Path) -> Iterator[tuple[threading.Event, list[str]]]:
        """Set while a file that is replaced is missing, and the files that were written."""
        missing, written = threading.Event(), list[str]()
        write = without_exclusion.write_atomic

        def in_two_steps(path: str, data: bytes) -> None:
            (tmp_path / path).unlink(missing_ok=True)
            missing.set()
            time.sleep(0.3)
            missing.clear()
            write(path, data)
            written.append(path)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(without_exclusion, "write_atomic", in_two_steps)
            yield missing, written

    def test_a_look_during_a_renewal_is_no_loss(
        self, without_exclusion: ArrowStorage, led: Any, replacing: tuple[threading.Event, list[str]]
    ) -> None:
        missing, written = replacing
        lock = led(without_exclusion)
        assert lock.lease.next_attempt() == 2
        missing.clear()
        written.clear()
        beat = threading.Thread(target=lock.lease._renew_once)
        beat.start()
        assert missing.wait(5)
        lock.check()
        beat.join()
        # It waited for the renewal and found the file: it did not have to write it once more.
        assert written == ["attempts/2"]
        lock.check()

    @pytest.mark.parametrize("kind", ["storage", "without_exclusion"])
    def test_a_file_that_is_not_listed_is_written_again(
        self, kind: str, led: Any, tmp_path: Path, request: pytest.FixtureRequest
    ) -> None:
        lock = led(request.getfixturevalue(kind))
        assert lock.lease.next_attempt() == 2
        (tmp_path / "attempts/2").unlink()
        lock.check()
        assert read(tmp_path, 2).beat == 1
        assert lock.lease.next_attempt() == 3

    def test_a_listing_that_stays_behind_is_an_error_and_no_loss(
        self, storage: LocalStorage, led: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lock = led(storage)
        assert lock.lease.next_attempt() == 2
        old = [entry for entry in storage.list("attempts") if entry.name == "1"]
        monkeypatch.setattr(storage, "list", lambda *arguments: old)
        with pytest.raises(StorageError, match=r"attempt 2 of job job .* is not among the files there; expected"):
            lock.check()
        monkeypatch.undo()
        lock.check()


class TestWithoutExclusiveCreation:
    """Two drivers may have the same number, and the file holds the record of the one that wrote last."""

    @pytest.mark.parametrize("act", [lambda lock: lock.lease._renew_once(), lambda lock: lock.check()])
    def test_the_record_of_another_driver_is_left_alone(
        self, without_exclusion: ArrowStorage, led: Any, tmp_path: Path, act: Callable[[JobLock], None]
    ) -> None:
        lock = led(without_exclusion)
        theirs = rival(tmp_path, 1)
        with pytest.raises(LeadershipLostError, match=r"attempt 1 is that of another driver \(process .* on elsewhere"):
            act(lock)
        lock.release()
        assert (tmp_path / "attempts/1").read_bytes() == theirs

    def test_an_end_in_order_leaves_it_alone_too(
        self, without_exclusion: ArrowStorage, led: Any, tmp_path: Path
    ) -> None:
        lock = led(without_exclusion)
        theirs = rival(tmp_path, 1)
        lock.release()
        assert (tmp_path / "attempts/1").read_bytes() == theirs

    def test_the_next_attempt_waits_for_one_that_found_the_name_free_too(
        self, without_exclusion: ArrowStorage, led: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lock, create = led(without_exclusion), without_exclusion.create_exclusive
        monkeypatch.setattr(lease, "_SETTLE_SECONDS", 0.5)

        def with_another(path: str, data: bytes) -> bool:
            threading.Timer(0.1, rival, (tmp_path, 2)).start()
            return create(path, data)

        monkeypatch.setattr(without_exclusion, "create_exclusive", with_another)
        with pytest.raises(LeadershipLostError, match="attempt 2 is that of another driver"):
            lock.lease.next_attempt()


class TestHeartbeat:
    @pytest.mark.parametrize("error", [http.client.IncompleteRead(b""), ValueError("no JSON"), StorageError("away")])
    def test_it_goes_on_behind_any_failure(
        self, storage: LocalStorage, led: Any, tmp_path: Path, error: Exception, monkeypatch: Any, caplog: Any
    ) -> None:
        failed, write = threading.Event(), storage.write_atomic
        led(storage, QUICK)

        def fail_once(path: str, data: bytes) -> None:
            if not failed.is_set():
                failed.set()
                raise error
            write(path, data)

        monkeypatch.setattr(storage, "write_atomic", fail_once)
        assert failed.wait(5)
        before = read(tmp_path, 1).beat
        until = time.monotonic() + 5
        while read(tmp_path, 1).beat == before and time.monotonic() < until:
            time.sleep(0.02)
        assert read(tmp_path, 1).beat > before
        assert "could not be renewed" in caplog.text


class TestProcessThatLives:
    """A process that lives, on an object store, where no lock of the kernel tells."""

    @pytest.fixture
    def remote(self, tmp_path: Path) -> ArrowStorage:
        return ArrowStorage("s3://bucket/job", fs.LocalFileSystem(), str(tmp_path), atomic_rename=False)

    def test_it_gets_its_job_back_behind_an_end_that_failed(
        self, remote: ArrowStorage, led: Any, monkeypatch: pytest.MonkeyPatch, caplog: Any
    ) -> None:
        first = led(remote, QUICK)
        monkeypatch.setattr(remote, "write_atomic", fail)
        first.release()
        assert "is not ended, and others wait for it: a hiccup" in caplog.text
        monkeypatch.undo()
        second, began = JobLock(remote, "job", QUICK), time.monotonic()
        second.acquire(time.sleep)
        assert time.monotonic() - began >= 0.3
        assert second.lease.next_attempt() == 2
        second.release()

    def test_it_is_refused_while_it_renews_its_lease(self, remote: ArrowStorage, led: Any) -> None:
        led(remote, QUICK)
        with pytest.raises(JobLockedError, match="another driver runs job job"):
            JobLock(remote, "job", QUICK).acquire(time.sleep)


class TestWatch:
    """The watcher's clock goes on with pauses and with what the storage takes."""

    #: The default ones.
    SETTINGS = LeaseSettings(interval_ms=5_000, timeout_ms=15_000)

    @pytest.fixture
    def clock(self, monkeypatch: pytest.MonkeyPatch) -> ManualClock:
        clock = ManualClock()
        monkeypatch.setattr(lease, "_now", lambda: clock() / 1000)
        return clock

    @pytest.fixture
    def watcher(self, storage: LocalStorage, tmp_path: Path) -> Iterator[JobLock]:
        """A lock of a job that a driver on another host has."""
        (tmp_path / "attempts").mkdir()
        rival(tmp_path, 1)
        lock = JobLock(storage, "job", self.SETTINGS)
        yield lock
        lock.release()

    @pytest.mark.parametrize("answer_ms", [0, 500, 1_000, 2_000])
    def test_a_storage_that_answers_slowly_does_not_make_it_longer(
        self, storage: LocalStorage, watcher: JobLock, clock: ManualClock, answer_ms: int, monkeypatch: Any
    ) -> None:
        read = storage.read

        def read_slowly(path: str) -> bytes:
            clock.advance(answer_ms)
            return read(path)

        monkeypatch.setattr(storage, "read", read_slowly)
        begun = clock()
        watcher.acquire(lambda seconds: clock.advance(round(seconds * 1000)))
        assert 15_000 <= clock() - begun <= 15_000 + 3 * answer_ms + 1_000

    @pytest.mark.parametrize("looks", [{0}, {1}, {2}, {3}, {4}, {0, 1, 2, 3}], ids=str)
    @pytest.mark.parametrize("inside", ["pause", "read"])
    def test_a_driver_that_was_frozen_with_its_watcher_has_time_for_its_next_beat(
        self, storage: LocalStorage, watcher: JobLock, clock: ManualClock, looks: Any, inside: str, monkeypatch: Any
    ) -> None:
        """As when their host was suspended for an hour: neither knows of it."""
        awake, read, left = 0.0, storage.read, set(looks)

        def freeze(where: str) -> None:
            if where == inside and int(awake) in left:
                left.remove(int(awake))
                clock.advance(3_600_000)

        def pause(seconds: float) -> None:
            nonlocal awake
            freeze("pause")
            awake += seconds
            clock.advance(round(seconds * 1000))
            if awake >= 5:
                storage.write_atomic("attempts/1", b"the next beat")

        def read_frozen(path: str) -> bytes:
            freeze("read")
            return read(path)

        monkeypatch.setattr(storage, "read", read_frozen)
        with pytest.raises(JobLockedError, match="another driver runs job job"):
            watcher.acquire(pause)
        assert not left
