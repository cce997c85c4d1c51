"""The daemon that keeps partitions with their Python processes, under Spark."""

from __future__ import annotations

import itertools
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.testing.chaos.processes import Process, wait_until

pytestmark = pytest.mark.slow

PARTITIONS = 2


def processes_of(spark: Any) -> dict[int, int]:
    """Which process runs each of the partitions of a job."""

    def of_partition(partition: int, _: Any) -> list[tuple[int, int]]:
        # Long enough for the tasks to run at the same time.
        time.sleep(0.02)
        return [(partition, os.getpid())]

    numbers = spark.sparkContext.parallelize(range(PARTITIONS), PARTITIONS)
    return dict(numbers.mapPartitionsWithIndex(of_partition).collect())


def test_partitions_stay_with_their_processes(spark: Any) -> None:
    jobs = [processes_of(spark) for _ in range(30)]
    changes = sum(job != before for before, job in itertools.pairwise(jobs))
    # With Spark's own daemon it is every second job. A process that was not given a core in time is excused.
    assert changes <= 4
    assert all(len(set(job.values())) == PARTITIONS for job in jobs)


def test_tasks_that_hang_are_killed_when_spark_cancels_them(spark: Any, tmp_path: Path) -> None:
    for _ in range(5):
        processes_of(spark)
    context = spark.sparkContext

    def hang(partition: int, _: Any) -> list[int]:
        (tmp_path / f"{partition}.pid").write_text(str(os.getpid()))
        while True:
            time.sleep(0.1)

    failures = []

    def run() -> None:
        context.setJobGroup("hangs", "tasks that hang", interruptOnCancel=True)
        try:
            context.parallelize(range(PARTITIONS), PARTITIONS).mapPartitionsWithIndex(hang).collect()
        except Exception as failure:
            failures.append(failure)

    job = threading.Thread(target=run)
    job.start()
    wait_until(lambda: len(list(tmp_path.glob("*.pid"))) == PARTITIONS or None, 30, "tasks that hang")
    hanging = [Process.read(int(file.read_text())) for file in tmp_path.glob("*.pid")]
    context.cancelJobGroup("hangs")
    job.join(30)
    assert len(failures) == 1
    for process in hanging:
        wait_until(lambda process=process: process is None or not process.alive or None, 30, "end of a task")
    assert len(set(processes_of(spark).values())) == PARTITIONS


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_process_that_dies_fails_its_task_alone(spark: Any) -> None:
    processes_of(spark)

    def die(partition: int, _: Any) -> list[int]:
        os._exit(1)

    with pytest.raises(Exception, match="Python worker exited unexpectedly"):
        spark.sparkContext.parallelize([0], 1).mapPartitionsWithIndex(die).collect()
    for _ in range(3):
        assert len(set(processes_of(spark).values())) == PARTITIONS


def test_processes_that_are_killed_while_they_wait_are_replaced(spark: Any) -> None:
    before = processes_of(spark)
    time.sleep(0.5)
    for pid in before.values():
        process = Process.read(pid)
        assert process is not None and process.kill()
    # Spark drops workers whose process is gone, and has new ones.
    after = processes_of(spark)
    assert not set(after.values()) & set(before.values())
