"""Streams as DataFrames: Spark makes of the rows of each epoch what it makes of all at once, and refuses the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from holdfast.common import WatermarkStrategy
from holdfast.errors import ProgramError, UnavailableNameError
from holdfast.spark.stream_data_frame import StreamDataFrame
from tests.integration.programs import environment
from tests.integration.test_queries import PLANS, SecondOfId, order_stream, orders, plain, tables

pytestmark = pytest.mark.slow


def users(spark: Any) -> DataFrame:
    return F.broadcast(spark.table("users"))


def loud(text: str) -> str:
    return f"{text}!"


Program = Callable[[Any, Any], Any]

PROGRAMS: dict[str, Program] = {
    "columns and conditions": lambda orders, spark: orders.where("amount > 9").select("id", F.upper("user").alias("u")),
    "its own columns": lambda orders, spark: orders[orders.amount > 9][["id", "user"]].filter(orders["user"] != "b"),
    "expressions": lambda orders, spark: orders.selectExpr("id", "amount / 4 AS quarter", "get(tags, 0) AS first"),
    "more and fewer": lambda orders, spark: (
        orders.withColumn("twice", orders.amount * 2).withColumnRenamed("user", "who").drop("tags", "amount")
    ),
    "many at once": lambda orders, spark: orders.withColumns({"a": F.lit(1), "b": F.col("id") % 3}).select("a", "b"),
    "exploded": lambda orders, spark: orders.select("id", F.explode("tags").alias("tag")).where("tag <> 'y'"),
    "other names": lambda orders, spark: orders.select("id", "user").toDF("n", "who").where("n > 4"),
    "joined by name": lambda orders, spark: orders.join(users(spark), "user").select("id", "name"),
    "joined and kept": lambda orders, spark: (
        orders.alias("o").join(users(spark).alias("u"), F.col("o.user") == F.col("u.user"), "left").select("id", "name")
    ),
    "joined by own columns": lambda orders, spark: (
        orders.join(known := users(spark), orders.user == known.user).select(orders.id, orders.user, "name")
    ),
    "kept where known": lambda orders, spark: orders.join(users(spark), "user", "leftsemi").select("id"),
    "a function in Python": lambda orders, spark: orders.select("id", F.udf(loud, "string")("user").alias("loud")),
    "transformed": lambda orders, spark: orders.transform(lambda frame, least: frame.where(frame.id > least), 5),
    "without nulls": lambda orders, spark: orders.selectExpr("id", "get(tags, 1) AS t").fillna("none").dropna(),
}


@PLANS
def test_what_spark_makes_of_rows(spark: Any, internals: str) -> None:
    """All programs in one job, and each on a table that has all rows."""
    with tables(spark):
        env = environment(**{"holdfast.spark.internals": internals})
        frame = order_stream(env, epochs=2).to_data_frame()
        told = []
        for place, program in enumerate(PROGRAMS.values()):
            stream = env.from_data_frame(program(frame, spark))
            told.append(stream.map(lambda row, place=place: (place, plain(row)), output_type=None))
        with told[0].union(*told[1:]).execute_and_collect() as rows:
            found = sorted(rows, key=repr)
        rows_of_all = [tuple(row) for epoch in orders(2) for row in epoch]
        whole = spark.createDataFrame(rows_of_all, "id long, user string, amount long, tags array<string>")
        alone = [program(whole, spark).collect() for program in PROGRAMS.values()]
    expected = [(place, plain(tuple(row))) for place, rows_of_one in enumerate(alone) for row in rows_of_one]
    assert found == sorted(expected, key=repr)
    assert {place for place, _ in found} == set(range(len(PROGRAMS)))


def test_columns_and_types_are_known_at_once(spark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    frame = order_stream(environment()).to_data_frame()
    assert frame.columns == ["id", "user", "amount", "tags"]
    assert frame.select("id", "tags").dtypes == [("id", "bigint"), ("tags", "array<string>")]
    assert frame.schema["amount"].dataType.simpleString() == "bigint"
    frame.select("id").printSchema()
    assert capsys.readouterr().out.startswith("root\n |-- id: long")
    with pytest.raises(AnalysisException, match="nosuch"):
        frame.select("nosuch")
    with pytest.raises(AnalysisException, match="nosuch"):
        frame["nosuch"]
    with pytest.raises(UnavailableNameError, match=r"has no column .nosuch."):
        _ = frame.nosuch
    assert not hasattr(frame, "nosuch") and not hasattr(frame, "_nosuch")


def test_event_time_passes_through(spark: Any) -> None:
    env = environment()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondOfId())
    timed = order_stream(env).assign_timestamps_and_watermarks(strategy)
    lines = timed.to_data_frame(event_time_column="at").select("user", F.explode("tags").alias("tag"), "at")
    assert env.from_data_frame(lines)._connection().source.event_time
    assert not env.from_data_frame(lines.drop("at"))._connection().source.event_time
    with pytest.raises(ProgramError, match="gives the column 'at' as string"):
        env.from_data_frame(lines.withColumn("at", F.col("at").cast("string")))
    with pytest.raises(ProgramError, match="has no event time for the column 'at'"):
        order_stream(env).to_data_frame(event_time_column="at")


def test_its_name_is_one_of_the_environment(spark: Any) -> None:
    env = environment()
    frame = order_stream(env, epochs=1).to_data_frame().where("amount > 9")
    frame.createOrReplaceTempView("dear")
    frame.where("id > 5").createOrReplaceTempView("dear")
    with pytest.raises(ProgramError, match="There is a view 'dear' already"):
        frame.createTempView("dear")
    assert not spark.catalog.tableExists("dear")
    with env.sql("SELECT id FROM dear WHERE id <> 7").execute_and_collect() as rows:
        found = Counter(row.id for row in rows)
    assert found == Counter(row.id for row in orders(1)[0] if row.amount > 9 and row.id > 5 and row.id != 7)


REFUSED: dict[str, tuple[Program, str]] = {
    "a window function": (
        lambda orders, spark: orders.select(F.row_number().over(Window.partitionBy("user").orderBy("id"))),
        "a window function",
    ),
    "an aggregation": (lambda orders, spark: orders.select(F.sum("amount").alias("s")), "an aggregation"),
    "a table that is not sent": (lambda orders, spark: orders.join(spark.table("users"), "user"), "broadcast\\(t\\)"),
    "rows of the table": (lambda orders, spark: orders.join(users(spark), "user", "full"), "whose other side"),
    "another stream": (lambda orders, spark: orders.join(orders, "id"), "takes a table, and not the DataFrame of a"),
    "no stream": (lambda orders, spark: orders.where("1 = 0"), "its conditions are never true"),
    "now": (lambda orders, spark: orders.select(F.now().alias("at")), "has now, which Spark computes"),
    "today": (lambda orders, spark: orders.withColumn("day", F.current_date()), "has current_date, which Spark"),
    "a text that is now": (
        lambda orders, spark: orders.withColumn("at", F.lit("now").cast("timestamp")),
        "has cast\\(now, which Spark",
    ),
    "rand": (lambda orders, spark: orders.where(F.rand() < 2), "has rand, which Spark computes"),
    "a name twice": (lambda orders, spark: orders.select("user", "user"), "a field name twice"),
    "transformed into something else": (lambda orders, spark: orders.transform(lambda frame: 5), "gave int"),
}


def test_programs_that_are_refused(spark: Any) -> None:
    with tables(spark):
        env = environment()
        frame = order_stream(env).to_data_frame()
        for program, message in REFUSED.values():
            with pytest.raises(ProgramError, match=message):
                env.from_data_frame(program(frame, spark))
        assert env.from_data_frame(frame.select(F.lit("today").alias("now"), "user")).get_type()


def test_all_else_that_a_data_frame_has_is_refused_by_name(spark: Any) -> None:
    frame = order_stream(environment()).to_data_frame()
    others = [name for name in dir(DataFrame) if name[0] != "_" and not hasattr(StreamDataFrame, name)]
    assert {"count", "groupBy", "orderBy", "limit", "union", "write", "cache", "mapInPandas"} <= set(others)
    for name in others:
        with pytest.raises(UnavailableNameError, match=f"{name}.*(Use |from_data_frame)"):
            getattr(frame, name)
    with pytest.raises(UnavailableNameError, match="the stream's DataFrame on the left"):
        spark.range(3).join(frame, "id")
    with pytest.raises(UnavailableNameError, match="the stream's DataFrame on the left"):
        F.broadcast(frame)
