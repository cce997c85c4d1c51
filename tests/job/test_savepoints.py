"""Savepoints of whole jobs: what follows from each kind, and that output is exact over stops, cancels and failures."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import failpoints
from holdfast.checkpoint.shared_files import metadata_handles
from holdfast.checkpoint.snapshot_triggers import CheckpointKind
from holdfast.checkpoint.storage import open_snapshot
from holdfast.common import JobClient
from holdfast.errors import CheckpointError, JobEndedError, JobExecutionError
from holdfast.runtime.epoch import EpochSpec
from holdfast.state.handles import SnapshotType
from holdfast.testing.chaos.processes import wait_until
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import published
from tests.job.counting import EPOCHS, WatchedSink, counting, counts_of, settings, staged
from tests.kit.faults import FaultPlan


@pytest.fixture
def faults(tmp_path: Path) -> Iterator[FaultPlan]:
    yield FaultPlan(tmp_path / "faults")
    failpoints.install(None)


def start(tmp_path: Path, ends: bool = False, **changes: str) -> JobClient:
    given = {"execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints"), **changes}
    return counting(settings(tmp_path, **given), EPOCHS, WatchedSink(tmp_path / "out"), ends=ends)


def wait_for_rows(client: JobClient, epochs: int) -> None:
    """Until so many epochs have been read."""
    while len(client.get_history().epochs) < epochs and client.is_running():
        time.sleep(0.002)


def resume(tmp_path: Path, path: str, **changes: str) -> JobClient:
    """Go on from a savepoint until the input ends."""
    client = start(tmp_path, ends=True, **{"execution.state-recovery.path": path, **changes})
    client.get_job_execution_result().result(30)
    return client


def status(client: JobClient) -> str:
    return client.get_job_status().result().name


def test_a_savepoint_changes_nothing_for_the_job(in_process: InProcessEngine, tmp_path: Path) -> None:
    client = start(tmp_path)
    wait_for_rows(client, 2)
    path = client.trigger_savepoint().result(30)
    metadata, _ = open_snapshot(path)
    assert metadata.checkpoint_type is SnapshotType.SAVEPOINT
    assert Path(path).parent == tmp_path / "savepoints"
    assert Path(path).name.startswith("savepoint-job-")
    wait_for_rows(client, 10)
    assert client.is_running()
    kept = [int(folder.name[4:]) for folder in (tmp_path / "chk/job").glob("chk-*")]
    assert metadata.checkpoint_id not in kept, "it is in no store"
    taken = client.get_checkpoint_statistics().latest_savepoint
    assert taken is not None
    assert (taken.checkpoint_id, taken.location) == (metadata.checkpoint_id, path)
    # Each look at the clock costs a second, so that there is something to see.
    assert all(entry.start_delay_millis > 0 for entry in taken.subtasks.values())
    assert any(entry.alignment_millis > 0 for entry in taken.subtasks.values())
    client.cancel().result(30)
    assert Path(path, "_metadata").exists(), "it is the user's"
    assert published(tmp_path / "out") == counts_of(EPOCHS)


def test_stop_publishes_everything_and_the_savepoint_goes_on_under_the_same_id(
    in_process: InProcessEngine, tmp_path: Path
) -> None:
    client = start(tmp_path)
    wait_for_rows(client, 3)
    path = client.stop_with_savepoint(False).result(30)
    client.get_job_execution_result().result(30)
    assert status(client) == "FINISHED"
    read = open_snapshot(path)[0].epoch - 1
    assert published(tmp_path / "out") == counts_of(EPOCHS[:read])
    assert staged(tmp_path / "out") == []
    with pytest.raises(JobEndedError, match=r"Go on from it with execution.state-recovery.path"):
        start(tmp_path)
    moved = tmp_path / "elsewhere"
    shutil.move(path, moved)
    assert status(resume(tmp_path, str(moved))) == "FINISHED"
    assert published(tmp_path / "out") == counts_of(EPOCHS)


def test_a_stopped_job_does_not_go_on_from_an_older_savepoint_of_its_own(
    in_process: InProcessEngine, tmp_path: Path
) -> None:
    client = start(tmp_path)
    wait_for_rows(client, 1)
    older = client.trigger_savepoint().result(30)
    client.stop_with_savepoint(False).result(30)
    with pytest.raises(JobEndedError, match="was stopped with a savepoint"):
        resume(tmp_path, older)


@pytest.mark.parametrize("interval", ["10 ms", "1000000 h"])
def test_cancel_with_a_savepoint_leaves_its_rows_to_whoever_goes_on(
    in_process: InProcessEngine, tmp_path: Path, interval: str
) -> None:
    client = start(tmp_path, **{"execution.checkpointing.interval": interval})
    wait_for_rows(client, 3)
    path = client._job.gateway.trigger_savepoint(cancel_job=True).result(30)
    assert status(client) == "CANCELED"
    resume(tmp_path, path, **{"holdfast.job-id": "next"})
    assert published(tmp_path / "out") == counts_of(EPOCHS)
    assert staged(tmp_path / "out") == []


def test_a_drained_job_finishes_its_functions_and_can_still_go_on(in_process: InProcessEngine, tmp_path: Path) -> None:
    client = start(tmp_path)
    wait_for_rows(client, 2)
    path = client.stop_with_savepoint(True).result(30)
    assert status(client) == "FINISHED"
    assert not any(s.finished for record in open_snapshot(path)[0].operators for s in record.subtasks)
    resume(tmp_path, path)
    assert published(tmp_path / "out") == counts_of(EPOCHS)


def test_without_checkpoints_a_stop_publishes_too(in_process: InProcessEngine, tmp_path: Path) -> None:
    given = settings(tmp_path, **{"execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints")})
    del given["execution.checkpointing.interval"], given["execution.checkpointing.dir"]
    client = counting(given, EPOCHS, WatchedSink(tmp_path / "out"), ends=False)
    wait_for_rows(client, 3)
    assert published(tmp_path / "out") == []
    path = client.stop_with_savepoint(False).result(30)
    assert published(tmp_path / "out") == counts_of(EPOCHS[: open_snapshot(path)[0].epoch - 1])
    again = {**given, "execution.state-recovery.path": path}
    counting(again, EPOCHS, WatchedSink(tmp_path / "out")).get_job_execution_result().result(30)
    assert published(tmp_path / "out") == counts_of(EPOCHS)


def test_a_savepoint_without_a_directory_is_refused_at_once(in_process: InProcessEngine, tmp_path: Path) -> None:
    client = counting(settings(tmp_path), EPOCHS, WatchedSink(tmp_path / "out"), ends=False)
    with pytest.raises(CheckpointError, match=r"No savepoint directory configured.*savepoint-dir"):
        client.trigger_savepoint()
    client.cancel().result(30)


@pytest.mark.parametrize("target", ["a-file", "strange://place/a-file", "a-file\0"])
@pytest.mark.parametrize("stop", [True, False])
def test_a_savepoint_that_fails_leaves_the_job_running(
    in_process: InProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: bool, target: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a-file").write_text("")
    client = start(tmp_path)
    wait_for_rows(client, 2)
    asked = client.stop_with_savepoint(False, target) if stop else client.trigger_savepoint(target)
    with pytest.raises(CheckpointError, match="a-file"):
        asked.result(30)
    wait_for_rows(client, len(client.get_history().epochs) + 3)
    assert client.is_running()
    assert client.get_history().restarts == 0
    assert Path(client.trigger_savepoint().result(30), "_metadata").exists()
    client.cancel().result(30)


def test_a_savepoint_whose_files_cannot_be_written_leaves_nothing_and_the_job_running(
    in_process: InProcessEngine, faults: FaultPlan, tmp_path: Path
) -> None:
    client = start(tmp_path, **{"execution.checkpointing.interval": "1000000 h"})
    wait_for_rows(client, 2)
    faults.add("task.uploading", "raise")
    failpoints.install(faults.path)
    with pytest.raises(CheckpointError, match="could not write its snapshot"):
        client.stop_with_savepoint(False).result(30)
    assert not faults.not_reached()
    assert list((tmp_path / "savepoints").iterdir()) == []
    path = client.stop_with_savepoint(False).result(30)
    # One epoch went with the savepoint that failed.
    assert published(tmp_path / "out") == counts_of(EPOCHS[: open_snapshot(path)[0].epoch - 2])
    resume(tmp_path, path)
    assert published(tmp_path / "out") == counts_of(EPOCHS)


@pytest.mark.parametrize("point", ["driver.stop-recorded", "sink.before-commit", "file-sink-moved"])
def test_what_fails_behind_the_savepoint_is_published_from_it(
    in_process: InProcessEngine, faults: FaultPlan, tmp_path: Path, point: str
) -> None:
    client = start(tmp_path, **{"execution.checkpointing.interval": "1000000 h"})
    wait_for_rows(client, 3)
    faults.add(point, "raise")
    failpoints.install(faults.path)
    path = client.stop_with_savepoint(False).result(30)
    assert not faults.not_reached()
    assert status(client) == "FINISHED"
    assert published(tmp_path / "out") == counts_of(EPOCHS[: open_snapshot(path)[0].epoch - 1])
    resume(tmp_path, path)
    assert published(tmp_path / "out") == counts_of(EPOCHS)


@pytest.mark.parametrize("earlier", [False, True], ids=["nothing-published", "a-checkpoint-published"])
def test_output_that_cannot_be_published_is_left_to_whoever_goes_on(
    in_process: InProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, earlier: bool
) -> None:
    client = start(tmp_path, **{"execution.checkpointing.interval": "1000000 h"})
    wait_for_rows(client, 3)
    if earlier:
        client.trigger_checkpoint().result(30)
        wait_until(lambda: published(tmp_path / "out") or None, 30, "rows of the checkpoint")
        wait_for_rows(client, len(client.get_history().epochs) + 1)
    before = published(tmp_path / "out")

    def away(place: int, recovering: bool) -> None:
        raise OSError("the output is away")

    with monkeypatch.context() as broken:
        broken.setattr(WatchedSink, "before", staticmethod(away))
        with pytest.raises(CheckpointError, match=r"savepoint-job-.* is complete. The job is FAILED"):
            client.stop_with_savepoint(False).result(30)
        with pytest.raises(JobExecutionError, match="Start it from that savepoint") as failed:
            client.get_job_execution_result().result(30)
    assert published(tmp_path / "out") == before
    (path,) = (tmp_path / "savepoints").iterdir()
    assert str(path) in str(failed.value)
    resume(tmp_path, str(path))
    assert published(tmp_path / "out") == counts_of(EPOCHS)


def test_an_epoch_that_fails_before_the_savepoint_is_whole_restarts_the_job(
    in_process: InProcessEngine, faults: FaultPlan, tmp_path: Path
) -> None:
    client = start(tmp_path)
    wait_for_rows(client, 3)

    def fail(spec: EpochSpec) -> None:
        if spec.checkpoint is not None and spec.checkpoint.checkpoint_type.is_savepoint:
            in_process.before_epoch = lambda spec: None
            raise RuntimeError("a worker died")

    in_process.before_epoch = fail
    with pytest.raises(CheckpointError, match=r"a worker died|An epoch of the attempt"):
        client.stop_with_savepoint(False).result(30)
    wait_for_rows(client, len(client.get_history().epochs) + 8)
    assert client.get_history().restarts == 1
    assert list((tmp_path / "savepoints").iterdir()) == []
    client.cancel().result(30)
    assert published(tmp_path / "out") == counts_of(EPOCHS)


def test_a_checkpoint_by_hand_beside_the_periodic_ones(in_process: InProcessEngine, tmp_path: Path) -> None:
    client = start(tmp_path, **{"execution.checkpointing.interval": "1000000 h"})
    wait_for_rows(client, 3)
    number = client.trigger_checkpoint(CheckpointKind.FULL).result(30)
    taken = client.get_checkpoint_statistics().latest_completed
    assert taken is not None
    assert (taken.checkpoint_id, taken.full) == (number, True)
    second = client.trigger_checkpoint().result(30)
    assert set(counts_of(EPOCHS[: taken.epoch])) <= set(published(tmp_path / "out")), "its rows are published"
    later = client.get_checkpoint_statistics().latest_completed
    assert later is not None
    assert (later.checkpoint_id, later.full) == (second, False)
    client.cancel().result(30)


def test_requests_to_a_job_that_has_ended_fail(in_process: InProcessEngine, tmp_path: Path) -> None:
    client = start(tmp_path, ends=True)
    client.get_job_execution_result().result(30)
    with pytest.raises(CheckpointError, match="not running"):
        client.trigger_savepoint().result(30)


def test_a_savepoint_holds_transactions_that_the_job_aborted_since(in_process: InProcessEngine, tmp_path: Path) -> None:
    """The job went back beyond the savepoint and published those rows itself: to go on from it would repeat or lose
    some, and it says so.
    """
    client = start(tmp_path, **{"execution.checkpointing.interval": "1000000 h"})
    wait_for_rows(client, 3)
    path = client.trigger_savepoint().result(30)

    def fail_once(spec: EpochSpec) -> None:
        in_process.before_epoch = lambda spec: None
        raise RuntimeError("a worker died")

    in_process.before_epoch = fail_once
    wait_for_rows(client, len(client.get_history().epochs) + 8)
    client.cancel().result(30)
    with pytest.raises(JobExecutionError, match=r"aborted|lost"):
        resume(tmp_path, path, **{"holdfast.job-id": "next", "restart-strategy.type": "none"})


class TestClaim:
    """Who owns the snapshot that a job starts from."""

    def snapshot(self, tmp_path: Path, kind: str) -> str:
        """A snapshot of a job that is gone."""
        retained = {"execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION"}
        client = start(tmp_path, **retained)
        wait_for_rows(client, 3)
        path = client.trigger_savepoint().result(30)
        client.cancel().result(30)
        return path if kind == "savepoint" else str(next((tmp_path / "chk/job").glob("chk-*")))

    def go_on(self, tmp_path: Path, path: str, mode: str) -> None:
        changes = {
            "holdfast.job-id": "next",
            "execution.state-recovery.claim-mode": mode,
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        }
        client = start(tmp_path, **{"execution.state-recovery.path": path, **changes})
        wait_for_rows(client, 4)
        client.trigger_checkpoint().result(30)
        client.cancel().result(30)

    @pytest.mark.parametrize("kind", ["savepoint", "checkpoint"])
    @pytest.mark.parametrize("mode", ["NO_CLAIM", "LEGACY"])
    def test_a_snapshot_that_is_not_claimed_stays(
        self, in_process: InProcessEngine, tmp_path: Path, kind: str, mode: str
    ) -> None:
        path = self.snapshot(tmp_path, kind)
        before = sorted(Path(path).rglob("*"))
        self.go_on(tmp_path, path, mode)
        assert sorted(Path(path).rglob("*")) == before
        (own,) = (tmp_path / "chk/next").glob("chk-*")
        shutil.rmtree(path)
        counted = open_snapshot(str(own))[0]
        assert not any(handle.path.startswith("..") for handle in metadata_handles(counted))

    @pytest.mark.parametrize("kind", ["savepoint", "checkpoint"])
    def test_a_claimed_snapshot_goes_when_checkpoints_take_its_place(
        self, in_process: InProcessEngine, tmp_path: Path, kind: str
    ) -> None:
        path = self.snapshot(tmp_path, kind)
        self.go_on(tmp_path, path, "CLAIM")
        assert not Path(path).exists()
        assert not (tmp_path / "chk/next/claimed").exists()
        assert list((tmp_path / "chk/job").glob("shared/*")) == []

    def test_a_claimed_snapshot_that_is_gone_is_forgotten(
        self, in_process: InProcessEngine, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        """As when a driver dies after it deleted it: it is not looked for at every checkpoint."""
        path = self.snapshot(tmp_path, "savepoint")
        in_process.after_epoch = lambda spec: shutil.rmtree(path, ignore_errors=True)
        self.go_on(tmp_path, path, "CLAIM")
        assert not (tmp_path / "chk/next/claimed").exists()
        assert "could not be deleted" not in caplog.text

    def test_a_claim_outlives_its_driver(self, in_process: InProcessEngine, tmp_path: Path) -> None:
        path = self.snapshot(tmp_path, "savepoint")
        given = {"holdfast.job-id": "next", "execution.state-recovery.path": path}
        in_process.before_epoch = lambda spec: (_ for _ in ()).throw(SystemExit("the driver dies"))
        client = start(tmp_path, **given, **{"execution.state-recovery.claim-mode": "CLAIM"})
        with pytest.raises(SystemExit):
            client.get_job_execution_result().result(30)
        assert Path(path).exists()
        in_process.before_epoch = lambda spec: None
        resume(tmp_path, path, **{"holdfast.job-id": "next"})
        assert not Path(path).exists()
