"""The executors that Spark's scheduler knows, and those that hold the cached rows of a table."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from holdfast.spark.internals.jvm import JVM_ERRORS

#: How Spark writes a place in the memory of an executor, whose host and id follow.
_IN_MEMORY = "executor_"


def executor_ids(session: SparkSession) -> frozenset[str]:
    context: Any = session.sparkContext
    return frozenset(str(context._jsc.sc().getExecutorIds().mkString(" ")).split())


def holders_of(table: DataFrame) -> frozenset[str]:
    """The executors that have a partition of a cached table in memory: where Spark would like to run its tasks."""
    scheduler: Any = table.sparkSession.sparkContext._jsc.sc()
    cached = table._jdf.queryExecution().withCachedData().cacheBuilder().cachedColumnBuffers()
    found: set[str] = set()
    for partition in range(int(cached.getNumPartitions())):
        places = scheduler.getPreferredLocs(cached, partition)
        texts = (str(places.apply(place).toString()) for place in range(places.size()))
        found |= {text.rpartition("_")[2] for text in texts if text.startswith(_IN_MEMORY)}
    return frozenset(found)


def probe(session: SparkSession) -> str | None:
    try:
        executor_ids(session)
    except JVM_ERRORS as error:
        return f"the scheduler does not tell its executors: {error}"
    return None
