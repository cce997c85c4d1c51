"""A job whose driver has to wait for the leadership, seen through its client."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import failpoints
from holdfast.checkpoint.driver_record import DriverRecord
from holdfast.checkpoint.job_end import JobEnd
from holdfast.checkpoint.job_home import JobHome
from holdfast.checkpoint.lease import LeaseRecord
from holdfast.checkpoint.zookeeper.leadership import ZooKeeperLeadership
from holdfast.common import JobStatus
from holdfast.common.job_client import JobClient
from holdfast.errors import ConfigurationError, HoldfastError, JobEndedError, JobExecutionError, LeadershipLostError
from holdfast.runtime.epoch import EpochSpec
from holdfast.testing.chaos.processes import wait_until
from holdfast.testing.in_process import InProcessEngine
from holdfast.types.settings import CheckpointSettings
from tests.integration.programs import published
from tests.job.counting import EPOCHS, WatchedSink, counting, counts_of, settings
from tests.kit.faults import FaultPlan
from tests.kit.zookeeper import ZooKeeperServer

ADDRESS = "http://127.0.0.1:8081"


@pytest.fixture
def given(zookeeper: ZooKeeperServer, tmp_path: Path) -> dict[str, str]:
    return settings(
        tmp_path,
        **{
            "high-availability": "zookeeper",
            "high-availability.zookeeper.quorum": zookeeper.quorum,
            "high-availability.zookeeper.path.root": f"/{tmp_path.name}",
            "high-availability.zookeeper.client.session-timeout": "2 s",
            "high-availability.zookeeper.client.retry-wait": "50 ms",
        },
    )


@pytest.fixture
def leader(zookeeper: ZooKeeperServer, tmp_path: Path) -> Iterator[JobHome]:
    """Another driver of the same job, which leads it."""
    there = zookeeper.settings(root=f"/{tmp_path.name}")
    home = JobHome.of("job", CheckpointSettings(directory=str(tmp_path / "chk")), there)
    home.leadership.acquire(time.sleep)
    yield home
    home.leadership.release()


def status_of(client: JobClient) -> JobStatus:
    return client.get_job_status().result()


def waiting(client: JobClient) -> JobClient:
    wait_until(lambda: status_of(client) is JobStatus.INITIALIZING or None, 20, "a job that waits")
    return client


def test_alone_a_driver_leads_and_finishes(in_process: InProcessEngine, given: dict[str, str], tmp_path: Path) -> None:
    client = counting(given, EPOCHS, WatchedSink(tmp_path / "out"))
    client.get_job_execution_result().result(30)
    assert status_of(client) is JobStatus.FINISHED
    assert published(tmp_path / "out") == counts_of(EPOCHS)
    assert not list((tmp_path / "chk/job").glob("chk-*"))


def test_it_waits_and_then_runs(
    in_process: InProcessEngine, given: dict[str, str], leader: JobHome, tmp_path: Path
) -> None:
    leader.leadership.next_attempt()
    client = waiting(counting(given, EPOCHS, WatchedSink(tmp_path / "out")))
    assert client.is_running() and in_process.epochs == []
    assert client.get_checkpoint_statistics().counts.completed == 0
    leader.leadership.release()
    client.get_job_execution_result().result(30)
    assert {attempt for attempt, _ in in_process.epochs} == {2}
    assert published(tmp_path / "out") == counts_of(EPOCHS)


def test_it_can_be_cancelled_while_it_waits(
    in_process: InProcessEngine, given: dict[str, str], leader: JobHome, tmp_path: Path
) -> None:
    client = waiting(counting(given, EPOCHS, WatchedSink(tmp_path / "out")))
    client.cancel().result(10)
    assert status_of(client) is JobStatus.CANCELED
    # The job itself is the leader's.
    leader.leadership.check()
    assert in_process.epochs == []


def test_it_ends_when_the_leader_has_finished_the_job(
    in_process: InProcessEngine, given: dict[str, str], leader: JobHome, tmp_path: Path
) -> None:
    client = waiting(counting(given, EPOCHS, WatchedSink(tmp_path / "out")))
    time.sleep(0.5)
    leader.leadership.announce_end(JobEnd.now("FINISHED"))
    leader.leadership.release()
    client.get_job_execution_result().result(10)
    assert status_of(client) is JobStatus.FINISHED
    assert in_process.epochs == []


def test_it_tells_when_the_job_failed_in_the_leader(
    in_process: InProcessEngine, given: dict[str, str], leader: JobHome, tmp_path: Path
) -> None:
    client = waiting(counting(given, EPOCHS, WatchedSink(tmp_path / "out")))
    time.sleep(0.5)
    leader.leadership.announce_end(JobEnd.now("FAILED"))
    leader.leadership.release()
    with pytest.raises(JobExecutionError, match=r"failed at .* in the driver that led it while this one waited"):
        client.get_job_execution_result().result(10)
    assert status_of(client) is JobStatus.FAILED


@pytest.mark.parametrize("how", ["FINISHED", "stopped", "CANCELED"])
def test_an_end_that_the_leader_recorded_and_could_not_announce(
    in_process: InProcessEngine, given: dict[str, str], tmp_path: Path, how: str
) -> None:
    """It is that of the standby too. Who comes later is refused."""
    faults = FaultPlan(tmp_path / "faults")
    faults.add("driver.end-recorded", "raise")
    given["execution.checkpointing.savepoint-dir"] = str(tmp_path / "savepoints")
    sink, ends = WatchedSink(tmp_path / "out"), how == "FINISHED"
    in_process.before_epoch = lambda spec: time.sleep(0.02)
    leader = counting(given, EPOCHS * 10, sink, ends=ends)
    wait_until(lambda: len(in_process.epochs) > 3 or None, 20, "a leader")
    standby = waiting(counting(given, EPOCHS * 10, sink, ends=ends))
    leadership = standby._job.gateway.master.checkpoints.leadership
    assert isinstance(leadership, ZooKeeperLeadership)
    # Ends that are recorded before it has looked are none that it stood by.
    wait_until(lambda: leadership._known_outcome is not None or None, 20, "a standby that waits")
    failpoints.install(faults.path)
    try:
        if how == "stopped":
            leader.stop_with_savepoint(False)
        elif how == "CANCELED":
            leader._job.gateway.trigger_savepoint(cancel_job=True)
        with pytest.raises(failpoints.FailpointTriggered):
            leader.get_job_execution_result().result(30)
        result = standby.get_job_execution_result().result(30)
    finally:
        failpoints.install(None)
    assert status_of(standby).name == ("CANCELED" if how == "CANCELED" else "FINISHED")
    assert {attempt for attempt, _ in in_process.epochs} == {1}
    savepoints = [str(path) for path in (tmp_path / "savepoints").glob("*")]
    assert savepoints == ([result.get_savepoint_path()] if result.get_savepoint_path() else [])
    assert bool(savepoints) is not ends
    assert not list((tmp_path / "chk/job").glob("chk-*"))
    with pytest.raises(JobEndedError):
        counting(given, EPOCHS, sink).get_job_execution_result().result(30)


def test_failures_count_anew_when_the_job_comes_back_to_a_driver(
    in_process: InProcessEngine, given: dict[str, str], tmp_path: Path
) -> None:
    """Another one may have brought it on in between."""

    def fail(spec: EpochSpec) -> None:
        if spec.attempt < 6:
            raise LeadershipLostError("the session ended") if spec.attempt == 3 else HoldfastError("the same again")

    in_process.before_epoch = fail
    given["holdfast.restart.same-failures"] = "3"
    client = counting(given, EPOCHS, WatchedSink(tmp_path / "out"))
    client.get_job_execution_result().result(30)
    assert client.get_history().attempt == 6
    assert published(tmp_path / "out") == counts_of(EPOCHS)


def test_a_job_that_was_finished_is_not_begun_again(
    in_process: InProcessEngine, given: dict[str, str], tmp_path: Path
) -> None:
    counting(given, EPOCHS, WatchedSink(tmp_path / "out")).get_job_execution_result().result(30)
    again = counting(given, EPOCHS, WatchedSink(tmp_path / "out"))
    with pytest.raises(Exception, match=r"has ended before \(FINISHED at .*the node /.*/job/ended of ZooKeeper"):
        again.get_job_execution_result().result(30)
    assert published(tmp_path / "out") == counts_of(EPOCHS)


def test_a_job_that_is_taken_away_ends_without_a_trace(in_process: InProcessEngine, tmp_path: Path) -> None:
    """Without ZooKeeper: another driver took the lease, and ended."""

    def take_away(spec: EpochSpec) -> None:
        if spec.epoch == 4:
            lease = LeaseRecord(DriverRecord.of_this_process(leased=True), 1_000, released=True)
            (tmp_path / "chk/job/attempts/2").write_bytes(lease.encode())

    in_process.before_epoch = take_away
    client = counting(settings(tmp_path), EPOCHS, WatchedSink(tmp_path / "out"))
    with pytest.raises(JobExecutionError, match="was taken from this driver"):
        client.get_job_execution_result().result(30)
    assert status_of(client) is JobStatus.SUSPENDED
    assert published(tmp_path / "out") == counts_of(EPOCHS[:3])
    # The next one goes on from the checkpoint that was completed last.
    in_process.before_epoch = lambda spec: None
    counting(settings(tmp_path), EPOCHS, WatchedSink(tmp_path / "out")).get_job_execution_result().result(30)
    assert published(tmp_path / "out") == counts_of(EPOCHS)


@pytest.mark.parametrize("missing", ["high-availability.zookeeper.quorum", "holdfast.job-id"])
def test_what_must_be_set(in_process: InProcessEngine, given: dict[str, str], tmp_path: Path, missing: str) -> None:
    del given[missing]
    with pytest.raises(ConfigurationError, match=f"is 'zookeeper' and '{missing}' is not set"):
        counting(given, EPOCHS, WatchedSink(tmp_path / "out"))


def test_the_storage_directory_of_high_availability_is_one_for_checkpoints(
    in_process: InProcessEngine, given: dict[str, str], tmp_path: Path
) -> None:
    given["high-availability.storageDir"] = given.pop("execution.checkpointing.dir")
    counting(given, EPOCHS, WatchedSink(tmp_path / "out")).get_job_execution_result().result(30)
    assert (tmp_path / "chk/job/attempts/1").exists()
