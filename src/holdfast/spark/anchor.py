"""Anchors: one cached row per slot, which holds the slot's tasks on one executor.

Level tables are hash-partitioned by a slot number chosen so that Spark's hash of it falls on the partition wanted, and
joined to the cached rows with a shuffle-hash join: Spark then runs each partition where its row is cached.
"""

from __future__ import annotations

import logging
import os
import socket
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from holdfast.errors import HoldfastError, ProgramError
from holdfast.job.placement import spread_evenly
from holdfast.spark.accelerations import Accelerations
from holdfast.spark.executors import executors_of
from holdfast.spark.failures import TaskFailure, failure_of
from holdfast.spark.internals.jvm import JVM_ERRORS
from holdfast.spark.program_modules import refuse_lacking
from holdfast.spark.program_needs import NO_NEEDS, ProgramNeeds
from holdfast.spark.session import application_is_gone

logger = logging.getLogger(__name__)

_PLACEMENT_SCHEMA = "slot int, executor string, lacking string, failure string"
#: How long the tasks of each try to build an anchor last at least. The first try starts Python workers, and is often
#: uneven for it.
_PAUSES = (0.0, 0.1, 0.2, 0.4)
_RETRY_SECONDS = 0.5
#: All rows in one partition are planned by other rules, among them one by which Spark spreads over many partitions what
#: it takes to be large. So a job with a single slot has a second partition, in which nothing happens.
_LEAST_PARTITIONS = 2


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
    """The cached rows of one attempt. ``table`` must stay referenced: Spark cleans up what nobody holds.

    Every task that caches a row lasts at least ``pause`` seconds, so that no executor is free for a second one before
    the others got their first.
    """

    def __init__(self, session: SparkSession, slots: int, needs: ProgramNeeds = NO_NEEDS, pause: float = 0.0) -> None:
        self.session = session
        self.slots = slots
        self.values = slot_values(max(slots, _LEAST_PARTITIONS))
        self.table: DataFrame = self._cache()
        self.placement = self._materialise(needs, pause)

    def _cache(self) -> DataFrame:
        # Not of Python's rows, for which Spark would start a daemon of Python workers beside the one that runs tasks.
        values = ", ".join(f"({value})" for value in self.values)
        # Spark caches equal queries of an application once, and each anchor must have rows of its own.
        own = f"'{uuid.uuid4()}'"
        rows = self.session.sql(f"SELECT slot FROM VALUES {values} AS slots(slot) WHERE {own} = {own}")
        return rows.repartition(self.partitions, "slot").persist()

    @property
    def partitions(self) -> int:
        """The number of partitions of every level."""
        return len(self.values)

    def _materialise(self, needs: ProgramNeeds, pause: float) -> list[str]:
        """Run the job that caches the rows; the executor of every slot. ProgramError when one lacks what is needed."""

        def report(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for _ in batches:
                pass
            context = TaskContext.get()
            assert context is not None
            time.sleep(pause)
            slot = pa.array([context.partitionId()], pa.int32())
            missing = failure = ""
            try:
                missing = " ".join(needs.lacking())
            except HoldfastError as error:
                failure = TaskFailure.of(error).encode()
            told = [pa.array([text]) for text in (executor_identity(), missing, failure)]
            yield pa.RecordBatch.from_arrays([slot, *told], names=["slot", "executor", "lacking", "failure"])

        rows = self.table.mapInArrow(report, _PLACEMENT_SCHEMA).collect()
        for failure in filter(None, (row.failure for row in rows)):
            raise TaskFailure.decode(failure).restored()
        refuse_lacking({row.executor: row.lacking.split() for row in rows})
        found = {row.slot: row.executor for row in rows}
        return [found[slot] for slot in range(self.slots)]

    def release(self) -> None:
        with suppress(*JVM_ERRORS):  # a JVM that is gone holds nothing
            self.table.unpersist(blocking=False)


def build_anchor(session: SparkSession, slots: int, accelerations: Accelerations, needs: ProgramNeeds) -> Anchor:
    """An anchor whose slots are spread evenly over the executors that are there, if that can be had in a few tries."""
    for number, pause in enumerate(_PAUSES):
        last = number == len(_PAUSES) - 1
        try:
            anchor = Anchor(session, slots, needs, pause)
        except (PySparkException, *JVM_ERRORS) as error:
            # Right after the loss of an executor Spark may not know of it yet, and sends it tasks.
            if last or application_is_gone(session) or isinstance(failure_of(error), ProgramError):
                raise
            time.sleep(_RETRY_SECONDS)
            continue
        executors = len(executors_of(session, accelerations))
        if spread_evenly(anchor.placement, executors):
            return anchor
        if last:
            placement = dict(Counter(anchor.placement))
            logger.warning("Slots are spread unevenly over %d executors: %s", executors, placement)
            return anchor
        anchor.release()
        time.sleep(_RETRY_SECONDS)
    raise AssertionError("unreachable")
