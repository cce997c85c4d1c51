"""Spark ran subtasks twice: what the execution that does not count wrote is gone at the end of the job."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from holdfast.common import JobClient
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.errors import EpochError, JobExecutionError
from holdfast.runtime.epoch import EpochSpec
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import published
from tests.job.counting import EPOCHS, SINK_LEVEL, counting, counts_of, settings, staged

#: What a user has in the path of a sink beside what the job wrote.
FOREIGN = ["notes.json", "_holdfast_staging/another-job/sink/1-1-0-nonce.json", "_holdfast_staging/job/README"]


class Course:
    """Both tasks that write run twice in every epoch but the last, which has no rows."""

    def __init__(self, in_process: InProcessEngine, out: Path) -> None:
        self.most_strays = 0
        self._out = out
        self._in_process = in_process
        self.fail_in: tuple[int, int] | None = None
        self.fail_at_close = False
        in_process.repeated = lambda spec: set() if spec.close else {(SINK_LEVEL, 0), (SINK_LEVEL, 1)}
        in_process.before_epoch = self._before_epoch
        in_process.after_epoch = self._after_epoch
        for name in FOREIGN:
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            (out / name).write_text("")

    def _before_epoch(self, spec: EpochSpec) -> None:
        if (spec.attempt, spec.epoch) == self.fail_in or (self.fail_at_close and spec.close):
            raise EpochError("a worker died")

    def _after_epoch(self, spec: EpochSpec) -> None:
        self.most_strays = max(self.most_strays, len(self.strays()))

    def strays(self) -> list[str]:
        """Tasks of which two executions have written."""
        tasks = Counter(p.name.rpartition("-")[0] for p in staged(self._out) if p.parts[-3] == "job")
        return [task for task, executions in tasks.items() if executions > 1]

    def check(self, rows: list[tuple[int, int]]) -> None:
        assert self.most_strays > 0, "nothing was there to be aborted"
        left = {str(path.relative_to(self._out)) for path in staged(self._out)}
        assert left == {name for name in FOREIGN if name.startswith("_")}
        (self._out / FOREIGN[0]).unlink()
        assert published(self._out) == rows


def start(tmp_path: Path, checkpoints: bool, **changes: str) -> JobClient:
    given = settings(tmp_path, **changes)
    if not checkpoints:
        del given["execution.checkpointing.interval"]
    return counting(given, EPOCHS, FileSink.json(str(tmp_path / "out")))


CHECKPOINTS = pytest.mark.parametrize("checkpoints", [True, False], ids=["checkpoints", "no checkpoints"])


@CHECKPOINTS
def test_at_the_end_of_a_job(
    in_process: InProcessEngine, tmp_path: Path, checkpoints: bool, caplog: pytest.LogCaptureFixture
) -> None:
    course = Course(in_process, tmp_path / "out")
    start(tmp_path, checkpoints).get_job_execution_result().result()
    assert "did not close in order" not in caplog.text
    course.check(counts_of(EPOCHS))


def test_at_the_end_of_a_job_that_publishes_every_epoch(in_process: InProcessEngine, tmp_path: Path) -> None:
    course = Course(in_process, tmp_path / "out")
    start(tmp_path, False, **{"restart-strategy.type": "none"}).get_job_execution_result().result()
    course.check(counts_of(EPOCHS))


@CHECKPOINTS
def test_after_a_restart(in_process: InProcessEngine, tmp_path: Path, checkpoints: bool) -> None:
    course = Course(in_process, tmp_path / "out")
    course.fail_in = (1, 4)
    client = start(tmp_path, checkpoints)
    client.get_job_execution_result().result()
    assert client.get_history().restarts == 1
    course.check(counts_of(EPOCHS))


@CHECKPOINTS
def test_after_a_last_epoch_that_failed(
    in_process: InProcessEngine, tmp_path: Path, checkpoints: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """All results are published, and functions could not be closed: the job is finished all the same."""
    course = Course(in_process, tmp_path / "out")
    course.fail_at_close = True
    client = start(tmp_path, checkpoints)
    client.get_job_execution_result().result()
    assert "did not close in order: a worker died" in caplog.text
    assert client.get_history().restarts == 0
    course.check(counts_of(EPOCHS))


def test_what_a_lost_attempt_writes_while_the_next_one_runs(in_process: InProcessEngine, tmp_path: Path) -> None:
    """A task of an attempt that failed goes on for a while, as after the loss of a connection."""
    course = Course(in_process, tmp_path / "out")
    course.fail_in = (1, 4)
    staging = tmp_path / "out" / "_holdfast_staging" / "job"

    def after_epoch(spec: EpochSpec) -> None:
        if (spec.attempt, spec.epoch) == (2, 4):
            own = next(path for path in staging.rglob("2-4-*.json"))
            own.with_name("1-4-0-late.json").write_text('{"f0": 9, "f1": 9}\n')
            course.most_strays += 1

    in_process.after_epoch = after_epoch
    start(tmp_path, True).get_job_execution_result().result()
    course.check(counts_of(EPOCHS))


def test_at_a_cancel(in_process: InProcessEngine, tmp_path: Path) -> None:
    course = Course(in_process, tmp_path / "out")
    count = course._after_epoch

    def after_epoch(spec: EpochSpec) -> None:
        count(spec)
        if spec.epoch == 3:
            in_process.control.cancel()

    in_process.after_epoch = after_epoch
    start(tmp_path, True).get_job_execution_result().result()
    course.check(counts_of(EPOCHS[:3]))


def test_at_the_end_of_a_job_that_failed(in_process: InProcessEngine, tmp_path: Path) -> None:
    course = Course(in_process, tmp_path / "out")
    course.fail_in = (1, 4)
    with pytest.raises(JobExecutionError):
        start(tmp_path, True, **{"restart-strategy.type": "none"}).get_job_execution_result().result()
    course.check(counts_of(EPOCHS[:3]))
