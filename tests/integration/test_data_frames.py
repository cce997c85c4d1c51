"""Bounded DataFrames as sources: whatever their plans are, and however many subtasks read what comes of them."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.common import Types
from holdfast.errors import ProgramError
from tests.integration.programs import environment

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.slow]

FRAMES = {
    "several partitions": lambda spark: spark.range(0, 100, 1, 3),
    "a single partition": lambda spark: spark.range(0, 100, 1, 1),
    "gathered into one": lambda spark: spark.range(1000).orderBy("id").limit(100),
    "none": lambda spark: spark.range(100).where("id < 0").coalesce(1),
    "not even a partition": lambda spark: spark.createDataFrame(spark.sparkContext.emptyRDD(), "id LONG"),
}


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("name", FRAMES)
def test_every_row_is_read_once(spark: Any, name: str, parallelism: int) -> None:
    """With one subtask too, whose level has a single partition as some DataFrames do."""
    frame = FRAMES[name](spark)
    stream = environment().set_parallelism(parallelism).from_data_frame(frame)
    keyed = stream.map(lambda row: row.id, Types.LONG()).key_by(lambda number: number % 7, Types.LONG())
    with keyed.map(lambda number: number, Types.LONG()).execute_and_collect() as rows:
        assert sorted(rows) == sorted(row.id for row in frame.collect())


@pytest.mark.parametrize("own_source", [False, True])
@pytest.mark.parametrize("parallelism", [1, 2])
def test_several_data_frames_in_one_epoch(spark: Any, parallelism: int, own_source: bool) -> None:
    """Each task must know which of them it reads a partition of, with and without tasks of the job's own before it."""
    env = environment().set_parallelism(parallelism)
    nothing = FRAMES["not even a partition"](spark)
    frames = [nothing, spark.range(0, 50, 1, 3), spark.range(50, 60, 1, 1), nothing, spark.range(60, 100, 1, 2)]
    streams = [env.from_data_frame(frame).map(lambda row: row.id, Types.LONG()) for frame in frames]
    if own_source:
        streams.append(env.from_collection(range(100, 110), Types.LONG()))
    keyed = streams[0].union(*streams[1:]).key_by(lambda number: number % 7, Types.LONG())
    with keyed.map(lambda number: number, Types.LONG()).execute_and_collect() as rows:
        assert sorted(rows) == list(range(110 if own_source else 100))


def test_a_data_frame_that_was_planned_before_the_job(spark: Any) -> None:
    """With adaptive execution it has the partitions that its rows need, and without it those of the settings."""
    before = spark.conf.get("spark.sql.adaptive.enabled")
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    try:
        frame = spark.range(0, 1000, 1, 4).selectExpr("id % 50 AS k").groupBy("k").count()
        assert frame.rdd.getNumPartitions() < 50
        with environment().from_data_frame(frame).execute_and_collect() as rows:
            assert sorted(tuple(row) for row in rows) == [(key, 20) for key in range(50)]
        assert spark.conf.get("spark.sql.adaptive.enabled") == "true"
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", before)


@pytest.mark.parametrize("of_data_frame", [False, True], ids=["a source of ours", "a DataFrame"])
def test_one_subtask_behind_many_exchanges(spark: Any, of_data_frame: bool) -> None:
    """Spark takes what has come through many joins for large, and must not spread a single slot over partitions."""
    env = environment().set_parallelism(1)
    stream = env.from_collection([1, 2, 3], Types.LONG())
    if of_data_frame:
        stream = env.from_data_frame(spark.range(1, 4)).map(lambda row: row.id, Types.LONG())
    for _ in range(16):
        stream = stream.key_by(lambda number: number, Types.LONG()).map(lambda number: number, Types.LONG())
    with stream.execute_and_collect() as rows:
        assert sorted(rows) == [1, 2, 3]


def test_forward_from_a_data_frame_is_refused(spark: Any) -> None:
    env = environment().set_parallelism(1)
    env.from_data_frame(spark.range(9), "numbers").forward().map(lambda row: row.id, Types.LONG()).print()
    with pytest.raises(ProgramError, match=r"forward\(\) from the DataFrame 'numbers'"):
        env.execute()
