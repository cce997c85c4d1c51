"""The floor: what moving the rows costs without any state. Shuffle by key, to Python as Arrow, and back."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from benchmarks.data import FILES_OF_EPOCH, schema
from benchmarks.jobs import spark_streaming
from benchmarks.jobs.protocol import PARALLELISM, Epoch, JobArguments, Outcome


def identity(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def through_python(rows: DataFrame, table: str) -> DataFrame:
    return rows.repartition(PARALLELISM, rows.columns[0]).mapInArrow(identity, schema(table))


def as_stream(arguments: JobArguments, table: str) -> Outcome:
    """As a Structured Streaming query, an epoch a micro-batch."""
    rows = spark_streaming.table(spark_streaming.session(), arguments, table)
    return spark_streaming.run(through_python(rows, table), arguments, checked=(0,))


def as_batches(arguments: JobArguments, table: str) -> Outcome:
    """As one batch job an epoch: without what a streaming query adds to each micro-batch."""
    spark = spark_streaming.session()
    epochs, emitted, checksum = [], 0, 0
    files = sorted(map(str, (arguments.data / table).iterdir()))
    for number in range(len(files) // FILES_OF_EPOCH):
        started = time.time()
        of_epoch = files[number * FILES_OF_EPOCH :][:FILES_OF_EPOCH]
        rows = through_python(spark.read.schema(schema(table)).parquet(*of_epoch), table)
        seen = Observation()
        first = F.sum(rows.columns[0]).alias("checksum")
        rows.observe(seen, F.count(F.lit(1)).alias("rows"), first).write.format("noop").mode("overwrite").save()
        epochs.append(Epoch(number, seen.get["rows"], started, time.time()))
        emitted += seen.get["rows"]
        checksum += seen.get["checksum"]
    return Outcome(epochs, emitted, checksum)


VARIANTS = {"stream": as_stream, "batch": as_batches}


def main() -> None:
    arguments = JobArguments.parse()
    (table,) = (path.name for path in arguments.data.iterdir())
    VARIANTS[arguments.variant](arguments, table).write(arguments.result)


if __name__ == "__main__":
    main()
