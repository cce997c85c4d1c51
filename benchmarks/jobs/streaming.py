"""What the Structured Streaming peers share: the session, the source, and how their micro-batches are timed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.data import SCHEMA
from benchmarks.jobs.protocol import SPARK_SETTINGS, Epoch, JobArguments, Outcome

ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


def session(extra: dict[str, str] | None = None) -> SparkSession:
    builder = SparkSession.builder.appName("holdfast-benchmark")
    keep_all_progress = {"spark.sql.streaming.numRecentProgressUpdates": "10000"}
    for name, value in {**SPARK_SETTINGS, **keep_all_progress, **(extra or {})}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def events(spark: SparkSession, arguments: JobArguments) -> DataFrame:
    """One file a micro-batch."""
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(arguments.data))


def run(results: DataFrame, arguments: JobArguments) -> Outcome:
    """Read all files, drop the results, and give the timing of each micro-batch that had rows."""
    counted = results.observe("emitted", F.count(F.lit(1)).alias("rows"))
    query = (
        counted.writeStream.format("noop")
        .outputMode("update")
        .option("checkpointLocation", str(arguments.scratch / "query"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    progress = [entry for entry in query.recentProgress if entry["numInputRows"] > 0]
    return Outcome([_epoch(entry) for entry in progress], sum(_emitted(entry) for entry in progress))


def _epoch(progress: Any) -> Epoch:
    started = datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00")).timestamp()
    seconds = progress["durationMs"]["triggerExecution"] / 1000
    return Epoch(progress["batchId"], progress["numInputRows"], started, started + seconds)


def _emitted(progress: Any) -> int:
    return int(progress["observedMetrics"]["emitted"]["rows"])
