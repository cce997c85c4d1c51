"""What the Structured Streaming peers share: the session, the source, and how their micro-batches are timed."""

from __future__ import annotations

import time
from datetime import datetime
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.data import FILES_OF_EPOCH, schema
from benchmarks.jobs.protocol import SPARK_SETTINGS, Checkpoint, Epoch, JobArguments, Outcome

ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
#: Settings of the state store, by variant.
STORES: dict[str, dict[str, str]] = {"rocksdb": ROCKSDB, "default": {}}


def session(extra: dict[str, str] | None = None) -> SparkSession:
    builder = SparkSession.builder.appName("holdfast-benchmark")
    keep_all_progress = {"spark.sql.streaming.numRecentProgressUpdates": "10000"}
    for name, value in {**SPARK_SETTINGS, **keep_all_progress, **(extra or {})}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def table(spark: SparkSession, arguments: JobArguments, name: str) -> DataFrame:
    """The files of an epoch in a micro-batch, unless files come while the query runs."""
    reader = spark.readStream.schema(schema(name))
    if not arguments.live:
        reader = reader.option("maxFilesPerTrigger", FILES_OF_EPOCH)
    return reader.parquet(str(arguments.data / name))


def timed(frame: DataFrame) -> DataFrame:
    """Rows with the column ``time`` as event time that never goes back."""
    return frame.withColumn("at", F.timestamp_millis("time")).withWatermark("at", "0 seconds")


def run(
    results: DataFrame,
    arguments: JobArguments,
    checked: tuple[int, ...],
    mode: str = "update",
    by_the_clock: bool = False,
) -> Outcome:
    """Read all files, drop the results, and give the timing of each micro-batch that had rows. State that expires by
    processing time keeps a query going for ever: such a one is stopped when all is read.
    """
    columns: list[Column] = [F.col(results.columns[position]) for position in checked]
    total = F.coalesce(F.sum(reduce(lambda one, other: one + other, columns)), F.lit(0))
    counted = results.observe("emitted", F.count(F.lit(1)).alias("rows"), total.alias("checksum"))
    writer = (
        counted.writeStream.format("noop")
        .outputMode(mode)
        .option("checkpointLocation", str(arguments.scratch / "query"))
    )
    if arguments.live or by_the_clock:
        query = writer.trigger(processingTime="0 seconds").start()
        _read_all(query, arguments.expected_rows)
    else:
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
    return outcome_of(query.recentProgress)


def outcome_of(progress: list[Any]) -> Outcome:
    with_rows = [entry for entry in progress if entry["numInputRows"] > 0]
    observed = [entry["observedMetrics"]["emitted"] for entry in progress if entry["observedMetrics"]]
    commits = [Checkpoint(_commit_millis(entry)) for entry in with_rows if entry["stateOperators"]]
    return Outcome(
        [epoch_of(entry) for entry in with_rows],
        sum(int(entry["rows"]) for entry in observed),
        sum(int(entry["checksum"]) for entry in observed),
        commits,
    )


def _read_all(query: StreamingQuery, rows: int) -> None:
    while query.isActive and sum(entry["numInputRows"] for entry in query.recentProgress) < rows:
        time.sleep(0.05)
    if (error := query.exception()) is not None:
        raise error
    query.stop()


def epoch_of(progress: Any) -> Epoch:
    """The micro-batch of a progress report."""
    started = datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00")).timestamp()
    seconds = progress["durationMs"]["triggerExecution"] / 1000
    return Epoch(progress["batchId"], progress["numInputRows"], started, started + seconds)


def _commit_millis(progress: Any) -> float:
    """The time of commits: of the state stores, by task, and of the logs of offsets and commits."""
    stores = max((operator["commitTimeMs"] for operator in progress["stateOperators"]), default=0)
    logs = sum(progress["durationMs"].get(name, 0) for name in ("walCommit", "commitOffsets"))
    return float(stores + logs)
