"""What EXACTLY_ONCE and AT_LEAST_ONCE mean: the table in docs/concepts.md, cell by cell."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future
from pathlib import Path

import pytest

from holdfast.common.job_client import JobClient
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.runtime.epoch import EpochSpec
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import published
from tests.job.counting import EPOCHS, counting, counts_of, settings

#: No checkpoint completes before the job ends: the first one comes at random within the interval.
LATE = {"execution.checkpointing.interval": "1000000 h"}


def start(directory: Path, mode: str, **changes: str) -> JobClient:
    given = settings(directory, **{"execution.checkpointing.mode": mode, **changes})
    return counting(given, EPOCHS, FileSink.json(str(directory / "out")))


#: How many epochs' rows are visible ahead of each epoch, where the fourth has the only checkpoint.
VISIBLE = {"EXACTLY_ONCE": [0, 0, 0, 0, 4, 4], "AT_LEAST_ONCE": [0, 1, 2, 3, 4, 5]}


@pytest.mark.parametrize("mode", VISIBLE)
def test_rows_become_visible_with_their_checkpoint_or_their_epoch(tmp_path: Path, mode: str) -> None:
    """In the middle of the job: exactly once, nothing before the checkpoint has completed, then all that it holds."""
    found: list[list[tuple[int, ...]]] = []
    with_checkpoint: list[int] = []
    client: Future[JobClient] = Future()

    def look(spec: EpochSpec) -> None:
        if len(found) < len(EPOCHS):
            found.append(published(tmp_path / "out"))
        if spec.checkpoint is not None:
            with_checkpoint.append(spec.epoch)
        if spec.epoch == 3 and spec.attempt == 1:
            client.result(30).trigger_checkpoint()

    with InProcessEngine(before_epoch=look).installed():
        client.set_result(start(tmp_path, mode, **LATE))
        client.result().get_job_execution_result().result(30)
    assert with_checkpoint[0] == 4
    assert found == [counts_of(EPOCHS[:epochs]) for epochs in VISIBLE[mode]]


@pytest.mark.parametrize("mode", ["EXACTLY_ONCE", "AT_LEAST_ONCE"])
def test_rows_that_a_checkpoint_holds_are_published_once_whatever_fails(tmp_path: Path, mode: str) -> None:
    with failing_at(4).installed():
        start(tmp_path, mode).get_job_execution_result().result(30)
    assert published(tmp_path / "out") == counts_of(EPOCHS)


@pytest.mark.parametrize(("mode", "times"), [("EXACTLY_ONCE", 1), ("AT_LEAST_ONCE", 2)])
def test_rows_since_the_last_checkpoint_behind_a_restart(tmp_path: Path, mode: str, times: int) -> None:
    """State is exact in both: every row that is published again has the count that it had."""
    with failing_at(4).installed():
        client = start(tmp_path, mode, **LATE)
        client.get_job_execution_result().result(30)
    again = Counter(counts_of(EPOCHS[:3]))
    expected = Counter(counts_of(EPOCHS)) + Counter({row: times - 1 for row in again})
    assert Counter(published(tmp_path / "out")) == expected


def failing_at(epoch: int) -> InProcessEngine:
    """An engine whose first attempt fails before this epoch."""

    def fail(spec: EpochSpec) -> None:
        if spec.epoch == epoch and spec.attempt == 1:
            raise ValueError("once")

    return InProcessEngine(before_epoch=fail)
