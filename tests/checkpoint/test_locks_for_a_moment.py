"""A job's directory that is locked only for a moment, behind a driver that died on another host."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from holdfast.checkpoint import lease
from holdfast.checkpoint.claim import SnapshotClaim
from holdfast.checkpoint.completed import CompletedCheckpoint
from holdfast.checkpoint.driver_record import DriverRecord
from holdfast.checkpoint.job_directory import JobDirectory
from holdfast.checkpoint.lease import LeaseRecord
from holdfast.checkpoint.storage import FileCheckpointStorage
from holdfast.errors import JobLockedError
from holdfast.job.checkpoints import JobCheckpoints
from holdfast.types.settings import LeaseSettings
from tests.checkpoint.samples import JOB_ID, metadata

QUICK = LeaseSettings(interval_ms=100, timeout_ms=300)


class Elsewhere:
    """A driver of the job on another host, which did not end its lease."""

    def __init__(self, root: Path) -> None:
        self._file = root / JOB_ID / "attempts/1"
        self._beat = 0
        self.waited: list[float] = []
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self.renew()

    def renew(self) -> None:
        own = DriverRecord.of_this_process(leased=True)
        driver = msgspec.structs.replace(own, host="elsewhere", boot="another start", machine="another machine")
        self._beat += 1
        self._file.write_bytes(LeaseRecord(driver, 300, beat=self._beat).encode())


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return FileCheckpointStorage(str(tmp_path), JOB_ID).write_metadata(metadata(1))


@pytest.fixture
def gone(tmp_path: Path, checkpoint: str, monkeypatch: pytest.MonkeyPatch) -> Elsewhere:
    """It is waited for as long as it takes, which costs no time."""
    driver = Elsewhere(tmp_path)
    monkeypatch.setattr(time, "sleep", driver.waited.append)
    monkeypatch.setattr(lease, "_now", lambda: sum(driver.waited))
    return driver


@pytest.fixture
def living(tmp_path: Path, checkpoint: str, monkeypatch: pytest.MonkeyPatch) -> Elsewhere:
    driver = Elsewhere(tmp_path)
    monkeypatch.setattr(time, "sleep", lambda seconds: driver.renew())
    return driver


def dead_origin(path: str) -> list[str]:
    """What a job that is restored from the checkpoint takes for gone."""
    checkpoints: Any = JobCheckpoints.__new__(JobCheckpoints)
    checkpoints._job = SimpleNamespace(facts=SimpleNamespace(job_id="next"), recovery=SimpleNamespace(path=path))
    point: Any = SimpleNamespace(foreign=True, metadata=CompletedCheckpoint(metadata(1), path).metadata)
    found: list[str] = checkpoints.dead_origin(point)
    return found


def claim(path: str) -> None:
    snapshot = SnapshotClaim(None)
    snapshot.take(path)
    snapshot.settle()


def test_a_claimed_checkpoint_of_a_driver_that_is_gone_is_deleted(gone: Elsewhere, checkpoint: str) -> None:
    claim(checkpoint)
    assert not Path(checkpoint).exists()
    assert sum(gone.waited) == pytest.approx(15)


def test_one_of_a_driver_that_lives_stays(living: Elsewhere, checkpoint: str) -> None:
    claim(checkpoint)
    assert Path(checkpoint).exists()


def test_the_driver_of_a_restored_checkpoint_is_found_to_be_gone(gone: Elsewhere, checkpoint: str) -> None:
    assert dead_origin(checkpoint) == [JOB_ID]


def test_one_that_lives_is_not(living: Elsewhere, checkpoint: str) -> None:
    assert dead_origin(checkpoint) == []


def test_a_job_is_left_to_a_keeper_behind_a_driver_that_is_gone(tmp_path: Path, gone: Elsewhere) -> None:
    JobDirectory(str(tmp_path), JOB_ID, QUICK).leave_to("ZooKeeper /one", gone.waited.append)
    assert sum(gone.waited) == pytest.approx(0.3)
    with pytest.raises(JobLockedError, match="is decided in ZooKeeper /one"):
        JobDirectory(str(tmp_path), JOB_ID).lock()


def test_it_is_waited_for_also_where_nobody_says_how(tmp_path: Path) -> None:
    Elsewhere(tmp_path)
    JobDirectory(str(tmp_path), JOB_ID, QUICK).leave_to("ZooKeeper /one")
    assert (tmp_path / JOB_ID / "high-availability").read_bytes() == b"ZooKeeper /one"


def test_it_is_not_left_while_a_driver_lives(tmp_path: Path) -> None:
    driver = Elsewhere(tmp_path)
    with pytest.raises(JobLockedError, match="on elsewhere"):
        JobDirectory(str(tmp_path), JOB_ID, QUICK).leave_to("ZooKeeper /one", lambda seconds: driver.renew())
    assert not (tmp_path / JOB_ID / "high-availability").exists()


def test_a_claim_that_was_refused_is_not_tried_with_every_checkpoint(
    checkpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To find out that a driver lives takes up to a heartbeat, in which no epoch runs."""
    tries: list[float] = []
    now = [1_000.0]

    def refused(path: str) -> None:
        tries.append(now[0])
        raise JobLockedError("another driver has the job")

    monkeypatch.setattr("holdfast.checkpoint.claim._dispose", refused)
    monkeypatch.setattr("holdfast.checkpoint.claim.time", SimpleNamespace(monotonic=lambda: now[0]))
    claimed = SnapshotClaim(None)
    claimed.take(checkpoint)
    for seconds in (0, 1, 58, 2):
        now[0] += seconds
        claimed.settle()
    assert tries == [1_000.0, 1_061.0]
