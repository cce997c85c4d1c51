"""Whole jobs that read a ``TestSource``: it fails on purpose, pauses and ends, and nothing is lost or doubled."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import JobStatus, Types, WatermarkStrategy
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.errors import JobExecutionError
from holdfast.testing import TestSource
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import PAIR, environment, published
from tests.job.counting import count, settings

ROWS = [(n % 3, n) for n in range(12)]


def start(directory: Path, items: list[Any], **changes: str) -> Any:
    """A job that counts the rows of each key."""
    env = environment(**settings(directory, **changes))
    source = env.from_source(TestSource(items, PAIR), WatermarkStrategy.no_watermarks(), "items")
    counts = source.key_by(lambda row: row[0], Types.LONG()).map_with_state(count, state_type=int, output_type=PAIR)
    counts.sink_to(FileSink.json(str(directory / "out")))
    return env.execute_async()


def counted(rows: list[tuple[int, int]]) -> list[tuple[int, int]]:
    seen: dict[int, int] = {}
    for key, _ in rows:
        seen[key] = seen.get(key, 0) + 1
    return sorted((key, number) for key, total in seen.items() for number in range(1, total + 1))


def test_a_job_goes_over_two_failures_and_a_pause_and_ends(in_process: InProcessEngine, tmp_path: Path) -> None:
    abort, pause = TestSource.ABORT, TestSource.PAUSE
    items = [*ROWS[:3], pause, *ROWS[3:5], abort, *ROWS[5:8], pause, ROWS[8], abort, *ROWS[9:], TestSource.END]
    job = start(tmp_path, items)
    job.get_job_execution_result().result()
    assert published(tmp_path / "out") == counted(ROWS)
    assert {attempt for attempt, _ in in_process.epochs} == {1, 2, 3}


def test_a_failure_that_nothing_makes_up_for_is_the_jobs_own(in_process: InProcessEngine, tmp_path: Path) -> None:
    job = start(tmp_path, [ROWS[0], TestSource.ABORT], **{"restart-strategy.type": "none"})
    with pytest.raises(JobExecutionError, match=r"TestSource\.ABORT, which is item 1"):
        job.get_job_execution_result().result()


def test_without_an_end_the_job_stays_until_it_is_stopped(in_process: InProcessEngine, tmp_path: Path) -> None:
    idle = threading.Event()
    in_process.after_epoch = lambda spec: idle.set() if spec.epoch > 2 else None
    job = start(tmp_path, ROWS)
    assert idle.wait(60)
    savepoint = job.stop_with_savepoint(False, str(tmp_path / "savepoints")).result()
    assert job.get_job_status().result() is JobStatus.FINISHED
    assert published(tmp_path / "out") == counted(ROWS)
    more = [*ROWS, *ROWS, TestSource.END]
    job = start(tmp_path, more, **{"execution.savepoint.path": savepoint, "holdfast.job-id": "next"})
    job.get_job_execution_result().result()
    assert published(tmp_path / "out") == counted([*ROWS, *ROWS])
