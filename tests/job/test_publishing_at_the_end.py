"""The end of the input without checkpoints: everything is published now, once, or the job says what is left to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.common import JobClient
from holdfast.errors import JobExecutionError, PartialOutputError
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import published
from tests.job.counting import EPOCHS, WatchedSink, counting, counts_of, settings, staged


class BreakingCommits:
    """Some of the first calls of ``commit`` break in their middle: one transaction is published, the next is not."""

    def __init__(self, patch: pytest.MonkeyPatch, broken: int) -> None:
        self.calls = 0
        self._broken = broken
        patch.setattr(WatchedSink, "before", staticmethod(self._before))

    def _before(self, place: int, recovering: bool) -> None:
        assert not recovering, "without checkpoints nothing is recovered"
        self.calls += place == 0
        if place == 1 and self.calls <= self._broken:
            raise OSError("the sink's disk is away")


def start(tmp_path: Path, *sinks: WatchedSink) -> JobClient:
    """Starts a job that may restart, so that nothing is published before the end."""
    given = settings(tmp_path)
    del given["execution.checkpointing.interval"]
    return counting(given, EPOCHS, *(sinks or [WatchedSink(tmp_path / "out")]))


@pytest.mark.parametrize("broken", [0, 1, 2])
def test_a_commit_that_breaks_is_made_again(
    in_process: InProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: int
) -> None:
    commits = BreakingCommits(monkeypatch, broken)
    client = start(tmp_path)
    client.get_job_execution_result().result()
    assert commits.calls == broken + 1
    assert client.get_history().attempt == 1
    assert published(tmp_path / "out") == counts_of(EPOCHS)
    assert staged(tmp_path / "out") == []


def test_a_commit_that_goes_on_breaking_ends_the_job(
    in_process: InProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another attempt would publish what is published a second time, although the strategy would allow one."""
    commits = BreakingCommits(monkeypatch, broken=99)
    client = start(tmp_path)
    with pytest.raises(JobExecutionError, match="another attempt cannot mend it") as caught:
        client.get_job_execution_result().result()
    assert isinstance(caught.value.__cause__, PartialOutputError)
    assert "the sink's disk is away" in str(caught.value)
    assert "Remove what was published and start the job anew" in str(caught.value)
    assert commits.calls == 3
    assert (client.get_history().attempt, client.get_history().restarts) == (1, 0)
    rows = published(tmp_path / "out")
    assert rows and len(set(rows)) == len(rows) < len(counts_of(EPOCHS))


def test_a_cancel_that_comes_meanwhile_does_not_hide_it(
    in_process: InProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def before(place: int, recovering: bool) -> None:
        in_process.control.cancel()
        if place == 1:
            raise OSError("the sink's disk is away")

    monkeypatch.setattr(WatchedSink, "before", staticmethod(before))
    client = start(tmp_path)
    with pytest.raises(JobExecutionError, match="only in part"):
        client.get_job_execution_result().result()
    assert client.get_job_status().result().name == "FAILED"


def test_of_two_sinks_the_one_that_is_done_is_left_alone(
    in_process: InProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    def before(place: int, recovering: bool) -> None:
        calls.append(place)
        if len(calls) == transactions + 2:  # in the middle of the second sink
            raise OSError("the sink's disk is away")

    monkeypatch.setattr(WatchedSink, "before", staticmethod(before))
    transactions = 2 * len(EPOCHS)
    client = start(tmp_path, WatchedSink(tmp_path / "one"), WatchedSink(tmp_path / "two"))
    client.get_job_execution_result().result()
    assert calls == [*range(transactions), 0, 1, *range(transactions)]
    for name in ("one", "two"):
        assert published(tmp_path / name) == counts_of(EPOCHS)
