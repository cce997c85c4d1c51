"""One driver at a time: the lock file of a local directory, and the record where the file system locks nothing."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyarrow import fs

from holdfast.checkpoint import driver_record, lease
from holdfast.checkpoint.driver_record import DriverFate, DriverRecord
from holdfast.checkpoint.job_lock import JobLock
from holdfast.checkpoint.lease import LeaseRecord
from holdfast.errors import JobLockedError, LeadershipLostError, StorageError
from holdfast.storage.filesystem import Storage
from holdfast.storage.local import LocalStorage
from holdfast.storage.remote import ArrowStorage
from holdfast.types.settings import LeaseSettings

HOLDER = """
import sys, time
from pyarrow import fs
from holdfast.checkpoint.job_lock import JobLock
from holdfast.storage.remote import ArrowStorage
from holdfast.types.settings import LeaseSettings
storage = ArrowStorage("s3://bucket/job", fs.LocalFileSystem(), sys.argv[1], False)
JobLock(storage, "job", LeaseSettings(100, 300)).acquire(time.sleep)
print("locked", flush=True)
time.sleep(600)
"""
ANOTHER_HOST = {"host": "elsewhere", "boot": "another start", "machine": "another machine"}
QUICK = LeaseSettings(interval_ms=100, timeout_ms=300)


@pytest.fixture(autouse=True)
def settles_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "_SETTLE_SECONDS", 0.0)


class Pauses:
    """What a driver waits for, without waiting."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Pauses:
    """Time goes on with them alone."""
    waited = Pauses()
    monkeypatch.setattr(lease, "_now", lambda: waited.seconds)
    return waited


def remote(root: Path) -> ArrowStorage:
    """A local folder that is reached as an object store is."""
    return ArrowStorage("s3://bucket/job", fs.LocalFileSystem(), str(root), atomic_rename=False)


def lock_of(root: Path) -> JobLock:
    return JobLock(remote(root), "job", QUICK)


def local_lock_of(root: Path) -> JobLock:
    return JobLock(LocalStorage(str(root)), "job", QUICK)


def record(root: Path, **changes: Any) -> DriverRecord:
    """Leave the lock of a driver that is not this process, and knows no leases."""
    left = msgspec.structs.replace(DriverRecord.of_this_process(), **changes)
    (root / "lock").write_bytes(left.encode())
    return left


def leave_lease(root: Path, number: int = 1, **changes: Any) -> DriverRecord:
    """Leave the lease of a driver that is not this process."""
    left = msgspec.structs.replace(DriverRecord.of_this_process(leased=True), **changes)
    (root / "attempts").mkdir(exist_ok=True)
    (root / f"attempts/{number}").write_bytes(LeaseRecord(left, 300).encode())
    return left


@pytest.fixture
def holder(tmp_path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "locked\n"
    return process


def test_a_driver_that_lives_keeps_others_away(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    try:
        with pytest.raises(JobLockedError, match=rf"another driver runs job job .*process {holder.pid} on .* since 20"):
            lock_of(tmp_path).acquire(None)
    finally:
        holder.kill()
        holder.wait()


@pytest.mark.parametrize("waited_for", [True, False], ids=["gone", "zombie"])
def test_a_driver_that_was_killed_on_this_host_is_passed_over_at_once(
    tmp_path: Path, holder: subprocess.Popen[str], caplog: pytest.LogCaptureFixture, waited_for: bool
) -> None:
    os.kill(holder.pid, signal.SIGKILL)
    if waited_for:
        holder.wait()
    else:
        os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)
    lock = lock_of(tmp_path)
    with caplog.at_level(logging.WARNING):
        lock.acquire(None)
    assert f"is gone (process {holder.pid} on " in caplog.text
    # Ignored: it is there.
    assert DriverRecord.decode((tmp_path / "lock").read_bytes()).pid == os.getpid()  # type: ignore[union-attr]
    lock.release()
    holder.wait()


class TestWithoutLeases:
    """The record of a driver of a version that has none."""

    def test_one_that_lives_is_respected(self, tmp_path: Path) -> None:
        record(tmp_path)
        with pytest.raises(JobLockedError, match=rf"another driver runs job job .*process {os.getpid()} on"):
            lock_of(tmp_path).acquire(lambda seconds: None)

    def test_one_of_another_host_must_be_looked_after_by_a_person(self, tmp_path: Path) -> None:
        left = record(tmp_path, **ANOTHER_HOST)
        with pytest.raises(JobLockedError) as caught:
            lock_of(tmp_path).acquire(lambda seconds: None)
        for told in (f"process {left.pid} on elsewhere", "stop it", "another job id", "delete s3://bucket/job/lock"):
            assert told in str(caught.value)
        (tmp_path / "lock").unlink()  # as it was told
        lock = lock_of(tmp_path)
        lock.acquire(None)
        lock.release()

    def test_one_that_is_gone_is_passed_over(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        record(tmp_path, started="1")
        (tmp_path / "attempts").mkdir()
        (tmp_path / "attempts/7").write_bytes(DriverRecord.of_this_process().encode())
        lock = lock_of(tmp_path)
        lock.acquire(None)
        assert "is gone" in caplog.text
        assert lock.lease.next_attempt() == 8
        lock.release()

    @pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"pid": 1}', b"\xff\xfe"])
    def test_a_strange_record_is_one_too(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "lock").write_bytes(content)
        with pytest.raises(JobLockedError, match=r"its process is unknown.*delete s3://bucket/job/lock"):
            lock_of(tmp_path).acquire(lambda seconds: None)

    def test_it_sees_the_record_of_a_driver_that_has_one(self, tmp_path: Path) -> None:
        lock = lock_of(tmp_path)
        lock.acquire(None)
        seen = DriverRecord.decode((tmp_path / "lock").read_bytes())
        assert seen is not None and seen.fate() is DriverFate.ALIVE
        lock.release()
        assert not (tmp_path / "lock").exists()

    def test_on_a_shared_mount_its_lock_is_respected(self, tmp_path: Path) -> None:
        lock = local_lock_of(tmp_path)
        lock.acquire(None)
        record(tmp_path, **ANOTHER_HOST)
        with pytest.raises(JobLockedError, match=r"process .* on elsewhere"):
            local_lock_of(tmp_path).acquire(lambda seconds: None)
        lock.release()


def test_one_process_excludes_itself_until_it_lets_go(tmp_path: Path) -> None:
    first, second = lock_of(tmp_path), lock_of(tmp_path)
    first.acquire(None)
    first.acquire(None)  # the owner may ask again
    with pytest.raises(JobLockedError):
        second.acquire(None)
    second.release()  # not held, so nothing is let go of
    with pytest.raises(JobLockedError):
        second.acquire(None)
    first.release()
    assert not (tmp_path / "lock").exists()
    second.acquire(None)
    second.release()


def test_a_record_that_cannot_be_taken_away_fails_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lock = lock_of(tmp_path)
    lock.acquire(None)

    def delete(self: ArrowStorage, path: str) -> None:
        raise StorageError("the storage is away")

    monkeypatch.setattr(ArrowStorage, "delete", delete)
    lock.release()
    assert "The lock of job job stays behind: the storage is away" in caplog.text
    assert "is not ended, and others wait for it: the storage is away" in caplog.text


class TestKernel:
    def test_the_lock_of_a_container_that_is_gone_is_free_at_once(self, tmp_path: Path) -> None:
        """Its processes cannot be seen from here, but the kernel is the same."""
        leave_lease(tmp_path, host="container", pid_namespace="pid:[1]")
        lock = local_lock_of(tmp_path)
        lock.acquire(None)
        assert lock.lease.next_attempt() == 2
        lock.release()

    def test_a_driver_that_lives_without_its_lock_file_is_watched(self, tmp_path: Path) -> None:
        first, second = local_lock_of(tmp_path), local_lock_of(tmp_path)
        first.acquire(None)
        (tmp_path / "lock").unlink()
        with pytest.raises(JobLockedError, match="another driver runs job job"):
            second.acquire(lambda seconds: first.lease._renew_once())
        with pytest.raises(LeadershipLostError, match="is not the file that it locked"):
            first.check()
        first.release()

    def test_a_lock_that_the_server_keeps_for_a_host_that_is_gone(self, tmp_path: Path, pauses: Pauses) -> None:
        gone = local_lock_of(tmp_path)
        gone.acquire(None)
        gone.lease._ended.set()
        left = leave_lease(tmp_path, **ANOTHER_HOST)
        (tmp_path / "lock").write_bytes(left.encode())
        lock = local_lock_of(tmp_path)
        lock.acquire(pauses)
        assert pauses.seconds == pytest.approx(0.3, abs=0.03)
        lock.check()
        with pytest.raises(LeadershipLostError, match="is not the file that it locked"):
            gone.check()
        assert lock.lease.next_attempt() == 2
        lock.release()
        gone.release()


@pytest.mark.parametrize("storage", [remote, lambda root: LocalStorage(str(root))], ids=["remote", "local"])
class TestLeaseOfAnotherHost:
    def test_it_is_taken_over_when_it_runs_out(
        self, tmp_path: Path, storage: Any, pauses: Pauses, caplog: pytest.LogCaptureFixture
    ) -> None:
        leave_lease(tmp_path, **ANOTHER_HOST)
        lock = JobLock(storage(tmp_path), "job", QUICK)
        with caplog.at_level(logging.WARNING):
            lock.acquire(pauses)
        assert pauses.seconds == pytest.approx(0.3, abs=0.03)
        assert "on elsewhere" in caplog.text and "for 0.3 s" in caplog.text
        assert lock.lease.next_attempt() == 2
        lock.release()

    def test_its_own_timeout_counts_where_it_is_longer(self, tmp_path: Path, storage: Any, pauses: Pauses) -> None:
        left = leave_lease(tmp_path, **ANOTHER_HOST)
        (tmp_path / "attempts/1").write_bytes(LeaseRecord(left, 7_000).encode())
        lock = JobLock(storage(tmp_path), "job", QUICK)
        lock.acquire(pauses)
        assert pauses.seconds == pytest.approx(7)
        lock.release()

    def test_one_that_is_renewed_keeps_its_job(self, tmp_path: Path, storage: Any) -> None:
        left = leave_lease(tmp_path, **ANOTHER_HOST)

        def renew(seconds: float) -> None:
            (tmp_path / "attempts/1").write_bytes(LeaseRecord(left, 300, beat=1).encode())

        with pytest.raises(JobLockedError, match="on elsewhere"):
            JobLock(storage(tmp_path), "job", QUICK).acquire(renew)
        assert not (tmp_path / "attempts/2").exists()

    def test_one_that_ends_in_order_is_not_waited_for(self, tmp_path: Path, storage: Any) -> None:
        left = leave_lease(tmp_path, **ANOTHER_HOST)
        waited: list[float] = []

        def end(seconds: float) -> None:
            waited.append(seconds)
            (tmp_path / "attempts/1").write_bytes(LeaseRecord(left, 300, released=True).encode())

        lock = JobLock(storage(tmp_path), "job", QUICK)
        lock.acquire(end)
        assert len(waited) == 1
        lock.release()

    def test_nobody_waits_who_was_not_told_to(self, tmp_path: Path, storage: Any) -> None:
        leave_lease(tmp_path, **ANOTHER_HOST)
        with pytest.raises(JobLockedError, match="on elsewhere"):
            JobLock(storage(tmp_path), "job", QUICK).acquire(None)

    def test_another_one_took_it_first(self, tmp_path: Path, storage: Any) -> None:
        leave_lease(tmp_path, **ANOTHER_HOST)

        def overtake(seconds: float) -> None:
            leave_lease(tmp_path, 2, pid=1, **ANOTHER_HOST)

        with pytest.raises(JobLockedError, match="process 1 on elsewhere"):
            JobLock(storage(tmp_path), "job", QUICK).acquire(overtake)

    def test_the_one_that_lost_it_does_nothing_more(self, tmp_path: Path, storage: Any) -> None:
        lock = JobLock(storage(tmp_path), "job", LeaseSettings())
        lock.acquire(None)
        assert lock.lease.next_attempt() == 1
        lock.check()
        assert not lock.lease.in_doubt
        leave_lease(tmp_path, 2, **ANOTHER_HOST)
        theirs = (tmp_path / "attempts/2").read_bytes()
        for act in (lock.check, lock.lease.next_attempt, lambda: lock.lease.in_doubt, lock.lease._renew_once):
            with pytest.raises(LeadershipLostError, match="is in attempt 2, and this driver began attempt 1"):
                act()
        lock.release()
        assert (tmp_path / "attempts/2").read_bytes() == theirs
        assert not (tmp_path / "attempts/3").exists()


def test_a_lease_is_renewed_and_ended(tmp_path: Path) -> None:
    lock = local_lock_of(tmp_path)
    lock.acquire(None)
    lock.lease.next_attempt()
    seen = set()
    while len(seen) < 4:
        found = LeaseRecord.decode((tmp_path / "attempts/1").read_bytes())
        assert found is not None and not found.released
        seen.add(found.beat)
    lock.release()
    ended = LeaseRecord.decode((tmp_path / "attempts/1").read_bytes())
    assert ended is not None and ended.released


def test_what_an_attempt_begins_from_is_part_of_its_lease_alone(tmp_path: Path) -> None:
    lock = local_lock_of(tmp_path)
    lock.acquire(None)
    lock.lease.next_attempt()
    lock.lease.begin_from(7)
    lock.lease._renew_once()
    assert lock.lease.next_attempt() == 2
    lock.lease._renew_once()
    lock.release()
    leases = [LeaseRecord.decode((tmp_path / f"attempts/{number}").read_bytes()) for number in (1, 2)]
    assert [lease and lease.restored for lease in leases] == [7, None]


def test_behind_a_pause_a_driver_is_in_doubt_and_renews_before_it_acts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = JobLock(LocalStorage(str(tmp_path)), "job", LeaseSettings())
    lock.acquire(None)
    lock.lease.next_attempt()
    begun = lease._now()
    monkeypatch.setattr(lease, "_now", lambda: begun + 16)
    assert lock.lease.in_doubt
    lock.check()
    renewed = LeaseRecord.decode((tmp_path / "attempts/1").read_bytes())
    assert renewed is not None and renewed.beat == 1
    assert not lock.lease.in_doubt
    lock.release()


RACER = """
import sys, time
from holdfast.checkpoint.job_lock import JobLock
from holdfast.errors import JobLockedError
from holdfast.storage.filesystem import Storage
from holdfast.types.settings import LeaseSettings
storage = Storage.for_uri(sys.argv[1])
storage.exists("nothing")
print("ready", flush=True)
sys.stdin.readline()
lock = JobLock(storage, "job", LeaseSettings(100, 500))
try:
    lock.acquire(time.sleep)
    print("won", lock.lease.next_attempt(), flush=True)
except JobLockedError as error:
    print("lost", error, flush=True)
sys.stdin.readline()
"""


@pytest.mark.slow
@pytest.mark.parametrize("place", ["local", "s3", "gs", "hdfs"])
def test_of_drivers_that_race_for_a_lease_that_ran_out_one_gets_it(
    place: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    uri = str(tmp_path) if place == "local" else f"{request.getfixturevalue(place)}/job"
    storage = Storage.for_uri(uri)
    left = msgspec.structs.replace(DriverRecord.of_this_process(leased=True), **ANOTHER_HOST)
    storage.write_atomic("attempts/4", LeaseRecord(left, 500).encode())
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, uri],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for _ in range(3)
    ]

    def tell(racer: subprocess.Popen[str]) -> None:
        assert racer.stdin is not None
        racer.stdin.write("\n")
        racer.stdin.flush()

    def hear(racer: subprocess.Popen[str]) -> str:
        assert racer.stdout is not None
        return racer.stdout.readline()

    assert [hear(racer) for racer in racers] == ["ready\n"] * 3
    for racer in racers:
        tell(racer)
    answers = [hear(racer) for racer in racers]
    assert [answer for answer in answers if answer.startswith("won")] == ["won 5\n"], answers
    assert sum(answer.startswith("lost another driver runs job job") for answer in answers) == 2
    for racer in racers:
        tell(racer)
        racer.wait(30)


class TestFate:
    def fate(self, **changes: object) -> DriverFate:
        return msgspec.structs.replace(DriverRecord.of_this_process(), **changes).fate()

    def test_this_process_lives(self) -> None:
        assert self.fate() is DriverFate.ALIVE

    def test_a_later_process_of_the_same_number_is_another_one(self) -> None:
        assert self.fate(started="1") is DriverFate.DEAD

    def test_a_container_has_processes_of_its_own(self) -> None:
        assert self.fate(pid_namespace="pid:[1]", started="1") is DriverFate.UNKNOWN

    def test_a_host_that_was_started_anew(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(driver_record, "_machine", lambda: "machine")
        assert self.fate(boot="before") is DriverFate.DEAD
        assert self.fate(boot="before", machine="another") is DriverFate.UNKNOWN
        assert self.fate(boot="before", host="another") is DriverFate.UNKNOWN

    def test_nothing_is_concluded_from_what_is_not_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(driver_record, "_machine", lambda: "")
        assert self.fate(boot="before") is DriverFate.UNKNOWN
        assert self.fate(boot="") is DriverFate.UNKNOWN
        assert self.fate(started="") is DriverFate.UNKNOWN
