"""Settings of a Spark application that jobs depend on, each with what it costs where it is another one.

They are fixed when the application starts. The table is all that knows them: sessions that Holdfast makes get their
values from it, the start of a job and ``holdfast doctor`` check by it, and docs/how-to/run-on-a-cluster.md shows it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from holdfast.doctor.findings import Finding, green, red, yellow

#: The daemon that keeps partitions with their Python processes.
WORKER_DAEMON = "holdfast.spark.internals.worker_daemon"
DAEMON_SETTING = "spark.python.daemon.module"
#: The name that it had in versions before Holdfast 0.2.
OLD_DAEMON = "holdfast.spark.worker_daemon"
SOCKETS = "spark.python.unix.domain.socket.enabled"

_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(\d+)\s*([a-z]*)")


@dataclass(frozen=True)
class ApplicationSetting:
    """``default`` is Spark's own value, empty where it has none."""

    key: str
    wanted: str
    default: str
    #: What happens with another value.
    otherwise: str
    fits: Callable[[str], bool]
    #: Values with which no job can run, with the reason.
    refused: Mapping[str, str] = field(default_factory=dict)
    #: Whether it matters where the driver is the only executor.
    local: bool = False
    #: Whether sessions that Holdfast makes have it, whatever their master is.
    ours: bool = False
    #: The first version of Spark that has it.
    since: tuple[int, int] = (0, 0)

    def matters(self, is_local: bool, version: tuple[int, int]) -> bool:
        return version >= self.since and (self.local or not is_local)

    def judge(self, told: str | None) -> Finding:
        """For the value that the application was told, None for none."""
        value = told if told is not None else self.default
        seen = (value or "not set") if told is not None else f"{self.default or 'not set'} (Spark's default)"
        if value.lower() in self.refused:
            return red(self.key, seen, f"{self.refused[value.lower()]} {self.advice}")
        if self.fits(value):
            return green(self.key, seen)
        return yellow(self.key, seen, f"{_sentence(self.otherwise)} {self.advice}")

    @property
    def advice(self) -> str:
        return f"Set {self.key}={self.wanted} when the application starts."


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _is(wanted: str) -> Callable[[str], bool]:
    return lambda value: value.lower() == wanted


def seconds_of(duration: str, unit: str = "s") -> float | None:
    """Seconds of a duration as Spark writes it; ``unit`` is that of a bare number. None for anything else."""
    match = _DURATION.fullmatch(duration.strip().lower())
    if match is None or (match[2] or unit) not in _SECONDS:
        return None
    return int(match[1]) * _SECONDS[match[2] or unit]


def _at_least(seconds: float, unit: str) -> Callable[[str], bool]:
    return lambda value: (found := seconds_of(value, unit)) is not None and found >= seconds


def _at_most(seconds: float, unit: str) -> Callable[[str], bool]:
    return lambda value: (found := seconds_of(value, unit)) is not None and found <= seconds


SETTINGS: tuple[ApplicationSetting, ...] = (
    ApplicationSetting(
        "spark.speculation",
        "false",
        "false",
        "the job does not start",
        _is("false"),
        refused={"true": "Spark would run a subtask twice at the same time, and its state with it."},
        local=True,
    ),
    ApplicationSetting(
        "spark.dynamicAllocation.enabled",
        "false",
        "false",
        "an executor that is given back takes its state with it; the job restores from its checkpoint",
        _is("false"),
    ),
    ApplicationSetting(
        "spark.stage.maxConsecutiveAttempts",
        "1",
        "4",
        "Spark computes lost parts of an epoch again, and the epoch is thrown away anyway, later",
        _is("1"),
        ours=True,
    ),
    ApplicationSetting(
        "spark.task.maxFailures",
        "1",
        "4",
        "a single task that fails is run again, and its epoch is thrown away anyway, later",
        _is("1"),
        ours=True,
    ),
    ApplicationSetting(
        "spark.shuffle.reduceLocality.enabled",
        "false",
        "true",
        "slots may move between executors, and each move costs a restore",
        _is("false"),
        ours=True,
    ),
    ApplicationSetting(
        "spark.locality.wait",
        "30s",
        "3s",
        "a busy executor loses its slots to others after 3 s",
        _at_least(30, "ms"),
        ours=True,
    ),
    ApplicationSetting(
        "spark.python.worker.reuse",
        "true",
        "true",
        "a Python process is started for every task",
        _is("true"),
        local=True,
        ours=True,
    ),
    ApplicationSetting(
        DAEMON_SETTING,
        WORKER_DAEMON,
        "",
        "slots of an executor with several cores change Python processes from epoch to epoch, and read their state "
        "from the local store again; every new process takes a second to import what it needs",
        _is(WORKER_DAEMON),
        refused={OLD_DAEMON: "That module was renamed, and no Python task can run without it."},
        local=True,
    ),
    ApplicationSetting(
        SOCKETS,
        "true",
        "false",
        "most tasks wait 40 ms for an acknowledgement of the network between Spark and Python",
        _is("true"),
        local=True,
        since=(4, 1),
    ),
    ApplicationSetting(
        "spark.executor.heartbeatInterval",
        "3s",
        "10s",
        "a host that is cut off, without a word, is taken for lost later",
        _at_most(3, "ms"),
    ),
    ApplicationSetting(
        "spark.storage.blockManagerHeartbeatTimeoutMs",
        "15s",
        "120s",
        "a host that is cut off is taken for lost only after two minutes",
        _at_most(15, "ms"),
    ),
    ApplicationSetting(
        "spark.network.timeoutInterval",
        "3s",
        "60s",
        "executors that have gone silent are looked for only once a minute",
        _at_most(3, "ms"),
    ),
)


def settings_of_ours() -> dict[str, str]:
    """What sessions that Holdfast makes have, whatever their master is."""
    return {setting.key: setting.wanted for setting in SETTINGS if setting.ours}


def judge_settings(told: Mapping[str, str], is_local: bool, version: tuple[int, int]) -> Iterator[Finding]:
    """One finding for each setting that matters in such an application."""
    for setting in SETTINGS:
        if setting.matters(is_local, version):
            yield setting.judge(told.get(setting.key))
