"""Spark's own streaming aggregation: count and sum per key, state and code in the JVM."""

from __future__ import annotations

from pyspark.sql import functions as F

from benchmarks.jobs import streaming
from benchmarks.jobs.protocol import JobArguments

STORES: dict[str, dict[str, str]] = {"rocksdb": streaming.ROCKSDB, "default": {}}


def main() -> None:
    arguments = JobArguments.parse()
    spark = streaming.session(STORES[arguments.variant])
    totals = (
        streaming.events(spark, arguments)
        .groupBy("key")
        .agg(F.count("value").alias("count"), F.sum("value").alias("sum"))
    )
    streaming.run(totals, arguments).write(arguments.result)


if __name__ == "__main__":
    main()
