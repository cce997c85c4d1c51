"""The executors of an application: which are there, and how long to wait for more."""

from __future__ import annotations

import logging
import math
import re
import time
from collections.abc import Callable, Mapping

from pyspark.sql import SparkSession

from holdfast.spark.accelerations import Acceleration, Accelerations
from holdfast.spark.internals.executor_ids import executor_ids

logger = logging.getLogger(__name__)

_LOCAL_MASTER = re.compile(r"local(\[.*\])?")
_POLL_SECONDS = 0.1
#: Executors of an application that starts come one shortly after the other.
_SETTLE_SECONDS = 3.0
#: How long the first of them may take.
_FIRST_SECONDS = 60.0

#: Sleeps for so many seconds; raises when the job is cancelled.
Pause = Callable[[float], None]


def is_local(session: SparkSession) -> bool:
    """Whether the driver is the only executor."""
    return _LOCAL_MASTER.fullmatch(str(session.sparkContext.master)) is not None


def executors_of(session: SparkSession, accelerations: Accelerations) -> frozenset[str]:
    """The ids of the executors that the scheduler knows now; one, the driver, in local mode. Empty where they are not
    known.
    """
    if is_local(session):
        return frozenset({"driver"})
    return executor_ids(session) if accelerations.has(Acceleration.EXECUTOR_IDS) else frozenset()


def most_executors(conf: Mapping[str, str]) -> float:
    """More than so many the application does not ask its cluster for."""
    bounds = []
    if conf.get("spark.dynamicAllocation.enabled", "false").lower() == "true":
        bounds.append(conf.get("spark.dynamicAllocation.maxExecutors", ""))
    cores, of_each = conf.get("spark.cores.max", ""), conf.get("spark.executor.cores", "")
    if cores.isdigit() and of_each.isdigit() and int(of_each):
        bounds.append(str(int(cores) // int(of_each)))
    return min((int(bound) for bound in bounds if bound.isdigit()), default=math.inf)


class ExecutorWait:
    """Waits between two attempts for executors in the place of lost ones. Where executors are not known it does
    nothing.
    """

    def __init__(self, session: SparkSession, accelerations: Accelerations, seconds: float, pause: Pause) -> None:
        self._session = session
        self._accelerations = accelerations
        self._seconds = seconds
        self._pause = pause

    def first(self, slots: int) -> int:
        """At the start of an application: for as many executors as it asked for, or until no more of them come."""
        if is_local(self._session) or not self._accelerations.has(Acceleration.EXECUTOR_IDS):
            return self._count()
        conf = dict(self._session.sparkContext.getConf().getAll())
        asked = conf.get("spark.executor.instances", "")
        if asked.isdigit():
            return self._until(min(int(asked), slots), _FIRST_SECONDS)
        found = self._until(1, _FIRST_SECONDS)
        quiet_since = time.monotonic()
        wanted = min(slots, most_executors(conf))
        while found < wanted and time.monotonic() - quiet_since < _SETTLE_SECONDS:
            self._pause(_POLL_SECONDS)
            now = self._count()
            if now != found:
                found, quiet_since = now, time.monotonic()
        return found

    def again(self, wanted: int) -> int:
        """Until there are as many as before, or long enough."""
        return self._until(wanted, self._seconds)

    def _until(self, wanted: int, seconds: float) -> int:
        deadline = time.monotonic() + seconds
        found = self._count()
        if found < wanted and self._accelerations.has(Acceleration.EXECUTOR_IDS):
            logger.info("%d of %d executors are there; waiting up to %.0f s for the others", found, wanted, seconds)
            while found < wanted and time.monotonic() < deadline:
                self._pause(_POLL_SECONDS)
                found = self._count()
            if found < wanted:
                logger.warning(
                    "%d executors are there and %d were wanted; none came within %.0f s "
                    "(holdfast.spark.executor-wait). The job goes on with them, and spreads its slots again when more "
                    "have come",
                    found,
                    wanted,
                    seconds,
                )
        return found

    def _count(self) -> int:
        return len(executors_of(self._session, self._accelerations))
