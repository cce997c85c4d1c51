"""One driver at a time where the file system locks nothing: a local folder that is reached as an object store is."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from pyarrow import fs

from holdfast.checkpoint import driver_record
from holdfast.checkpoint.driver_record import DriverFate, DriverRecord
from holdfast.checkpoint.job_lock import RecordLock
from holdfast.errors import JobLockedError, LeadershipLostError, StorageError
from holdfast.storage.remote import ArrowStorage

HOLDER = """
import sys, time
from pyarrow import fs
from holdfast.checkpoint.job_lock import RecordLock
from holdfast.storage.remote import ArrowStorage
RecordLock(ArrowStorage("s3://bucket/job", fs.LocalFileSystem(), sys.argv[1], False), "job", lambda s: None).acquire()
print("locked", flush=True)
time.sleep(600)
"""
ANOTHER_HOST = {"host": "elsewhere", "boot": "another start", "machine": "another machine"}


def storage(root: Path) -> ArrowStorage:
    return ArrowStorage("s3://bucket/job", fs.LocalFileSystem(), str(root), atomic_rename=False)


def lock_of(root: Path) -> RecordLock:
    return RecordLock(storage(root), "job", lambda seconds: None)


def record(root: Path, **changes: object) -> DriverRecord:
    """Leave the lock of a driver that is not this process."""
    left = msgspec.structs.replace(DriverRecord.of_this_process(), **changes)
    (root / "lock").write_bytes(left.encode())
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
            lock_of(tmp_path).acquire()
    finally:
        holder.kill()
        holder.wait()


@pytest.mark.parametrize("waited_for", [True, False], ids=["gone", "zombie"])
def test_a_driver_that_was_killed_on_this_host_is_passed_over(
    tmp_path: Path, holder: subprocess.Popen[str], caplog: pytest.LogCaptureFixture, waited_for: bool
) -> None:
    os.kill(holder.pid, signal.SIGKILL)
    if waited_for:
        holder.wait()
    else:
        os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)
    with caplog.at_level(logging.WARNING):
        lock_of(tmp_path).acquire()
    assert f"is gone (process {holder.pid} on " in caplog.text
    # Ignored: it is there.
    assert DriverRecord.decode((tmp_path / "lock").read_bytes()).pid == os.getpid()  # type: ignore[union-attr]
    holder.wait()


def test_a_driver_of_another_host_must_be_looked_after_by_a_person(tmp_path: Path) -> None:
    left = record(tmp_path, **ANOTHER_HOST)
    with pytest.raises(JobLockedError) as caught:
        lock_of(tmp_path).acquire()
    for told in (f"process {left.pid} on elsewhere", "stop it", "another job id", "delete s3://bucket/job/lock"):
        assert told in str(caught.value)
    (tmp_path / "lock").unlink()  # as it was told
    lock_of(tmp_path).acquire()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"pid": 1}', b"\xff\xfe"])
def test_a_strange_lock_is_one_too(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "lock").write_bytes(content)
    with pytest.raises(JobLockedError, match=r"its process is unknown.*delete s3://bucket/job/lock"):
        lock_of(tmp_path).acquire()


def test_one_process_excludes_itself_until_it_lets_go(tmp_path: Path) -> None:
    first, second = lock_of(tmp_path), lock_of(tmp_path)
    first.acquire()
    first.acquire()  # the owner may ask again
    with pytest.raises(JobLockedError):
        second.acquire()
    second.release()  # not held, so nothing is let go of
    with pytest.raises(JobLockedError):
        second.acquire()
    first.release()
    assert not (tmp_path / "lock").exists()
    second.acquire()


def test_a_driver_notices_that_its_lock_was_taken_away(tmp_path: Path) -> None:
    lock = lock_of(tmp_path)
    lock.acquire()
    lock.check()
    (tmp_path / "lock").unlink()
    with pytest.raises(LeadershipLostError, match="it is now that of nobody"):
        lock.check()
    record(tmp_path, pid=1, **ANOTHER_HOST)
    with pytest.raises(LeadershipLostError, match="it is now that of process 1 on elsewhere"):
        lock.check()


def test_of_two_that_begin_in_the_same_moment_one_gives_way(tmp_path: Path) -> None:
    """Both found no lock; the other one writes its record right behind this one."""

    def meanwhile(seconds: float) -> None:
        assert seconds > 0
        record(tmp_path, pid=1, **ANOTHER_HOST)

    lock = RecordLock(storage(tmp_path), "job", meanwhile)
    with pytest.raises(JobLockedError, match="process 1 on elsewhere"):
        lock.acquire()
    lock.release()
    assert (tmp_path / "lock").exists(), "the lock of the other one stays"


def test_a_lock_that_somebody_else_took_is_left_alone(tmp_path: Path) -> None:
    lock = lock_of(tmp_path)
    lock.acquire()
    record(tmp_path, **ANOTHER_HOST)
    lock.release()
    assert (tmp_path / "lock").exists()


def test_a_lock_that_cannot_be_taken_away_fails_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lock = lock_of(tmp_path)
    lock.acquire()

    def delete(self: ArrowStorage, path: str) -> None:
        raise StorageError("the storage is away")

    monkeypatch.setattr(ArrowStorage, "delete", delete)
    lock.release()
    assert "The lock of job job stays behind: the storage is away" in caplog.text


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
