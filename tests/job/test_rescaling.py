"""Another parallelism for a running job, without Spark: exact, not counted, and refused where it cannot be."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from holdfast.checkpoint.ids import LocalCheckpointIdCounter
from holdfast.checkpoint.storage import FileCheckpointStorage, MemoryCheckpointStorage
from holdfast.common import JobClient
from holdfast.errors import CheckpointError, HoldfastError, ProgramError, StorageError
from holdfast.runtime.epoch import EpochSpec
from holdfast.state.snapshot_files import MemorySnapshotWriter
from holdfast.testing.chaos.processes import wait_until
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import published
from tests.job.counting import WatchedSink, counting, counts_of, settings

EPOCHS = [[(row % 7, row) for row in range(first, first + 5)] for first in range(0, 400, 5)]
NEVER = {"execution.checkpointing.interval": "1000000 h"}


def start(tmp_path: Path, **changes: str) -> JobClient:
    return counting(settings(tmp_path, **changes), EPOCHS, WatchedSink(tmp_path / "out"), ends=True)


@pytest.fixture(autouse=True)
def unhurried(in_process: InProcessEngine) -> None:
    """Epochs take a moment, so that a job is still running when it is asked for something."""
    in_process.before_epoch = lambda spec: time.sleep(0.02)


def rescale(client: JobClient, parallelism: int) -> int:
    return client._job.gateway.rescale(parallelism).result(30)


def wait_for_epochs(engine: InProcessEngine, count: int) -> None:
    wait_until(lambda: len(engine.epochs) >= count or None, 30, f"{count} epochs")


def slots_of(client: JobClient) -> set[int]:
    return {vertex.parallelism for vertex in client.get_execution_graph().vertices}


@pytest.mark.parametrize("changes", [{}, NEVER], ids=["periodic", "no checkpoint is due"])
def test_a_running_job_goes_on_with_more_subtasks_and_with_fewer(
    in_process: InProcessEngine, tmp_path: Path, changes: dict[str, str]
) -> None:
    client = start(tmp_path, **changes)
    wait_for_epochs(in_process, 3)
    assert rescale(client, 5) == 5
    assert 5 in slots_of(client)
    wait_for_epochs(in_process, len(in_process.epochs) + 3)
    assert rescale(client, 1) == 1
    history = client.get_job_execution_result().result(60).get_history()
    assert published(tmp_path / "out") == counts_of(EPOCHS)
    assert slots_of(client) == {1}
    assert (history.restarts, list(history.failures)) == (0, []), "to rescale is no failure"
    assert len({attempt for attempt, _ in in_process.epochs}) == 3
    epochs = [epoch for _, epoch in in_process.epochs]
    assert epochs == sorted(set(epochs)), "an epoch was run twice"


def test_a_failure_while_the_job_is_to_be_rescaled_does_not_forget_it(
    in_process: InProcessEngine, tmp_path: Path
) -> None:
    client = start(tmp_path, **NEVER)
    wait_for_epochs(in_process, 3)
    failed: list[int] = []

    def fail_once(spec: EpochSpec) -> None:
        if spec.checkpoint is not None and not failed:
            failed.append(spec.epoch)
            raise RuntimeError("the epoch with the checkpoint is lost")

    in_process.after_epoch = fail_once
    assert rescale(client, 3) == 3
    assert failed
    client.get_job_execution_result().result(60)
    assert published(tmp_path / "out") == counts_of(EPOCHS)
    assert client.get_history().restarts == 1, "the failure counts, the rescaling does not"


@contextmanager
def full_disk() -> Iterator[None]:
    def full(*_: object) -> None:
        raise StorageError("the disk is full")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FileCheckpointStorage, "write_metadata", full)
        yield


@contextmanager
def full_memory() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryCheckpointStorage, "writer", lambda *_: MemorySnapshotWriter(0))
        yield


@contextmanager
def no_number() -> Iterator[None]:
    def away(_: object) -> int:
        raise StorageError("the ensemble is away")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalCheckpointIdCounter, "next", away)
        yield


IN_MEMORY = {"execution.checkpointing.storage": "jobmanager"}


@pytest.mark.parametrize(
    ("changes", "trouble", "why"),
    [
        ({}, full_disk, "Failure to finalize checkpoint. the disk is full"),
        (IN_MEMORY, full_memory, r"could not write its snapshot.*checkpoints in the driver's memory take at most 0"),
        ({}, no_number, "the ensemble is away"),
    ],
)
def test_a_job_goes_on_as_it_is_when_the_checkpoint_fails_that_it_was_to_go_on_from(
    in_process: InProcessEngine,
    tmp_path: Path,
    changes: dict[str, str],
    trouble: Callable[[], AbstractContextManager[None]],
    why: str,
) -> None:
    client = start(tmp_path, **NEVER, **changes)
    wait_for_epochs(in_process, 3)
    before = slots_of(client)
    with trouble(), pytest.raises(CheckpointError, match=rf"not rescaled to 3 and goes on with parallelism 2.*{why}"):
        rescale(client, 3)
    wait_for_epochs(in_process, len(in_process.epochs) + 3)
    assert slots_of(client) == before
    assert rescale(client, 3) == 3, "it may be asked for again"
    history = client.get_job_execution_result().result(60).get_history()
    assert (history.restarts, list(history.failures)) == (0, []), "no failure that the job tolerates, or not"
    assert published(tmp_path / "out") == counts_of(EPOCHS)


def test_the_same_parallelism_changes_nothing(in_process: InProcessEngine, tmp_path: Path) -> None:
    client = start(tmp_path)
    wait_for_epochs(in_process, 2)
    assert rescale(client, 2) == 2
    client.get_job_execution_result().result(60)
    assert len({attempt for attempt, _ in in_process.epochs}) == 1


def test_more_than_the_maximum_parallelism_is_refused_and_the_job_goes_on(
    in_process: InProcessEngine, tmp_path: Path
) -> None:
    client = start(tmp_path, **{"pipeline.max-parallelism": "4"})
    wait_for_epochs(in_process, 2)
    with pytest.raises(ProgramError, match="above its maximum parallelism 4"):
        rescale(client, 5)
    client.get_job_execution_result().result(60)
    assert published(tmp_path / "out") == counts_of(EPOCHS)


def test_a_job_that_has_ended_is_not_rescaled(in_process: InProcessEngine, tmp_path: Path) -> None:
    client = start(tmp_path)
    client.get_job_execution_result().result(60)
    with pytest.raises(HoldfastError, match="not running"):
        rescale(client, 3)


def test_who_asked_is_told_when_the_job_is_cancelled_instead(in_process: InProcessEngine, tmp_path: Path) -> None:
    client = start(tmp_path, **NEVER)
    wait_for_epochs(in_process, 2)
    in_process.before_epoch = lambda spec: client._job.master.control.cancel()
    with pytest.raises(HoldfastError, match="not rescaled to 3: it is CANCELED"):
        rescale(client, 3)


def test_a_stop_that_was_asked_for_beside_it_comes_first(in_process: InProcessEngine, tmp_path: Path) -> None:
    client = start(tmp_path, **NEVER, **{"execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints")})
    wait_for_epochs(in_process, 2)
    asked = threading.Event()

    def both_at_once(spec: EpochSpec) -> None:
        asked.wait(30)

    in_process.before_epoch = both_at_once
    stopped = client.stop_with_savepoint(False)
    rescaled = client._job.gateway.rescale(3)
    wait_until(lambda: (tmp_path / "savepoints").exists() or None, 30, "the place of the savepoint")
    time.sleep(0.5)
    asked.set()
    assert "savepoint" in stopped.result(60)
    with pytest.raises(HoldfastError, match="it is FINISHED"):
        rescaled.result(60)


def test_an_engine_that_cannot_be_opened_again_costs_no_checkpoint(
    in_process: InProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = start(tmp_path)
    wait_for_epochs(in_process, 3)

    def gone(*_: object) -> None:
        raise OSError("the application is gone")

    monkeypatch.setattr(InProcessEngine, "open", gone)
    with pytest.raises(HoldfastError, match="it is FAILED"):
        rescale(client, 3)
    with pytest.raises(OSError, match="the application is gone"):
        client.get_job_execution_result().result(60)
    assert list((tmp_path / "chk").glob("*/chk-*/_metadata")), "whoever starts the job again goes on from there"
    monkeypatch.undo()
    start(tmp_path).get_job_execution_result().result(60)
    assert published(tmp_path / "out") == counts_of(EPOCHS)
