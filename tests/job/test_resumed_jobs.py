"""Jobs that were stopped and go on under their id: what counts until they have a checkpoint of their own, and then."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from holdfast.checkpoint.job_directory import JobDirectory
from holdfast.checkpoint.storage import open_snapshot
from holdfast.errors import JobEndedError
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import published
from tests.job.counting import EPOCHS, counts_of, staged
from tests.job.test_savepoints import resume, start, wait_for_rows

RETAINED = {"execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION"}
NEVER = {"execution.checkpointing.interval": "1000000 h"}


def stopped(tmp_path: Path) -> str:
    client = start(tmp_path)
    wait_for_rows(client, 3)
    path = client.stop_with_savepoint(False).result(30)
    client.get_job_execution_result().result(30)
    return path


@pytest.mark.parametrize("end", ["cancelled", "killed"])
def test_a_job_without_a_checkpoint_of_its_own_goes_on_from_its_savepoint_only(
    in_process: InProcessEngine, tmp_path: Path, end: str
) -> None:
    path = stopped(tmp_path)
    client = start(tmp_path, **NEVER, **{"execution.state-recovery.path": path})
    wait_for_rows(client, 2)
    if end == "cancelled":
        client.cancel().result(30)
    else:
        in_process.before_epoch = lambda spec: (_ for _ in ()).throw(SystemExit("the driver dies"))
        with pytest.raises(SystemExit):
            client.get_job_execution_result().result(30)
        in_process.before_epoch = lambda spec: None
    with pytest.raises(JobEndedError, match="Go on from it with"):
        start(tmp_path)
    resume(tmp_path, path)
    assert published(tmp_path / "out") == counts_of(EPOCHS)
    assert staged(tmp_path / "out") == []


def test_a_checkpoint_behind_the_savepoint_counts_although_the_end_is_still_recorded(
    in_process: InProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = stopped(tmp_path)

    def die(self: JobDirectory) -> None:
        raise SystemExit("the driver dies")

    with monkeypatch.context() as dying:
        dying.setattr(JobDirectory, "forget_end", die)
        client = start(tmp_path, **RETAINED, **{"execution.state-recovery.path": path})
        with pytest.raises(SystemExit):
            client.get_job_execution_result().result(30)
    assert (tmp_path / "chk/job/ended").exists()
    start(tmp_path, ends=True).get_job_execution_result().result(30)
    assert published(tmp_path / "out") == counts_of(EPOCHS)


def test_a_path_that_does_not_count_is_told_of(
    in_process: InProcessEngine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The job has checkpoints of its own, which a driver that takes over with the same settings goes on from."""
    client = start(tmp_path, **RETAINED)
    wait_for_rows(client, 3)
    path = client.trigger_savepoint().result(30)
    client.cancel().result(30)
    with caplog.at_level(logging.WARNING, "holdfast.job.checkpoints"):
        resume(tmp_path, path)
    assert f"not from {path}" in caplog.text
    assert published(tmp_path / "out") == counts_of(EPOCHS)


def test_numbers_of_checkpoints_go_on_from_the_restored_one(in_process: InProcessEngine, tmp_path: Path) -> None:
    """Functions are notified with numbers that grow, over a restore too; and it is told what was restored."""
    path = stopped(tmp_path)
    number = open_snapshot(path)[0].checkpoint_id
    client = start(tmp_path, **{"execution.state-recovery.path": path, "holdfast.job-id": "next"})
    wait_for_rows(client, 1)
    taken = client.trigger_checkpoint().result(30)
    assert taken > number
    told = client.get_checkpoint_statistics()
    assert told.counts.restored == 1
    assert told.latest_restored is not None
    found = told.latest_restored
    assert (found.checkpoint_id, found.location, found.is_savepoint) == (number, path, True)
    client.cancel().result(30)
