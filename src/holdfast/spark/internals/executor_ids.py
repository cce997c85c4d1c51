"""The executors that Spark's scheduler knows, and those that hold the cached rows of a table."""

from __future__ import annotations

import uuid
from typing import Any

from pyspark.sql import DataFrame, SparkSession

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
    """Asks for the executors, and who of them holds a row that is cached. The row is computed if an executor is there
    to do it; before, nobody holds it, and the scheduler can be asked all the same.
    """
    there = executor_ids(session)
    # Spark caches equal queries of an application once, and this one must be nobody else's.
    own = f"'{uuid.uuid4()}'"
    row = session.sql(f"SELECT 1 WHERE {own} = {own}").persist()
    try:
        if there:
            row.count()
        holders = holders_of(row)
    finally:
        row.unpersist(blocking=False)
    return "the scheduler does not tell who holds a cached row" if there and not holders else None
