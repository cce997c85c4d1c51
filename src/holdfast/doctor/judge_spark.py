"""Judges Spark itself: its version, its Java, what is done behind its public API, and whether its tasks run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.doctor.application_settings import DAEMON_SETTING, WORKER_DAEMON, judge_settings
from holdfast.doctor.facts import ApplicationFacts
from holdfast.doctor.findings import Finding, green, red, yellow

#: The lines of Spark that the test suite runs on, the first and the last.
OLDEST, NEWEST = (3, 5), (4, 3)
_OLDEST_JAVA = 17


def judge_spark(facts: ApplicationFacts) -> Iterator[Finding]:
    version = version_of(facts.spark_version)
    yield judge_version(facts.spark_version)
    yield judge_java(facts.java_version)
    yield from judge_accelerations(facts)
    yield from judge_settings(facts.settings, facts.is_local, version)
    yield from judge_executors(facts)


def version_of(text: str) -> tuple[int, int]:
    """Vendors add to it what they like."""
    match = re.match(r"(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def judge_version(text: str) -> Finding:
    version = version_of(text)
    tried = f"{_text(OLDEST)} to {_text(NEWEST)}"
    if version < OLDEST:
        return red("Spark", text, f"Holdfast runs on Spark {tried}: use one of them.")
    if version > NEWEST:
        return yellow("Spark", text, f"Holdfast is tested on Spark {tried}: try this job with its tests first.")
    return green("Spark", text)


def judge_java(text: str) -> Finding:
    """Spark has started on it, so it does run."""
    match = re.match(r"(?:1\.)?(\d+)", text)
    if match is None or int(match[1]) < _OLDEST_JAVA:
        advice = f"Holdfast is tested on Java {_OLDEST_JAVA} and newer: set JAVA_HOME, on driver and executors."
        return yellow("Java", text, advice)
    return green("Java", text)


def judge_accelerations(facts: ApplicationFacts) -> Iterator[Finding]:
    if not facts.accelerations_off:
        yield green("accelerations", "all are on")
    for title, (reason, instead) in facts.accelerations_off.items():
        advice = (
            f"Results are the same, and jobs slower: {instead}. Set holdfast.spark.internals=auto where it is off; "
            "docs/reference/spark-versions.md says which Spark has what."
        )
        yield yellow(f"acceleration: {title}", f"off: {reason}", advice)


def judge_executors(facts: ApplicationFacts) -> Iterator[Finding]:
    """Whether tasks ran on all of them: an executor that answered has reached the driver, too."""
    if facts.task_failure is not None:
        yield red("Python tasks", facts.task_failure, _advice_for_tasks(facts))
        return
    answered, known = len(facts.executors), facts.executors_known
    if known is not None and answered < known:
        seen = f"{answered} of {known} executors were seen: the others were busy, or came late"
        yield yellow("executors", seen, "Ask again when no other job runs in this application.")
    elif facts.is_local:
        yield green("executors", f"the driver ({facts.master})")
    else:
        hosts = len({executor.host for executor in facts.executors})
        yield green("executors", f"{answered} on {hosts} {'host' if hosts == 1 else 'hosts'}, all reached the driver")


def _advice_for_tasks(facts: ApplicationFacts) -> str:
    if facts.executors_known == 0:
        return (
            "No executor came. Check in Spark's web page that the cluster has free cores and memory for it, and that "
            "executors reach the driver (spark.driver.host, spark.driver.port, firewalls)."
        )
    python = "Check that every host has the Python of spark.pyspark.python, in the version of the driver."
    if facts.settings.get(DAEMON_SETTING) == WORKER_DAEMON:
        return (
            f"{python} {DAEMON_SETTING} needs Holdfast in that Python, not in --py-files: install it there, or leave "
            "the setting out."
        )
    return python


def _text(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
