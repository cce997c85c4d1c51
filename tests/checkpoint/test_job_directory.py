from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest
from pyarrow import fs

from holdfast.checkpoint import lease
from holdfast.checkpoint.attempt_files import AttemptFiles
from holdfast.checkpoint.completed import CompletedCheckpoint
from holdfast.checkpoint.driver_record import DriverRecord
from holdfast.checkpoint.job_directory import JobDirectory
from holdfast.checkpoint.job_end import JobEnd
from holdfast.errors import ConfigurationError, JobLockedError, LeadershipLostError, StorageError
from holdfast.storage.filesystem import Storage
from holdfast.storage.remote import ArrowStorage
from tests.checkpoint.samples import metadata

HOLDER = """
import sys, time
from holdfast.checkpoint.job_directory import JobDirectory
directory = JobDirectory(sys.argv[1], "job")
directory.lock()
print("locked", flush=True)
time.sleep(600)
"""


def start_holder(root: Path) -> subprocess.Popen[str]:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(root)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "locked\n"
    return holder


class TestLock:
    def test_a_second_driver_is_told_who_the_first_is(self, tmp_path: Path) -> None:
        holder = start_holder(tmp_path)
        try:
            with pytest.raises(
                JobLockedError, match=rf"another driver runs job job in .*process {holder.pid} on .* since 20"
            ):
                JobDirectory(str(tmp_path), "job").lock()
        finally:
            holder.kill()
            holder.wait()

    def test_a_driver_that_was_killed_leaves_no_lock(self, tmp_path: Path) -> None:
        holder = start_holder(tmp_path)
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        with JobDirectory(str(tmp_path), "job"):
            owner = json.loads((tmp_path / "job/lock").read_text())
        assert owner["pid"] == os.getpid()

    def test_one_process_excludes_itself(self, tmp_path: Path) -> None:
        with JobDirectory(str(tmp_path), "job") as first:
            first.lock()  # the owner may ask again
            with pytest.raises(JobLockedError):
                JobDirectory(str(tmp_path), "job").lock()
            JobDirectory(str(tmp_path), "other").lock()
        second = JobDirectory(str(tmp_path), "job")
        second.lock()
        second.unlock()
        second.unlock()

    @pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}'])
    def test_a_strange_lock_file_still_locks(self, tmp_path: Path, content: str) -> None:
        with JobDirectory(str(tmp_path), "job"):
            (tmp_path / "job/lock").write_text(content)
            with pytest.raises(JobLockedError, match="its process is unknown"):
                JobDirectory(str(tmp_path), "job").lock()

    def test_a_directory_that_cannot_be_used_names_the_setting(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(StorageError, match=r"file/job.*execution\.checkpointing\.dir"):
            JobDirectory(str(tmp_path / "file"), "job").lock()

    def test_where_nothing_locks_a_record_does(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def connect(uri: str) -> ArrowStorage:
            return ArrowStorage(uri, fs.LocalFileSystem(), str(tmp_path), atomic_rename=False)

        monkeypatch.setattr(ArrowStorage, "connect", connect)
        monkeypatch.setattr(lease, "_SETTLE_SECONDS", 0.0)
        with JobDirectory("s3://bucket/checkpoints", "job") as directory:
            with pytest.raises(JobLockedError, match="another driver runs job job in s3://bucket/checkpoints/job"):
                JobDirectory("s3://bucket/checkpoints", "job").lock()
            assert [directory.next_attempt(), directory.next_attempt()] == [1, 2]
        with JobDirectory("s3://bucket/checkpoints", "job"):
            pass

    def test_a_driver_notices_that_its_lock_file_is_another_one(self, tmp_path: Path) -> None:
        with JobDirectory(str(tmp_path), "job") as directory:
            directory.check_locked()
            (tmp_path / "job/lock").unlink()
            with pytest.raises(LeadershipLostError, match="job/lock is not the file that it locked"):
                directory.check_locked()
        with pytest.raises(LeadershipLostError, match="does not hold the lock"):
            directory.check_locked()

    @pytest.mark.parametrize("job_id", ["", "a/b", "..", ".hidden"])
    def test_a_job_id_is_a_folder(self, tmp_path: Path, job_id: str) -> None:
        with pytest.raises(ConfigurationError, match="name that can be a folder"):
            JobDirectory(str(tmp_path), job_id)


class TestAttempts:
    def test_numbers_grow_over_drivers(self, tmp_path: Path) -> None:
        numbers = []
        for _ in range(3):
            with JobDirectory(str(tmp_path), "job") as directory:
                numbers.append(directory.next_attempt())
        assert numbers == [1, 2, 3]

    def test_a_lock_under_which_nothing_began_takes_no_number(self, tmp_path: Path) -> None:
        for _ in range(2):
            with JobDirectory(str(tmp_path), "job"):
                pass
        assert JobDirectory(str(tmp_path), "job").last_attempt() == 0

    def test_numbers_grow_although_old_ones_are_forgotten(self, tmp_path: Path) -> None:
        with JobDirectory(str(tmp_path), "job") as directory:
            assert [directory.next_attempt() for _ in range(40)] == list(range(1, 41))
        assert len(list((tmp_path / "job/attempts").iterdir())) < 20

    def test_no_number_is_given_twice(self, tmp_path: Path) -> None:
        numbers: list[int] = []

        def take() -> None:
            directory = JobDirectory(str(tmp_path), "job")
            numbers.extend(number for number in range(1, 11) if directory.record_attempt(number))

        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(numbers) == list(range(1, 11))


class TestEnd:
    def test_a_job_that_runs_has_none(self, tmp_path: Path) -> None:
        with JobDirectory(str(tmp_path), "job") as directory:
            directory.next_attempt()
            assert directory.read_end() is None

    def test_it_is_recorded_for_every_driver_after(self, tmp_path: Path) -> None:
        end = JobEnd.now("FINISHED")
        JobDirectory(str(tmp_path), "job").record_end(end)
        assert JobDirectory(str(tmp_path), "other").read_end() is None
        directory = JobDirectory(str(tmp_path), "job")
        assert directory.read_end() == end
        told = str(directory.refusal(end))
        assert re.search(rf"job job has ended before \(FINISHED at 20.*delete {tmp_path}/job ", told)

    @pytest.mark.parametrize("content", [b"", b"{}", b"\xff"])
    def test_a_strange_record_counts(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "job").mkdir()
        (tmp_path / "job/ended").write_bytes(content)
        directory = JobDirectory(str(tmp_path), "job")
        end = directory.read_end(newest_checkpoint=8)
        assert end is not None and end.published
        assert "it is not known how" in str(directory.refusal(end))

    def test_it_goes_on_from_the_savepoint_that_it_ended_with_and_from_no_other(self, tmp_path: Path) -> None:
        stopped = msgspec.structs.replace(metadata(7), job_id="job")
        end = JobEnd.now("FINISHED", CompletedCheckpoint(stopped, "/savepoints/savepoint-job-1"))
        directory = JobDirectory(str(tmp_path), "job")
        directory.record_end(end)
        # A driver that died took one of the same number.
        others = metadata(7), *(msgspec.structs.replace(stopped, **{name: 6}) for name in ("checkpoint_id", "attempt"))
        assert not any(end.is_with(other, "job") for other in others)
        assert end.is_with(stopped, "job")
        assert re.search(r"state-recovery\.path: /savepoints/savepoint-job-1", str(directory.refusal(end)))
        assert directory.read_end(7) == end, "what it let go of when it ended"
        assert directory.read_end(8) is None, "it went on, and this is from behind the savepoint"
        directory.forget_end()
        assert directory.read_end() is None

    @pytest.mark.parametrize(
        ("attempt", "restored", "holds"),
        [
            pytest.param(3, 6, False, id="a-later-attempt-went-on"),
            pytest.param(3, 7, True, id="a-later-attempt-took-the-end-up"),
            pytest.param(3, 0, True, id="a-later-attempt-began-from-the-savepoint"),
            pytest.param(3, None, True, id="a-later-attempt-did-nothing"),
            pytest.param(2, 6, True, id="its-own-attempt"),
        ],
    )
    def test_one_that_was_recorded_behind_another_driver_does_not_count(
        self, tmp_path: Path, attempt: int, restored: int | None, holds: bool
    ) -> None:
        """Between its look at its lease and the record a driver can hang for any time."""
        directory = JobDirectory(str(tmp_path), "job")
        savepoint = CompletedCheckpoint(metadata(7), "/savepoints/savepoint-job-1")
        directory.record_end(JobEnd.now("FINISHED", savepoint, attempt=2))
        record = lease.LeaseRecord(DriverRecord.of_this_process(leased=True), 1_000, restored=restored)
        assert AttemptFiles(Storage.for_uri(str(tmp_path)).child("job")).create(attempt, record.encode())
        assert (directory.read_end() is not None) is holds
        directory.forget_overtaken_end()
        assert (tmp_path / "job/ended").exists() is holds
