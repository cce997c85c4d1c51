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
from holdfast.spark.standalone_master import StandaloneMaster, cores_of_each

logger = logging.getLogger(__name__)

_LOCAL_MASTER = re.compile(r"local(\[.*\])?")
_POLL_SECONDS = 0.1
#: How often the cluster is asked what it has left.
_ASK_SECONDS = 1.0
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
    cores, of_each = conf.get("spark.cores.max", ""), cores_of_each(conf)
    if cores.isdigit() and of_each:
        bounds.append(str(int(cores) // of_each))
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
        context = session.sparkContext
        self._conf = dict(context.getConf().getAll())
        self._cluster = StandaloneMaster.of(str(context.master), str(context.applicationId), self._conf)

    def first(self, slots: int) -> int:
        """At the start of an application: for as many executors as it asked for, or until no more of them come."""
        if is_local(self._session) or not self._accelerations.has(Acceleration.EXECUTOR_IDS):
            return self._count()
        asked = self._conf.get("spark.executor.instances", "")
        if asked.isdigit():
            return self._until(min(int(asked), slots), _FIRST_SECONDS)
        found = self._until(1, _FIRST_SECONDS)
        quiet_since = time.monotonic()
        wanted = min(slots, most_executors(self._conf))
        while found < wanted and time.monotonic() - quiet_since < _SETTLE_SECONDS:
            self._pause(_POLL_SECONDS)
            now = self._count()
            if now != found:
                found, quiet_since = now, time.monotonic()
        return found

    def again(self, wanted: int) -> int:
        """Until there are as many as before, or long enough; not where the cluster is known to have no more."""
        return self._until(wanted, self._seconds, self._exhausted)

    def _until(self, wanted: int, seconds: float, exhausted: Callable[[int], str | None] = lambda found: None) -> int:
        """``exhausted`` says why nothing more will come than was found."""
        begin, asked = time.monotonic(), -math.inf
        found, reason = self._count(), None
        if found >= wanted or not self._accelerations.has(Acceleration.EXECUTOR_IDS):
            return found
        logger.info("%d of %d executors are there; waiting up to %.0f s for the others", found, wanted, seconds)
        while found < wanted and reason is None:
            now = time.monotonic()
            if now - begin >= seconds:
                reason = f"none came within {seconds:.0f} s (holdfast.spark.executor-wait)"
            elif now - asked >= _ASK_SECONDS:
                reason, asked = exhausted(found), now
            if reason is None:
                self._pause(_POLL_SECONDS)
                found = self._count()
        if found < wanted:
            logger.warning(
                "%d executors are there and %d were wanted; %s. The job goes on with them, and spreads its slots again "
                "when more have come",
                found,
                wanted,
                reason,
            )
        return found

    def _exhausted(self, found: int) -> str | None:
        if self._cluster is None:
            return None
        of_each = cores_of_each(self._conf)
        if of_each is not None:
            return self._cluster.exhausted(found * of_each)
        # Spark counts the cores of all executors for it, where nobody has set it.
        known = "spark.default.parallelism" not in self._conf
        return self._cluster.exhausted(self._session.sparkContext.defaultParallelism) if known else None

    def _count(self) -> int:
        return len(executors_of(self._session, self._accelerations))
