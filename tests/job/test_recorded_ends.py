"""Drivers that die while their job ends with a savepoint: whoever comes next, each row is published once."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import failpoints
from holdfast.checkpoint.job_directory import JobDirectory
from holdfast.checkpoint.job_end import JobEnd
from holdfast.checkpoint.leadership import DirectoryLeadership
from holdfast.checkpoint.storage import open_snapshot
from holdfast.common import JobClient
from holdfast.errors import CheckpointError, JobEndedError, JobExecutionError, StorageError
from holdfast.runtime.epoch import EpochSpec, Notification, NotificationKind
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import published
from tests.job.counting import EPOCHS, WatchedSink, counts_of, staged
from tests.job.test_savepoints import resume, start, status, wait_for_rows
from tests.kit.faults import FaultPlan

pytestmark = pytest.mark.slow

NEVER = {"execution.checkpointing.interval": "1000000 h"}
_DYING_DRIVER = """
import sys
from pathlib import Path
from holdfast.testing.in_process import InProcessEngine
from tests.job.test_savepoints import start, wait_for_rows

with InProcessEngine().installed():
    client = start(Path(sys.argv[1]), **{"execution.checkpointing.interval": sys.argv[2]})
wait_for_rows(client, 3)
if sys.argv[3] == "cancel":
    client._job.gateway.trigger_savepoint(cancel_job=True).result(60)
else:
    client.stop_with_savepoint(sys.argv[3] == "drain").result(60)
"""


@pytest.fixture
def faults(tmp_path: Path) -> Iterator[FaultPlan]:
    yield FaultPlan(tmp_path / "faults")
    failpoints.install(None)


def die(tmp_path: Path, faults: FaultPlan, point: str, how: str = "stop", interval: str = "1000000 h") -> str:
    """A driver that ends its job with a savepoint and is killed at ``point``. The path of the savepoint."""
    faults.add(point, "kill")
    driver = subprocess.run(
        [sys.executable, "-c", _DYING_DRIVER, str(tmp_path), interval, how],
        env={**os.environ, **faults.environment, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=60,
        check=False,
        capture_output=True,
    )
    assert driver.returncode == -signal.SIGKILL, driver.stderr.decode()
    assert not faults.not_reached()
    (path,) = (tmp_path / "savepoints").iterdir()
    return str(path)


def rows_of(path: str) -> list[tuple[int, int]]:
    """What is published when a job was stopped with this savepoint: the epoch that carried it read nothing."""
    return counts_of(EPOCHS[: open_snapshot(path)[0].epoch - 1])


def ended(client: JobClient) -> JobClient:
    client.get_job_execution_result().result(30)
    return client


@pytest.mark.parametrize(
    ("point", "interval"),
    [
        ("driver.savepoint-completed", "10 ms"),
        ("driver.savepoint-completed", "1000000 h"),
        ("driver.stop-recorded", "10 ms"),
        ("driver.stop-recorded", "1000000 h"),
        # With a checkpoint in every epoch these would be reached before the stop.
        ("sink.before-commit", "1000000 h"),
        ("file-sink-moved", "1000000 h"),
        ("driver.stop-published", "1000000 h"),
    ],
)
def test_whoever_goes_on_from_the_savepoint_publishes_the_rest(
    in_process: InProcessEngine, faults: FaultPlan, tmp_path: Path, point: str, interval: str
) -> None:
    path = die(tmp_path, faults, point, interval=interval)
    resume(tmp_path, path, **{"holdfast.job-id": "next"})
    assert published(tmp_path / "out") == counts_of(EPOCHS)


@pytest.mark.parametrize("interval", ["10 ms", "1000000 h"])
def test_a_stop_that_was_not_recorded_did_not_happen(
    in_process: InProcessEngine, faults: FaultPlan, tmp_path: Path, interval: str
) -> None:
    die(tmp_path, faults, "driver.savepoint-completed", interval=interval)
    client = ended(start(tmp_path, ends=True))
    assert client.get_job_execution_result().result().get_savepoint_path() is None
    assert published(tmp_path / "out") == counts_of(EPOCHS)


@pytest.mark.parametrize("how", ["stop", "drain"])
@pytest.mark.parametrize(
    ("point", "interval"),
    [
        ("driver.stop-recorded", "10 ms"),
        ("driver.stop-recorded", "1000000 h"),
        ("sink.before-commit", "1000000 h"),
        ("file-sink-moved", "1000000 h"),
        ("driver.stop-published", "1000000 h"),
    ],
)
def test_a_stop_that_was_recorded_is_brought_about_by_the_next_driver(
    in_process: InProcessEngine, faults: FaultPlan, tmp_path: Path, point: str, interval: str, how: str
) -> None:
    path = die(tmp_path, faults, point, how, interval)
    epochs: list[EpochSpec] = []
    in_process.before_epoch = epochs.append
    client = ended(start(tmp_path))
    assert status(client) == "FINISHED"
    assert client.get_job_execution_result().result().get_savepoint_path() == path
    assert published(tmp_path / "out") == rows_of(path)
    assert staged(tmp_path / "out") == []
    # Functions are notified, and nothing else happens in them.
    (epoch,) = epochs
    assert epoch.restored and epoch.close and not epoch.read_sources
    assert epoch.notifications == (Notification(NotificationKind.COMPLETE, open_snapshot(path)[0].checkpoint_id),)
    assert list((tmp_path / "chk/job").glob("chk-*")) == []
    # From now on it is a job that has ended, as any other.
    with pytest.raises(JobEndedError, match="Go on from it with"):
        start(tmp_path)
    resume(tmp_path, path)
    assert published(tmp_path / "out") == counts_of(EPOCHS)


def test_a_driver_that_was_started_from_another_snapshot_brings_it_about_too(
    in_process: InProcessEngine, faults: FaultPlan, tmp_path: Path
) -> None:
    """A standby has the settings of the leader: what that one was started from may be long gone."""
    path = die(tmp_path, faults, "driver.stop-recorded")
    client = ended(start(tmp_path, **{"execution.state-recovery.path": str(tmp_path / "gone")}))
    assert status(client) == "FINISHED"
    assert published(tmp_path / "out") == rows_of(path)


def test_a_copy_of_the_savepoint_goes_on_under_the_same_id(
    in_process: InProcessEngine, faults: FaultPlan, tmp_path: Path
) -> None:
    path = die(tmp_path, faults, "driver.stop-recorded")
    shutil.move(path, tmp_path / "elsewhere")
    with pytest.raises(JobEndedError, match=r"died before all rows of it were published.*state-recovery\.path"):
        start(tmp_path)
    client = start(tmp_path, **NEVER, **{"execution.state-recovery.path": str(tmp_path / "elsewhere")})
    wait_for_rows(client, 2)
    client.cancel().result(30)
    # Its rows are published by now: the record says so, and there is nothing to bring about.
    with pytest.raises(JobEndedError, match="Go on from it with"):
        start(tmp_path)
    resume(tmp_path, str(tmp_path / "elsewhere"))
    assert published(tmp_path / "out") == counts_of(EPOCHS)


def test_rows_that_still_cannot_be_published_are_left_to_the_next_driver(
    in_process: InProcessEngine, faults: FaultPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = die(tmp_path, faults, "driver.stop-recorded")

    def away(place: int, recovering: bool) -> None:
        raise OSError("the output is away")

    with monkeypatch.context() as broken:
        broken.setattr(WatchedSink, "before", staticmethod(away))
        with pytest.raises(JobExecutionError, match="the output is away"):
            ended(start(tmp_path))
    assert published(tmp_path / "out") == []
    ended(start(tmp_path))
    assert published(tmp_path / "out") == rows_of(path)


def test_a_driver_that_cannot_begin_to_publish_tells_nobody_that_the_job_has_ended(
    in_process: InProcessEngine, faults: FaultPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = die(tmp_path, faults, "driver.stop-recorded")
    told: list[JobEnd] = []

    def away(*_: Any, **__: Any) -> None:
        raise RuntimeError("Spark is away")

    with monkeypatch.context() as broken:
        broken.setattr(DirectoryLeadership, "announce_end", lambda self, end: told.append(end))
        broken.setattr(InProcessEngine, "open", away)
        with pytest.raises(Exception, match="Spark is away"):
            ended(start(tmp_path))
        assert told == [], "a standby would take it for done"
    ended(start(tmp_path))
    assert published(tmp_path / "out") == rows_of(path)


def test_functions_that_cannot_be_closed_do_not_matter(
    in_process: InProcessEngine, faults: FaultPlan, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = die(tmp_path, faults, "driver.stop-recorded")

    def fail(spec: EpochSpec) -> None:
        raise RuntimeError("a worker died")

    in_process.before_epoch = fail
    client = ended(start(tmp_path))
    assert status(client) == "FINISHED"
    assert "did not close in order: a worker died" in caplog.text
    assert published(tmp_path / "out") == rows_of(path)


def test_a_record_that_cannot_be_changed_makes_the_next_driver_look_again(
    in_process: InProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    record = JobDirectory.record_end

    def only_the_first(self: JobDirectory, end: JobEnd) -> None:
        if end.published:
            raise StorageError("the storage is full")
        record(self, end)

    with monkeypatch.context() as full:
        full.setattr(JobDirectory, "record_end", only_the_first)
        client = start(tmp_path, **NEVER)
        wait_for_rows(client, 3)
        path = client.stop_with_savepoint(False).result(30)
        ended(client)
    assert status(client) == "FINISHED"
    assert "could not be recorded" in caplog.text
    again = ended(start(tmp_path))
    assert again.get_job_execution_result().result().get_savepoint_path() == path
    assert published(tmp_path / "out") == rows_of(path)
    with pytest.raises(JobEndedError):
        start(tmp_path)


@pytest.mark.parametrize("written", [False, True], ids=["not-written", "written"])
def test_a_record_that_fails_is_written_before_rows_are_published(
    in_process: InProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: bool
) -> None:
    """Whether the first try arrived or not."""
    record, tries = JobDirectory.record_end, list[JobEnd]()

    def fails_once(self: JobDirectory, end: JobEnd) -> None:
        tries.append(end)
        if len(tries) > 1 or written:
            record(self, end)
        if len(tries) == 1:
            raise StorageError("the storage is away")

    monkeypatch.setattr(JobDirectory, "record_end", fails_once)
    client = start(tmp_path, **NEVER)
    wait_for_rows(client, 3)
    path = client.stop_with_savepoint(False).result(30)
    ended(client)
    assert [end.published for end in tries] == [False, False, True]
    assert published(tmp_path / "out") == rows_of(path)
    assert staged(tmp_path / "out") == []
    resume(tmp_path, path)
    assert published(tmp_path / "out") == counts_of(EPOCHS)


@pytest.mark.parametrize("written", [False, True], ids=["not-written", "written"])
def test_an_end_that_cannot_be_recorded_publishes_nothing(
    in_process: InProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: bool
) -> None:
    """The next driver ends the job if the record was written after all, and goes on from its checkpoint if not."""
    record = JobDirectory.record_end

    def fails(self: JobDirectory, end: JobEnd) -> None:
        if written:
            record(self, end)
        raise StorageError("the storage is away")

    with monkeypatch.context() as away:
        away.setattr(JobDirectory, "record_end", fails)
        client = start(tmp_path, **NEVER)
        wait_for_rows(client, 3)
        with pytest.raises(CheckpointError, match=r"The savepoint .* is complete\. The job is FAILED"):
            client.stop_with_savepoint(False).result(30)
        with pytest.raises(JobExecutionError, match="the storage is away"):
            ended(client)
    assert published(tmp_path / "out") == []
    again = ended(start(tmp_path, ends=True))
    path = again.get_job_execution_result().result().get_savepoint_path()
    assert (path is not None) == written
    assert published(tmp_path / "out") == (rows_of(path) if path is not None else counts_of(EPOCHS))


def test_a_job_that_is_cancelled_behind_its_savepoint_is_cancelled_once_that_is_recorded(
    in_process: InProcessEngine, faults: FaultPlan, tmp_path: Path
) -> None:
    """Before that, the savepoint is one like others, and the job goes on."""
    die(tmp_path, faults, "checkpoint.after-metadata", "cancel")
    client = start(tmp_path)
    wait_for_rows(client, 3)
    assert client.is_running()
    path = client._job.gateway.trigger_savepoint(cancel_job=True).result(30)
    ended(client)
    assert status(client) == "CANCELED"
    assert client.get_job_execution_result().result().get_savepoint_path() == path
    with pytest.raises(JobEndedError, match="CANCELED at"):
        start(tmp_path)
    resume(tmp_path, path)
    assert published(tmp_path / "out") == counts_of(EPOCHS)


def test_the_one_who_asked_is_told_the_path_although_publishing_failed_at_first(
    in_process: InProcessEngine, faults: FaultPlan, tmp_path: Path
) -> None:
    client = start(tmp_path, **NEVER)
    wait_for_rows(client, 3)
    faults.add("driver.stop-recorded", "raise")
    failpoints.install(faults.path)
    path = client.stop_with_savepoint(False).result(30)
    ended(client)
    assert client.get_history().savepoint == path
    with pytest.raises(CheckpointError, match="not running"):
        client.trigger_savepoint().result(30)


def test_an_end_that_is_recorded_behind_another_driver_does_not_count(
    in_process: InProcessEngine, tmp_path: Path
) -> None:
    """Its driver hung between the look at its lease and the record, and another one went on with the job meanwhile."""
    kept = {"execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION"}
    for _ in range(2):
        client = start(tmp_path, **kept)
        wait_for_rows(client, 2)
        client.trigger_checkpoint().result(30)
        client.cancel().result(30)
    JobDirectory(str(tmp_path / "chk"), "job").record_end(JobEnd.now("FINISHED", attempt=1))
    ended(start(tmp_path, ends=True, **kept))
    assert published(tmp_path / "out") == counts_of(EPOCHS)
