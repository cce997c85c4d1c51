"""The daemon that keeps partitions with their Python processes, under Spark."""

from __future__ import annotations

import itertools
import os
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession as Spark
from pyspark.sql.functions import udf

from holdfast.spark.anchor import Anchor
from holdfast.spark.plan_text import explained
from holdfast.testing.chaos.processes import Process, wait_until

pytestmark = pytest.mark.slow

PARTITIONS = 2


def processes_of(spark: Spark) -> dict[int, int]:
    """Which process runs each of the partitions of a job, whose tasks run at the same time."""
    with tempfile.TemporaryDirectory() as folder:

        def of_partition(partition: int, _: Any) -> list[tuple[int, int]]:
            begun = Path(folder)
            (begun / str(partition)).touch()
            deadline = time.monotonic() + 10
            # Each has to see the other: one that is over leaves its process to the next.
            while len(list(begun.iterdir())) < PARTITIONS and time.monotonic() < deadline:
                time.sleep(0.002)
            return [(partition, os.getpid())]

        numbers = spark.sparkContext.parallelize(range(PARTITIONS), PARTITIONS)
        return dict(numbers.mapPartitionsWithIndex(of_partition).collect())


def test_partitions_stay_with_their_processes(spark: Spark) -> None:
    jobs = [processes_of(spark) for _ in range(30)]
    changes = sum(job != before for before, job in itertools.pairwise(jobs))
    # With Spark's own daemon it is every second job. A process that was not given a core in time is excused.
    assert changes <= 4
    assert all(len(set(job.values())) == PARTITIONS for job in jobs)


def test_broadcast_variables_are_where_their_tasks_are(spark: Spark) -> None:
    """Spark sends a worker those that it has not had on its connection; processes have tasks of many connections."""
    context = spark.sparkContext
    rng = random.Random(7)
    variables = [context.broadcast(f"value {number}") for number in range(4)]
    processes_of(spark)
    for _ in range(60):
        wanted = rng.sample(variables, rng.randrange(3))
        partitions = rng.randrange(1, PARTITIONS + 1)
        rows = context.parallelize(range(partitions), partitions)
        values = rows.map(lambda _, wanted=wanted: [variable.value for variable in wanted]).collect()
        assert values == [[variable.value for variable in wanted]] * partitions


def test_two_functions_of_a_stage(spark: Spark) -> None:
    """They run at the same time, each in a process of its own, and stay there."""

    @udf("long")
    def process_of_function(_: int) -> int:
        # Long enough for the other function to begin meanwhile.
        time.sleep(0.05)
        return os.getpid()

    def with_own(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            own = pa.array([os.getpid()] * batch.num_rows)
            yield pa.RecordBatch.from_arrays([batch.column(0), own], ["first", "second"])

    frame = spark.range(0, 2, 1, PARTITIONS).select(process_of_function("id"))
    jobs = [frame.mapInArrow(with_own, "first long, second long").collect() for _ in range(20)]
    assert all(len({process for row in job for process in row}) == 2 * PARTITIONS for job in jobs)
    assert sum(job != before for before, job in itertools.pairwise(jobs)) <= 4


def test_tasks_that_hang_are_killed_when_spark_cancels_them(spark: Spark, tmp_path: Path) -> None:
    for _ in range(5):
        processes_of(spark)
    context = spark.sparkContext

    def hang(partition: int, _: Any) -> list[int]:
        part = tmp_path / f"{partition}.part"
        part.write_text(str(os.getpid()))
        part.rename(tmp_path / f"{partition}.pid")
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


def test_a_process_that_dies_fails_its_task_alone(spark: Spark) -> None:
    processes_of(spark)

    def die(partition: int, _: Any) -> list[int]:
        os._exit(1)

    with pytest.raises(Exception, match="Python worker exited unexpectedly"):
        spark.sparkContext.parallelize([0], 1).mapPartitionsWithIndex(die).collect()
    for _ in range(3):
        assert len(set(processes_of(spark).values())) == PARTITIONS


def test_processes_that_are_killed_while_they_wait_are_replaced(spark: Spark) -> None:
    before = processes_of(spark)
    time.sleep(0.5)
    for pid in before.values():
        process = Process.read(pid)
        assert process is not None and process.kill()
    # Spark drops workers whose process is gone, and has new ones.
    after = processes_of(spark)
    assert not set(after.values()) & set(before.values())


def test_rows_of_an_anchor_are_made_without_python(spark: Spark) -> None:
    """Spark would start a daemon beside the one that runs tasks, whose environment is another one."""
    anchor = Anchor(spark, PARTITIONS)
    try:
        plan = explained(anchor.table)
        assert "LocalTableScan" in plan and "RDD" not in plan
    finally:
        anchor.release()


def test_every_anchor_has_rows_of_its_own(spark: Spark) -> None:
    """Jobs of one application have one each: what one lets go of, the other keeps."""
    released, kept = Anchor(spark, PARTITIONS), Anchor(spark, PARTITIONS)
    try:
        released.release()
        assert not released.table.storageLevel.useMemory and kept.table.storageLevel.useMemory
    finally:
        kept.release()
