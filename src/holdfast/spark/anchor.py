"""Anchors: one cached row per slot, which holds the slot's tasks on one executor.

Level tables are hash-partitioned by a slot number chosen so that Spark's hash of it falls on the partition wanted, and joined to the cached rows with a shuffle-hash
join: Spark then runs each partition where its row is cached.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import time
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)

_PLACEMENT_SCHEMA = "slot int, executor string"


def slot_values(slots: int) -> list[int]:
    """For each partition a number that Spark's hash partitioning puts there."""
    values: dict[int, int] = {}
    candidate = 0
    while len(values) < slots:
        values.setdefault(murmur3_int(candidate) % slots, candidate)
        candidate += 1
    return [values[partition] for partition in range(slots)]


def murmur3_int(value: int, seed: int = 42) -> int:
    """Spark's ``hash`` of an int: Murmur3 over its four bytes, as a signed number."""
    k = _multiply(_rotate(_multiply(value & 0xFFFFFFFF, 0xCC9E2D51), 15), 0x1B873593)
    h = (_multiply(_rotate(seed ^ k, 13), 5) + 0xE6546B64) & 0xFFFFFFFF
    h ^= 4
    h = _multiply(h ^ (h >> 16), 0x85EBCA6B)
    h = _multiply(h ^ (h >> 13), 0xC2B2AE35)
    h ^= h >> 16
    return h - (1 << 32) if h & 0x80000000 else h


def _multiply(a: int, b: int) -> int:
    return (a * b) & 0xFFFFFFFF


def _rotate(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (32 - bits))) & 0xFFFFFFFF


def executor_identity() -> str:
    """The executor that runs this Python task: its host and the process that forks its workers."""
    return f"{socket.gethostname()}/{os.getppid()}"


class Anchor:
    """The cached rows of one attempt. ``table`` must stay referenced: Spark cleans up what nobody holds."""

    def __init__(self, session: SparkSession, slots: int) -> None:
        self._session = session
        self.slots = slots
        self.values = slot_values(slots)
        self.table: DataFrame = self._cache()
        self.placement = self._materialise()

    def _cache(self) -> DataFrame:
        rows = self._session.createDataFrame([(value,) for value in self.values], "slot int")
        return rows.repartition(self.slots, "slot").persist()

    def _materialise(self) -> list[str]:
        """Run the job that caches the rows; the executor of every slot."""

        def report(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for _ in batches:
                pass
            context = TaskContext.get()
            assert context is not None
            slot = pa.array([context.partitionId()], pa.int32())
            yield pa.RecordBatch.from_arrays([slot, pa.array([executor_identity()])], names=["slot", "executor"])

        found = {row.slot: row.executor for row in self.table.mapInArrow(report, _PLACEMENT_SCHEMA).collect()}
        return [found[slot] for slot in range(self.slots)]

    def balanced(self, executors: int) -> bool:
        """No executor holds more than its share."""
        if executors <= 1:
            return True
        share = -(-self.slots // executors)
        return max(Counter(self.placement).values()) <= share

    def release(self) -> None:
        self.table.unpersist(blocking=False)


def build_anchor(session: SparkSession, slots: int, tries: int = 4) -> Anchor:
    """An anchor whose slots are spread evenly over the executors that are there."""
    for remaining in range(tries - 1, -1, -1):
        anchor = Anchor(session, slots)
        executors = executor_count(session)
        if anchor.balanced(executors) or not remaining:
            if not anchor.balanced(executors):
                logger.warning("Slots are spread unevenly over %d executors: %s", executors, dict(Counter(anchor.placement)))
            return anchor
        anchor.release()
        time.sleep(0.5)
    raise AssertionError("unreachable")


def executor_count(session: SparkSession) -> int:
    """Executors that are alive now; 1 in local mode."""
    context = session.sparkContext
    if re.fullmatch(r"local(\[.*\])?", str(context.master)):
        return 1
    infos = context._jsc.sc().statusTracker().getExecutorInfos()
    return max(len(infos) - 1, 0)  # the driver counts as one


def wait_for_executors(session: SparkSession, wanted: int, timeout: float) -> int:
    """Wait until so many executors are there; the number that is there in the end."""
    deadline = time.monotonic() + timeout
    while (found := executor_count(session)) < wanted and time.monotonic() < deadline:
        time.sleep(0.2)
    return found
