"""A second run under the id of a job that has ended, and a job that starts from a snapshot of another."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from holdfast.checkpoint.job_directory import JobDirectory
from holdfast.checkpoint.job_end import JobEnd
from holdfast.common import JobClient
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.errors import EpochError, JobEndedError, JobExecutionError, StateMigrationError, StorageError
from holdfast.runtime.epoch import EpochSpec
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import published
from tests.job.counting import EPOCHS, counting, counts_of, settings, staged

RETAINED = {"execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION"}
NO_RESTART = {"restart-strategy.type": "none"}


def start(tmp_path: Path, **changes: str) -> JobClient:
    return counting(settings(tmp_path, **changes), EPOCHS, FileSink.json(str(tmp_path / "out")))


def run(tmp_path: Path, **changes: str) -> None:
    start(tmp_path, **changes).get_job_execution_result().result()


def cancel_in_epoch(in_process: InProcessEngine, number: int) -> None:
    def after_epoch(spec: EpochSpec) -> None:
        if spec.epoch == number:
            in_process.control.cancel()

    in_process.after_epoch = after_epoch


# -- finished ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("checkpoints", [True, False], ids=["checkpoints", "no checkpoints"])
def test_a_finished_job_is_not_run_again(in_process: InProcessEngine, tmp_path: Path, checkpoints: bool) -> None:
    given = settings(tmp_path)
    if not checkpoints:
        del given["execution.checkpointing.interval"]
    counting(given, EPOCHS, FileSink.json(str(tmp_path / "out"))).get_job_execution_result().result()
    directory = tmp_path / "chk" / "job"
    assert json.loads((directory / "ended").read_text())["status"] == "FINISHED"
    refused = []  # errors that are kept, and all that they refer to
    for _ in range(2):
        with pytest.raises(JobEndedError) as caught:
            run(tmp_path)
        refused.append(caught)
        for told in ("job job has ended", "FINISHED at 20", "another holdfast.job-id", f"delete {directory} "):
            assert told in str(caught.value)
    assert published(tmp_path / "out") == counts_of(EPOCHS)


def test_what_the_error_says_helps(in_process: InProcessEngine, tmp_path: Path) -> None:
    run(tmp_path)
    first = sorted(path.name for path in (tmp_path / "out").glob("part-*"))
    run(tmp_path, **{"holdfast.job-id": "another"})
    assert published(tmp_path / "out") == sorted(counts_of(EPOCHS) * 2)
    for name in first:
        (tmp_path / "out" / name).unlink()
    shutil.rmtree(tmp_path / "chk" / "job")
    run(tmp_path)
    assert published(tmp_path / "out") == sorted(counts_of(EPOCHS) * 2)


def test_a_driver_that_dies_before_the_record_is_followed_by_one_that_repeats_nothing(
    in_process: InProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The record could not be written, so the final checkpoint stays, and the next run finds that all is done."""

    def record_end(self: JobDirectory, end: JobEnd) -> None:
        raise StorageError("the storage is away")

    with monkeypatch.context() as away:
        away.setattr(JobDirectory, "record_end", record_end)
        run(tmp_path)
    assert "could not be recorded, so its checkpoints stay: the storage is away" in caplog.text
    assert len(list((tmp_path / "chk" / "job").glob("chk-*"))) == 1
    run(tmp_path)
    assert published(tmp_path / "out") == counts_of(EPOCHS)
    with pytest.raises(JobEndedError):
        run(tmp_path)


def test_the_record_is_there_before_the_checkpoints_go(
    in_process: InProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dead between the two, the driver leaves both; the next one is refused, and does not begin anew."""
    recorded = JobDirectory.record_end

    class Died(BaseException):
        """Nothing of the driver's code may handle it."""

    def record_end(self: JobDirectory, end: JobEnd) -> None:
        assert list((tmp_path / "chk" / "job").glob("chk-*"))
        recorded(self, end)
        self.unlock()
        raise Died

    with monkeypatch.context() as dying:
        dying.setattr(JobDirectory, "record_end", record_end)
        with pytest.raises(Died):
            run(tmp_path)
    with pytest.raises(JobEndedError):
        run(tmp_path)


# -- cancelled and failed ----------------------------------------------------------------------------------------------


def test_a_cancelled_job_whose_checkpoints_are_deleted_is_not_begun_anew(
    in_process: InProcessEngine, tmp_path: Path
) -> None:
    cancel_in_epoch(in_process, 3)
    run(tmp_path)
    with pytest.raises(JobEndedError, match="CANCELED at 20"):
        run(tmp_path)
    assert published(tmp_path / "out") == counts_of(EPOCHS[:3])


def test_a_cancelled_job_that_published_nothing_may_begin_anew(in_process: InProcessEngine, tmp_path: Path) -> None:
    cancel_in_epoch(in_process, 2)
    run(tmp_path, **{"execution.checkpointing.interval": "365 d", "execution.checkpointing.min-pause": "365 d"})
    in_process.after_epoch = lambda spec: None
    run(tmp_path)
    assert published(tmp_path / "out") == counts_of(EPOCHS)


def test_a_cancelled_job_that_keeps_its_checkpoints_goes_on_from_them(
    in_process: InProcessEngine, tmp_path: Path
) -> None:
    cancel_in_epoch(in_process, 3)
    run(tmp_path, **RETAINED)
    in_process.after_epoch = lambda spec: None
    run(tmp_path, **RETAINED)
    assert in_process.epochs[3] == (2, 4)
    assert published(tmp_path / "out") == counts_of(EPOCHS)


@pytest.mark.parametrize("retained", [False, True])
def test_a_job_that_failed_for_good(in_process: InProcessEngine, tmp_path: Path, retained: bool) -> None:
    def before_epoch(spec: EpochSpec) -> None:
        if spec.epoch == 4:
            raise EpochError("a worker died")

    in_process.before_epoch = before_epoch
    given = NO_RESTART | (RETAINED if retained else {})
    with pytest.raises(JobExecutionError):
        run(tmp_path, **given)
    in_process.before_epoch = lambda spec: None
    if retained:
        run(tmp_path, **given)
        assert published(tmp_path / "out") == counts_of(EPOCHS)
    else:
        with pytest.raises(JobEndedError, match="FAILED at 20"):
            run(tmp_path, **given)
        assert published(tmp_path / "out") == counts_of(EPOCHS[:3])


def test_a_program_that_does_not_fit_the_state_does_not_cost_the_state(
    in_process: InProcessEngine, tmp_path: Path
) -> None:
    """Whatever the retention says: the mended program goes on from the checkpoint."""
    cancel_in_epoch(in_process, 3)
    run(tmp_path, **RETAINED)

    def before_epoch(spec: EpochSpec) -> None:
        raise StateMigrationError("operator 'count', state 'value': LONG was stored, STRING is declared")

    in_process.before_epoch, in_process.after_epoch = before_epoch, lambda spec: None
    with pytest.raises(JobExecutionError, match="STRING is declared"):
        run(tmp_path)
    in_process.before_epoch = lambda spec: None
    run(tmp_path)
    assert in_process.epochs[3] == (3, 4)
    assert published(tmp_path / "out") == counts_of(EPOCHS)


# -- a snapshot of another job -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("alive", [False, True])
def test_open_transactions_of_the_job_whose_snapshot_is_restored(
    in_process: InProcessEngine, tmp_path: Path, alive: bool
) -> None:
    """They are dropped when that job is known to be dead. While its driver lives they are its own."""
    cancel_in_epoch(in_process, 3)
    run(tmp_path, **RETAINED)
    in_process.after_epoch = lambda spec: None
    (checkpoint,) = (tmp_path / "chk" / "job").glob("chk-*")
    (operator,) = (tmp_path / "out" / "_holdfast_staging" / "job").iterdir()
    (operator / "1-4-0-nonce.json").write_text("")
    first = JobDirectory(str(tmp_path / "chk"), "job")
    if alive:
        first.lock()
    run(tmp_path, **{"holdfast.job-id": "second", "execution.state-recovery.path": str(checkpoint)})
    first.unlock()
    assert [path.name for path in staged(tmp_path / "out")] == (["1-4-0-nonce.json"] if alive else [])
    assert published(tmp_path / "out") == counts_of(EPOCHS)
