"""Checkpoints of a whole job that come to nothing, then one that completes, then a restore."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import failpoints
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.errors import EpochError
from holdfast.runtime.epoch import EpochSpec
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import published
from tests.job.counting import EPOCHS, counting, counts_of, settings, staged
from tests.kit.faults import FaultPlan


@pytest.fixture
def faults(tmp_path: Path) -> Iterator[FaultPlan]:
    yield FaultPlan(tmp_path / "faults")
    failpoints.install(None)


@pytest.mark.parametrize("backend", ["heap", "lmdb"])
@pytest.mark.parametrize("point", ["task.uploading", "checkpoint.before-metadata"])
@pytest.mark.parametrize("aborted", [(2,), (2, 3), (1, 3)], ids=str)
def test_what_an_aborted_checkpoint_held_is_in_the_next_one(
    in_process: InProcessEngine, faults: FaultPlan, tmp_path: Path, backend: str, point: str, aborted: tuple[int, ...]
) -> None:
    """State and open transactions: nothing is published twice, and nothing is lost."""
    for epoch in aborted:
        faults.add(point, "raise:ENOSPC", epoch=epoch)
    failpoints.install(faults.path)
    seen: list[list[tuple[int, ...]]] = []

    def before_epoch(spec: EpochSpec) -> None:
        seen.append(published(tmp_path / "out"))
        if (spec.attempt, spec.epoch) == (1, 6):
            raise EpochError("a worker died")

    in_process.before_epoch = before_epoch
    in_process.last_checkpoint = 4
    given = settings(
        tmp_path,
        **{
            "execution.checkpointing.tolerable-failed-checkpoints": "9",
            "execution.checkpointing.data-inline-threshold": "0 b",
            "state.backend.type": backend,
        },
    )
    client = counting(given, EPOCHS, FileSink.json(str(tmp_path / "out")))
    client.get_job_execution_result().result()
    counts = client.get_checkpoint_statistics().counts
    assert not faults.not_reached()
    assert (counts.failed, counts.restored) == (len(aborted), 1)
    # What is seen before epoch n is what the last checkpoint before it holds: 4 is the last one.
    for epoch in range(1, 7):
        durable = max((e for e in range(1, min(epoch, 5)) if e not in aborted), default=0)
        assert seen[epoch - 1] == counts_of(EPOCHS[:durable]), f"before epoch {epoch}"
    assert in_process.epochs[:6] == [(1, 1), (1, 2), (1, 3), (1, 4), (1, 5), (2, 5)]
    assert published(tmp_path / "out") == counts_of(EPOCHS)
    assert staged(tmp_path / "out") == []
