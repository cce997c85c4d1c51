"""Plans that are made once and run again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import SparkSession as Spark

from holdfast.common import Configuration, Types
from holdfast.datastream import StreamExecutionEnvironment
from holdfast.spark.internals.planned_rows import PlannedRows
from holdfast.spark.internals.repeated_plan import RepeatedPlan
from holdfast.spark.session_settings import changed_settings
from holdfast.testing.chaos.processes import wait_until

pytestmark = pytest.mark.slow

PARTITIONS = 2
ZONE = "spark.sql.session.timeZone"
LARGE_TYPES = "spark.sql.execution.arrow.useLargeVarTypes"


def shuffled(spark: Spark, tell: Any, fails: bool = False) -> DataFrame:
    """What ``tell`` says in each partition, sent through an exchange, behind which it may fail."""

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.record_batch([pa.array([tell()], pa.binary())], names=["payload"])

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if fails:
                raise ValueError("as it was told")
            yield batch

    told = spark.range(0, PARTITIONS, 1, PARTITIONS).mapInArrow(rows, "payload binary")
    with changed_settings(spark, {"spark.sql.adaptive.enabled": "false"}):
        frame = told.repartition(PARTITIONS, "payload").mapInArrow(pass_on, "payload binary")
        frame._jdf.queryExecution().executedPlan()
    return frame


def repeated(spark: Spark, tell: Any, fails: bool = False) -> RepeatedPlan:
    frame = shuffled(spark, tell, fails)
    return RepeatedPlan(spark, frame, frame._jdf.queryExecution().executedPlan())


def over_rows(spark: Spark, *names: str) -> RepeatedPlan:
    """Numbers of as many RDDs as there are names, each written behind the name of its RDD, through an exchange."""

    def named(name: str) -> Any:
        def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                found = [f"{name} {number}".encode() for number in batch.column(0).to_pylist()]
                yield pa.record_batch([pa.array(found, pa.binary())], names=["payload"])

        return rows

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    shape = numbers(spark, 0, 1).shape
    with changed_settings(spark, {"spark.sql.adaptive.enabled": "false"}):
        parts = [shape.empty(spark).mapInArrow(named(name), "payload binary") for name in names]
        sent = reduce(DataFrame.union, parts).repartition(PARTITIONS, "payload")
        frame = sent.mapInArrow(pass_on, "payload binary")
        return RepeatedPlan(spark, frame, frame._jdf.queryExecution().executedPlan())


def numbers(spark: Spark, first: int, count: int, partitions: int = 1) -> PlannedRows:
    return PlannedRows.of(spark.range(first, first + count, 1, partitions))


def shuffle_files(spark: Spark) -> set[Path]:
    return set(Path(spark.sparkContext.getConf().get("spark.local.dir", "")).rglob("shuffle_*"))


def shuffles_of(files: set[Path]) -> set[str]:
    return {file.name.split("_")[1] for file in files}


def wait_until_gone(spark: Spark, before: set[Path]) -> None:
    """They are deleted beside what comes next."""
    wait_until(lambda: True if shuffle_files(spark) <= before else None, 20, "files of shuffles to be deleted")


def stage_of_task() -> bytes:
    context = TaskContext.get()
    assert context is not None
    return f"stage {context.stageId()} partition {context.partitionId()}".encode()


def test_every_run_is_one_of_all_stages(spark: Spark) -> None:
    plan = repeated(spark, stage_of_task)
    runs = [set(plan.run()) for _ in range(4)]
    assert all(len(run) == PARTITIONS for run in runs)
    assert all(one.isdisjoint(other) for one, other in itertools.combinations(runs, 2))


def test_the_files_of_shuffles_do_not_pile_up(spark: Spark) -> None:
    kept = spark.sparkContext.parallelize([(1, 2)], PARTITIONS).groupByKey(PARTITIONS)
    kept.count()
    before = shuffle_files(spark)
    assert before, "files of shuffles are not where they are looked for"
    plan = repeated(spark, stage_of_task)
    for _ in range(20):
        plan.run()
    wait_until_gone(spark, before)


def test_the_files_of_a_run_that_failed_are_deleted(spark: Spark) -> None:
    before = shuffle_files(spark)
    plan = repeated(spark, stage_of_task, fails=True)
    # As long as somebody has the error nobody else deletes them.
    with pytest.raises(Exception, match="as it was told") as failed:
        plan.run()
    wait_until_gone(spark, before)
    assert failed.tb


def test_tasks_see_the_settings_of_the_session(spark: Spark) -> None:
    def zone() -> bytes:
        context = TaskContext.get()
        assert context is not None
        return str(context.getLocalProperty(ZONE)).encode()

    other = spark.newSession()
    other.conf.set(ZONE, "Antarctica/Troll")
    spark.sparkContext.setLocalProperty("told", "as before")
    assert repeated(other, zone).run() == [b"Antarctica/Troll"] * PARTITIONS
    # The next job of the thread may be one of another session.
    assert spark.sparkContext.getLocalProperty(ZONE) is None
    assert spark.sparkContext.getLocalProperty("told") == "as before"


def test_a_session_with_large_arrow_types(spark: Spark) -> None:
    other = spark.newSession()
    plan = repeated(other, stage_of_task)
    for large in ("TRUE", "false", "true"):
        other.conf.set(LARGE_TYPES, large)
        assert len(plan.run()) == PARTITIONS


def test_rows_come_with_each_run(spark: Spark) -> None:
    plan = over_rows(spark, "a", "b")
    for first, partitions in ((0, 1), (100, 3), (200, 2)):
        rows = numbers(spark, first, 5, partitions), numbers(spark, first + 50, 4, partitions + 1)
        expected = {f"a {n}" for n in range(first, first + 5)} | {f"b {n}" for n in range(first + 50, first + 54)}
        assert sorted(plan.run([each.rdd for each in rows])) == sorted(text.encode() for text in expected)


def test_rows_without_any_partition(spark: Spark) -> None:
    plan = over_rows(spark, "a")
    nothing = PlannedRows.of(spark.createDataFrame([], "id long"))
    assert plan.run([nothing.rdd]) == []
    assert plan.run([numbers(spark, 7, 1).rdd]) == [b"a 7"]


def test_shuffles_of_rows_that_come_with_a_run_are_left_alone(spark: Spark) -> None:
    """They may be those of an RDD that the program uses again."""
    before = shuffle_files(spark)
    with changed_settings(spark, {"spark.sql.adaptive.enabled": "false"}):
        theirs = PlannedRows.of(spark.range(0, 10, 1, 2).repartition(2, "id"))
    plan = over_rows(spark, "a")
    assert len(plan.run([theirs.rdd])) == 10
    kept = shuffle_files(spark) - before
    for _ in range(3):
        plan.run([theirs.rdd])
    wait_until(
        lambda: True if len(shuffles_of(shuffle_files(spark) - before)) == 1 else None, 20, "own files to be deleted"
    )
    assert shuffle_files(spark) - before <= kept


def test_epochs_of_a_job_leave_no_files_of_shuffles(spark: Spark) -> None:
    before = shuffle_files(spark)
    config = Configuration()
    config.set_string("holdfast.epoch.max-rows", "100")
    config.set_string("parallelism.default", "2")
    env = StreamExecutionEnvironment.get_execution_environment(config)
    numbers = env.from_collection(list(range(2000)), Types.LONG())
    numbers.key_by(lambda n: n % 7, Types.LONG()).reduce(lambda a, b: a + b).print()
    assert len(env.execute("many epochs").get_history().epochs) >= 10
    # That of the anchor, which is cached, stays until Spark finds that nobody needs it.
    wait_until(
        lambda: True if len(shuffles_of(shuffle_files(spark) - before)) <= 1 else None, 20, "files to be deleted"
    )
