"""How long Spark's own streaming aggregation takes to start, and to start again over its state."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.jobs import spark_jvm, spark_streaming
from benchmarks.jobs.protocol import JobArguments

WriteKeys = Callable[[Path, str, int], None]


def seconds(keys: int, write_keys: WriteKeys) -> tuple[float, float]:
    """Until the first rows are processed: without state, and with that of so many keys."""
    spark = spark_streaming.session(spark_streaming.ROCKSDB)
    with tempfile.TemporaryDirectory(prefix="holdfast-benchmark-") as directory:
        scratch = Path(directory)
        arguments = JobArguments(
            "average", "rocksdb", scratch / "data", scratch, scratch / "result", keys, keys, 1, live=True
        )
        write_keys(scratch / "data" / "events", "part-0", 1)
        query, fresh = _start(spark, arguments)
        write_keys(scratch / "data" / "events", "part-1", keys)
        _wait(query, keys + 1)
        query.stop()
        write_keys(scratch / "data" / "events", "part-2", 1)
        query, restarted = _start(spark, arguments)
        query.stop()
    return fresh, restarted


def _start(spark: SparkSession, arguments: JobArguments) -> tuple[StreamingQuery, float]:
    writer = spark_jvm.counts(spark, arguments).writeStream.format("noop").outputMode("update")
    began = time.time()
    query = writer.option("checkpointLocation", str(arguments.scratch / "query")).start()
    _wait(query, 1)
    first = next(entry for entry in query.recentProgress if entry["numInputRows"])
    return query, spark_streaming.epoch_of(first).finished - began


def _wait(query: StreamingQuery, rows: int) -> None:
    while sum(entry["numInputRows"] for entry in query.recentProgress) < rows:
        if (error := query.exception()) is not None:
            raise error
        time.sleep(0.02)
