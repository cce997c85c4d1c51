"""A job that ends before its input does: what a completed checkpoint holds is published, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import failpoints
from holdfast.common import JobClient
from holdfast.errors import EpochError, JobExecutionError
from holdfast.runtime.epoch import EpochSpec
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import published
from tests.job.counting import EPOCHS, WatchedSink, counting, counts_of, settings, staged
from tests.kit.faults import FaultPlan


@pytest.fixture
def faults(tmp_path: Path) -> Iterator[FaultPlan]:
    yield FaultPlan(tmp_path / "faults")
    failpoints.install(None)


def start(tmp_path: Path, **changes: str) -> JobClient:
    return counting(settings(tmp_path, **changes), EPOCHS, WatchedSink(tmp_path / "out"))


def run(tmp_path: Path, **changes: str) -> JobClient:
    client = start(tmp_path, **changes)
    client.get_job_execution_result().result()
    return client


def checkpoints(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "chk").glob("*/chk-*/_metadata"))


def cancel_in_epoch(in_process: InProcessEngine, number: int) -> None:
    def after_epoch(spec: EpochSpec) -> None:
        if spec.epoch == number:
            in_process.control.cancel()

    in_process.after_epoch = after_epoch


def test_cancelled_behind_epochs_that_no_checkpoint_holds(in_process: InProcessEngine, tmp_path: Path) -> None:
    in_process.last_checkpoint = 2
    cancel_in_epoch(in_process, 4)
    client = run(tmp_path)
    assert client.get_job_status().result().name == "CANCELED"
    assert in_process.epochs == [(1, 1), (1, 2), (1, 3), (1, 4)]
    assert published(tmp_path / "out") == counts_of(EPOCHS[:2])
    assert staged(tmp_path / "out") == []


@pytest.mark.parametrize(
    "point", ["checkpoint.after-metadata", "driver.commit-begun", "sink.before-commit", "file-sink-moved"]
)
def test_cancelled_between_the_metadata_of_a_checkpoint_and_its_commit(
    in_process: InProcessEngine, faults: FaultPlan, tmp_path: Path, point: str
) -> None:
    """The epoch fails there, so that its commit is not made, or not to its end; a cancel came before."""
    # The first file of the second checkpoint has been moved, the other one has not.
    hit = 3 if point == "file-sink-moved" else 2
    faults.add(point, "raise", hit=hit)
    failpoints.install(faults.path)
    cancel_in_epoch(in_process, 2)
    client = run(tmp_path)
    assert not faults.not_reached()
    assert client.get_job_status().result().name == "CANCELED"
    assert client.get_history().restarts == 0
    assert in_process.epochs == [(1, 1), (1, 2)]
    assert published(tmp_path / "out") == counts_of(EPOCHS[:2])
    assert staged(tmp_path / "out") == []
    assert checkpoints(tmp_path) == [], "nothing is left to do for them"


def test_cancelled_before_the_first_checkpoint_nothing_is_published(
    in_process: InProcessEngine, tmp_path: Path
) -> None:
    cancel_in_epoch(in_process, 2)
    run(tmp_path, **{"execution.checkpointing.interval": "365 d", "execution.checkpointing.min-pause": "365 d"})
    assert published(tmp_path / "out") == []
    assert staged(tmp_path / "out") == []


def test_cancelled_between_two_attempts(in_process: InProcessEngine, tmp_path: Path) -> None:
    """The last attempt failed, and the cancel comes while the job waits for the next."""

    def before_epoch(spec: EpochSpec) -> None:
        if spec.epoch == 4:
            in_process.control.cancel()
            raise EpochError("a worker died")

    in_process.before_epoch = before_epoch
    in_process.last_checkpoint = 2
    client = run(tmp_path)
    assert client.get_job_status().result().name == "CANCELED"
    assert published(tmp_path / "out") == counts_of(EPOCHS[:2])
    assert staged(tmp_path / "out") == []


def test_what_cannot_be_published_at_a_cancel_stays_with_its_checkpoint(
    in_process: InProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever the retention says: without the checkpoint the rows that it holds were lost."""

    def before(place: int, recovering: bool) -> None:
        if in_process.epochs[-1] == (1, 2) and place == 1:
            in_process.control.cancel()
            raise OSError("the sink's disk is away")

    monkeypatch.setattr(WatchedSink, "before", staticmethod(before))
    client = run(tmp_path)
    assert client.get_job_status().result().name == "CANCELED"
    assert "checkpoints stay for whoever restores it" in caplog.text and "the sink's disk is away" in caplog.text
    assert len(checkpoints(tmp_path)) == 1 and len(staged(tmp_path / "out")) == 1
    # The disk is back, and so is the job: under its id it goes on from that checkpoint.
    monkeypatch.setattr(WatchedSink, "before", staticmethod(lambda place, recovering: None))
    run(tmp_path)
    assert in_process.epochs[2] == (2, 3)
    assert published(tmp_path / "out") == counts_of(EPOCHS)
    assert staged(tmp_path / "out") == []


def test_a_sink_that_cannot_list_its_transactions_does_not_fail_a_cancelled_job(
    in_process: InProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def after_epoch(spec: EpochSpec) -> None:
        if spec.epoch == 2:
            monkeypatch.setattr(WatchedSink, "open_transactions", lambda self, job_id: 1 / 0)
            in_process.control.cancel()

    in_process.after_epoch = after_epoch
    client = run(tmp_path)
    assert client.get_job_status().result().name == "CANCELED"
    assert published(tmp_path / "out") == counts_of(EPOCHS[:2])
    assert len(checkpoints(tmp_path)) == 1


def test_a_job_that_failed_for_good_leaves_no_open_transactions(in_process: InProcessEngine, tmp_path: Path) -> None:
    def before_epoch(spec: EpochSpec) -> None:
        if spec.epoch == 5:
            assert len(staged(tmp_path / "out")) > 0
            raise EpochError("a worker died")

    in_process.before_epoch = before_epoch
    in_process.last_checkpoint = 2
    client = start(tmp_path, **{"restart-strategy.type": "none"})
    with pytest.raises(JobExecutionError, match="a worker died"):
        client.get_job_execution_result().result()
    assert published(tmp_path / "out") == counts_of(EPOCHS[:2])
    assert staged(tmp_path / "out") == []


def test_a_job_whose_sink_fails_for_good_keeps_the_checkpoint_that_holds_the_rows(
    in_process: InProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def before(place: int, recovering: bool) -> None:
        if in_process.epochs[-1] == (1, 3):
            raise OSError("the sink's disk is away")

    monkeypatch.setattr(WatchedSink, "before", staticmethod(before))
    client = start(tmp_path)
    with pytest.raises(JobExecutionError, match="could not commit"):
        client.get_job_execution_result().result()
    assert client.get_history().restarts == 3
    assert published(tmp_path / "out") == counts_of(EPOCHS[:2])
    assert len(checkpoints(tmp_path)) == 1
    monkeypatch.setattr(WatchedSink, "before", staticmethod(lambda place, recovering: None))
    run(tmp_path)
    assert published(tmp_path / "out") == counts_of(EPOCHS)
