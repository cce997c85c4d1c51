"""What is done behind Spark's public API to be faster, and whether the running Spark lets it be done.

Each acceleration has a module below ``holdfast.spark.internals`` with a probe, which tries it, and a public way beside
it that gives the same results. What the running Spark does not have switches itself off.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import SparkSession

from holdfast.doctor.application_settings import DAEMON_SETTING, WORKER_DAEMON
from holdfast.errors import ConfigurationError
from holdfast.spark.internals import executor_ids, file_manager, half_aggregation, repeated_plan
from holdfast.spark.internals.worker_process import misfit
from holdfast.types.settings import SparkSettings

logger = logging.getLogger(__name__)


class Acceleration(Enum):
    """What it is called, and what happens without it."""

    KEPT_PLANS = ("kept plans", "every epoch is planned anew")
    HALF_AGGREGATIONS = ("aggregation in the JVM ahead of Python", "rows are combined in the Python task")
    WORKER_DAEMON = ("Python processes that keep their partition", "Spark's own daemon")
    FILE_MANAGER = ("plain files for the log of a stream", "Spark's default file manager")
    EXECUTOR_IDS = ("watched executors", "a lost executor is noticed by Spark's retries")

    def __init__(self, title: str, otherwise: str) -> None:
        self.title = title
        self.otherwise = otherwise

    @property
    def key(self) -> str:
        """In the configuration."""
        return self.name.lower().replace("_", "-")


_PROBES: Mapping[Acceleration, Callable[[SparkSession], str | None]] = {
    Acceleration.KEPT_PLANS: repeated_plan.probe,
    Acceleration.HALF_AGGREGATIONS: half_aggregation.probe,
    Acceleration.WORKER_DAEMON: lambda session: _probe_daemon(session),
    Acceleration.FILE_MANAGER: file_manager.probe,
    Acceleration.EXECUTOR_IDS: executor_ids.probe,
}


@dataclass(frozen=True)
class Accelerations:
    """Which accelerations are off, with the reason."""

    missing: Mapping[Acceleration, str]
    #: What of it the running Spark lacks; the rest was not asked for.
    lacking: frozenset[Acceleration] = frozenset()

    @classmethod
    def of(cls, session: SparkSession, settings: SparkSettings) -> Accelerations:
        """What the running Spark has, but for what the settings leave out."""
        if not settings.internals:
            off = dict.fromkeys(Acceleration, "holdfast.spark.internals is off")
            # It is a setting of the application, which was started before anybody could ask.
            if _probe_daemon(session) is None:
                del off[Acceleration.WORKER_DAEMON]
            return cls(off)
        left_out, probed = _left_out(settings.without), _probed(session)
        missing = {**probed, **left_out}
        # Combined rows come as RDDs, which only kept plans can read.
        if Acceleration.KEPT_PLANS in missing:
            missing.setdefault(Acceleration.HALF_AGGREGATIONS, "it needs kept plans")
        # Which daemon an application has was decided, and judged, when it started.
        chosen = set() if _daemon_of(session) == WORKER_DAEMON else {Acceleration.WORKER_DAEMON}
        return cls(missing, frozenset(probed.keys() - left_out.keys() - chosen))

    def has(self, acceleration: Acceleration) -> bool:
        return acceleration not in self.missing

    def describe(self) -> str:
        """One line: which are on, which are not, why, and what is done instead."""
        on = [each.title for each in Acceleration if self.has(each)]
        off = [f"{each.title} ({why}: {each.otherwise})" for each, why in self.missing.items()]
        return f"on: {', '.join(on) or 'none'}; off: {', '.join(off) or 'none'}"


#: How much of an error is shown, in characters. Those of the JVM bring their stack.
_SHOWN = 200

#: Of this process, by application: a probe makes plans, which takes a moment.
_known: dict[str, dict[Acceleration, str]] = {}


def _probed(session: SparkSession) -> dict[Acceleration, str]:
    """What the running Spark does not have, and why."""
    application = session.sparkContext.applicationId
    if application not in _known:
        _known.clear()
        reasons = {acceleration: _tried(probe, session) for acceleration, probe in _PROBES.items()}
        _known[application] = {acceleration: reason for acceleration, reason in reasons.items() if reason is not None}
    return _known[application]


def _tried(probe: Callable[[SparkSession], str | None], session: SparkSession) -> str | None:
    try:
        return probe(session)
    except Exception as error:
        # Whatever a build of Spark makes of it: an epoch would fail with the same.
        return f"{type(error).__name__}: {' '.join(str(error).split())[:_SHOWN]}"


def _left_out(names: frozenset[str]) -> dict[Acceleration, str]:
    by_key = {each.key: each for each in Acceleration if each is not Acceleration.WORKER_DAEMON}
    unknown = sorted(names - by_key.keys())
    if unknown:
        raise ConfigurationError(
            f"holdfast.spark.internals.without has {unknown[0]!r}; expected some of {', '.join(by_key)}. For Python "
            f"workers set {DAEMON_SETTING} to pyspark.daemon."
        )
    return {by_key[name]: "left out by holdfast.spark.internals.without" for name in names}


def _daemon_of(session: SparkSession) -> str | None:
    module: str | None = session.sparkContext.getConf().get(DAEMON_SETTING)
    return module


def _probe_daemon(session: SparkSession) -> str | None:
    module = _daemon_of(session)
    if module != WORKER_DAEMON:
        return f"{DAEMON_SETTING} is {module or 'not set'}"
    reason = misfit()
    return reason and f"{reason}; start the application with {DAEMON_SETTING} set to pyspark.daemon"
