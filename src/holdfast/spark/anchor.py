"""Anchors: one cached row per slot, which holds the slot's tasks on one executor.

Level tables are hash-partitioned by a slot number chosen so that Spark's hash of it falls on the partition wanted, and
joined to the cached rows with a shuffle-hash join: Spark then runs each partition where its row is cached.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from holdfast.spark.session import application_is_gone

logger = logging.getLogger(__name__)

_PLACEMENT_SCHEMA = "slot int, executor string"
_LOCAL_MASTER = re.compile(r"local(\[.*\])?")
#: How long the tasks of each try to build an anchor last at least. The first try starts Python workers, and is often
#: uneven for it.
_PAUSES = (0.0, 0.1, 0.2, 0.4)
_RETRY_SECONDS = 0.5
_POLL_SECONDS = 0.1
#: A lost executor is replaced within that, or the job goes on without it.
_EXECUTOR_WAIT_SECONDS = 60.0
#: Executors of an application that starts come one shortly after the other.
_SETTLE_SECONDS = 3.0


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

    def __init__(self, session: SparkSession, slots: int, pause: float = 0.0) -> None:
        self.session = session
        self.slots = slots
        self.values = slot_values(slots)
        self.table: DataFrame = self._cache()
        self.placement = self._materialise(pause)

    def _cache(self) -> DataFrame:
        rows = self.session.createDataFrame([(value,) for value in self.values], "slot int")
        return rows.repartition(self.slots, "slot").persist()

    def _materialise(self, pause: float) -> list[str]:
        """Run the job that caches the rows; the executor of every slot."""

        def report(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for _ in batches:
                pass
            context = TaskContext.get()
            assert context is not None
            time.sleep(pause)
            slot = pa.array([context.partitionId()], pa.int32())
            yield pa.RecordBatch.from_arrays([slot, pa.array([executor_identity()])], names=["slot", "executor"])

        found = {row.slot: row.executor for row in self.table.mapInArrow(report, _PLACEMENT_SCHEMA).collect()}
        return [found[slot] for slot in range(self.slots)]

    def release(self) -> None:
        with suppress(Py4JError, OSError):  # a JVM that is gone holds nothing
            self.table.unpersist(blocking=False)


def spread_evenly(placement: Sequence[str], executors: int) -> bool:
    """No executor has more than its share of the slots."""
    if executors <= 1:
        return True
    share = -(-len(placement) // executors)
    return max(Counter(placement).values()) <= share


def build_anchor(session: SparkSession, slots: int) -> Anchor:
    """An anchor whose slots are spread evenly over the executors that are there, if that can be had in a few tries."""
    for number, pause in enumerate(_PAUSES):
        last = number == len(_PAUSES) - 1
        try:
            anchor = Anchor(session, slots, pause)
        except (PySparkException, Py4JError):
            # Right after the loss of an executor Spark may not know of it yet, and sends it tasks.
            if last or application_is_gone(session):
                raise
            time.sleep(_RETRY_SECONDS)
            continue
        executors = len(executors_of(session))
        if spread_evenly(anchor.placement, executors):
            return anchor
        if last:
            placement = dict(Counter(anchor.placement))
            logger.warning("Slots are spread unevenly over %d executors: %s", executors, placement)
            return anchor
        anchor.release()
        time.sleep(_RETRY_SECONDS)
    raise AssertionError("unreachable")


def executors_of(session: SparkSession) -> frozenset[str]:
    """The ids of the executors that the scheduler knows now; one, the driver, in local mode."""
    context = session.sparkContext
    if _is_local(session):
        return frozenset({"driver"})
    return frozenset(str(context._jsc.sc().getExecutorIds().mkString(" ")).split())


def _is_local(session: SparkSession) -> bool:
    return _LOCAL_MASTER.fullmatch(str(session.sparkContext.master)) is not None


def wait_for_executors(session: SparkSession, wanted: int, sleep: Callable[[float], None]) -> int:
    """Wait until so many executors are there, or long enough; the number that is there in the end."""
    deadline = time.monotonic() + _EXECUTOR_WAIT_SECONDS
    while (found := len(executors_of(session))) < wanted and time.monotonic() < deadline:
        sleep(_POLL_SECONDS)
    if found < wanted:
        logger.warning("%d executors are there where %d were; the job goes on with them", found, wanted)
    return found


def first_executors(session: SparkSession, slots: int, sleep: Callable[[float], None]) -> int:
    """At the start of an application: wait for as many executors as it asked for, or until no more of them come."""
    asked = session.sparkContext.getConf().get("spark.executor.instances")
    if asked is not None and asked.isdigit():
        return wait_for_executors(session, min(int(asked), slots), sleep)
    found = wait_for_executors(session, 1, sleep)
    quiet_since = time.monotonic()
    while found < slots and time.monotonic() - quiet_since < _SETTLE_SECONDS and not _is_local(session):
        sleep(_POLL_SECONDS)
        now = len(executors_of(session))
        if now != found:
            found, quiet_since = now, time.monotonic()
    return found
