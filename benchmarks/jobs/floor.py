"""The floor: what moving the rows costs without any state. Shuffle by key, to Python as Arrow, and back."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from benchmarks.data import SCHEMA
from benchmarks.jobs import streaming
from benchmarks.jobs.protocol import Epoch, JobArguments, Outcome

PARTITIONS = 2


def identity(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def through_python(events: DataFrame) -> DataFrame:
    return events.repartition(PARTITIONS, "key").mapInArrow(identity, SCHEMA)


def as_stream(arguments: JobArguments) -> Outcome:
    """As a Structured Streaming query, one file a micro-batch."""
    spark = streaming.session()
    return streaming.run(through_python(streaming.events(spark, arguments)), arguments)


def as_batches(arguments: JobArguments) -> Outcome:
    """As one batch job a file: without what a streaming query adds to each micro-batch."""
    spark = streaming.session()
    epochs = []
    for number, path in enumerate(sorted(arguments.data.glob("*.parquet"))):
        started = time.time()
        events = spark.read.schema(SCHEMA).parquet(str(path))
        through_python(events).write.format("noop").mode("overwrite").save()
        epochs.append(Epoch(number, arguments.epoch_rows, started, time.time()))
    return Outcome(epochs)


VARIANTS = {"stream": as_stream, "batch": as_batches}


def main() -> None:
    arguments = JobArguments.parse()
    VARIANTS[arguments.variant](arguments).write(arguments.result)


if __name__ == "__main__":
    main()
