"""What is durable by the time that sinks commit: the checkpoint that holds their rows, and that its commit begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.checkpoint.storage import FileCheckpointStorage
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import published
from tests.job.counting import EPOCHS, WatchedSink, counting, counts_of, settings


def test_a_checkpoint_and_the_begin_of_its_commit_are_durable_before_sinks_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, bool]] = []

    def look(place: int, recovering: bool) -> None:
        # As another driver would find it.
        storage = FileCheckpointStorage(str(tmp_path / "chk"), "job")
        newest = max(storage.seen_ids())
        storage.read_metadata(newest)
        seen.append((newest, newest in storage.commits_begun()))

    monkeypatch.setattr(WatchedSink, "before", staticmethod(look))
    with InProcessEngine().installed():
        job = counting(settings(tmp_path), EPOCHS, WatchedSink(tmp_path / "out"))
        job.get_job_execution_result().result(30)
    assert len({number for number, _ in seen}) > 1
    assert all(begun for _, begun in seen)
    assert published(tmp_path / "out") == counts_of(EPOCHS)
