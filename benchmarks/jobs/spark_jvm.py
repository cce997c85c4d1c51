"""The jobs in Spark's own operators, state and code in the JVM. The variant is the state store."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.data import CLOSING_TIME
from benchmarks.jobs import spark_streaming
from benchmarks.jobs.checks import CHECKED
from benchmarks.jobs.protocol import JobArguments
from benchmarks.oracle import MINUTE_MS, RULES, SLIDE_MS, WINDOW_MS, rule

WINDOW, SLIDE = f"{WINDOW_MS} milliseconds", f"{SLIDE_MS} milliseconds"
#: Jobs that emit windows when they are closed; the others emit what a micro-batch changed.
APPENDING = ("dedup", "sessions", "minutes", "q5", "q7", "q8")


def totals(spark: SparkSession, arguments: JobArguments) -> DataFrame:
    events = spark_streaming.table(spark, arguments, "events")
    return events.groupBy("key").agg(
        F.count("value").alias("count"), F.sum("value").alias("sum"), F.min("value"), F.max("value")
    )


def counts(spark: SparkSession, arguments: JobArguments) -> DataFrame:
    """What an aggregation has in the place of the average of every three values: the count and sum of all of them."""
    events = spark_streaming.table(spark, arguments, "events")
    aggregated = events.groupBy("key").agg(F.count("value").alias("count"), F.sum("value").alias("sum"))
    return aggregated.select("count", "sum")


def dedup(spark: SparkSession, arguments: JobArguments) -> DataFrame:
    events = spark_streaming.table(spark, arguments, "events").withColumn("at", F.current_timestamp())
    return events.withWatermark("at", "1 hour").dropDuplicatesWithinWatermark(["key"]).drop("at")


def sessions(spark: SparkSession, arguments: JobArguments) -> DataFrame:
    clicks = spark_streaming.timed(spark_streaming.table(spark, arguments, "clicks"))
    session = F.session_window("at", f"{arguments.gap_ms} milliseconds").alias("session")
    counted = clicks.groupBy("key", session).count()
    length = F.unix_millis("session.end") - F.unix_millis("session.start")
    return counted.where(_open("session")).select("key", length.alias("length"), "count")


def enrichment(spark: SparkSession, arguments: JobArguments) -> DataFrame:
    """A join with a table that is broadcast once: Spark has no table that changes while the query runs."""
    rules = spark.createDataFrame([(number, rule(number)) for number in range(RULES)], "rule BIGINT, factor BIGINT")
    events = spark_streaming.table(spark, arguments, "events").withColumn("rule", F.col("key") % RULES)
    return events.join(F.broadcast(rules), "rule").select("key", (F.col("value") * F.col("factor")).alias("value"))


def minutes(spark: SparkSession, arguments: JobArguments) -> DataFrame:
    readings = spark_streaming.timed(spark_streaming.table(spark, arguments, "readings"))
    totals = readings.groupBy("key", F.window("at", f"{MINUTE_MS} milliseconds")).agg(
        F.count("value").alias("count"),
        F.sum("value").alias("sum"),
        F.min("value").alias("min"),
        F.max("value").alias("max"),
    )
    ended = totals.where(_open("window"))
    return ended.select("key", "count", "sum", "min", "max", F.unix_millis("window.end").alias("end"))


def hot_items(spark: SparkSession, arguments: JobArguments) -> DataFrame:
    bids = spark_streaming.timed(spark_streaming.table(spark, arguments, "bids"))
    counted = bids.groupBy(F.window("at", WINDOW, SLIDE), "auction").count()
    best = F.max(F.struct("count", (-F.col("auction")).alias("low"))).alias("best")
    ended = counted.groupBy("window").agg(best).where(_open("window"))
    return ended.select((-F.col("best.low")).alias("auction"), "best.count", F.unix_millis("window.end").alias("end"))


def highest_bid(spark: SparkSession, arguments: JobArguments) -> DataFrame:
    bids = spark_streaming.timed(spark_streaming.table(spark, arguments, "bids"))
    highest = bids.groupBy(F.window("at", WINDOW)).agg(F.max(F.struct("price", "auction")).alias("bid"))
    ended = highest.where(_open("window"))
    return ended.select("bid.auction", "bid.price", F.unix_millis("window.end").alias("end"))


def new_users(spark: SparkSession, arguments: JobArguments) -> DataFrame:
    came, opened = (
        spark_streaming.timed(spark_streaming.table(spark, arguments, name)).select("*", F.window("at", WINDOW))
        for name in ("persons", "auctions")
    )
    joined = came.alias("came").join(
        opened.alias("opened"), F.expr("came.person = opened.seller AND came.window = opened.window")
    )
    return joined.where(_open("came.window")).select("came.person", "opened.auction")


def _open(window: str) -> Column:
    """Not a window of closing rows. A condition on their key would be pushed down to the files, and nothing closed."""
    return F.unix_millis(f"{window}.start") < CLOSING_TIME - MINUTE_MS


PROGRAMS: dict[str, Callable[[SparkSession, JobArguments], DataFrame]] = {
    "average": counts,
    "totals": totals,
    "dedup": dedup,
    "sessions": sessions,
    "enrichment": enrichment,
    "minutes": minutes,
    "q5": hot_items,
    "q7": highest_bid,
    "q8": new_users,
}


def main() -> None:
    arguments = JobArguments.parse()
    spark = spark_streaming.session(spark_streaming.STORES[arguments.variant])
    mode = "append" if arguments.job in APPENDING else "update"
    results = PROGRAMS[arguments.job](spark, arguments)
    spark_streaming.run(results, arguments, CHECKED[arguments.job], mode).write(arguments.result)


if __name__ == "__main__":
    main()
