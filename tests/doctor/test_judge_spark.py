"""Spark's version, Java, accelerations and tasks."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.doctor.application_settings import DAEMON_SETTING
from holdfast.doctor.findings import Finding, Level, green, red, worst, yellow
from holdfast.doctor.judge_spark import (
    NEWEST,
    OLDEST,
    judge_accelerations,
    judge_executors,
    judge_java,
    judge_spark,
    judge_version,
)
from tests.doctor.samples import APPLICATION, EXECUTOR


def only(findings) -> Finding:
    (finding,) = findings
    return finding


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ("3.4.4", Level.RED),
        ("3.5.0", Level.GREEN),
        ("3.5.0-vendor-7", Level.GREEN),
        ("4.3.1", Level.GREEN),
        ("4.4.0", Level.YELLOW),
        ("5.0.0-SNAPSHOT", Level.YELLOW),
        ("none", Level.RED),
    ],
)
def test_versions(version, level):
    finding = judge_version(version)
    assert (finding.level, finding.seen) == (level, version)
    assert bool(finding.advice) == (level is not Level.GREEN)


def test_versions_are_those_that_can_be_installed():
    project = (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text()
    oldest, behind = re.search(r'"pyspark>=(\d+\.\d+),<(\d+\.\d+)"', project).groups()
    assert oldest == f"{OLDEST[0]}.{OLDEST[1]}"
    assert behind == f"{NEWEST[0]}.{NEWEST[1] + 1}"


@pytest.mark.parametrize(
    ("version", "level"), [("1.8.0_392", Level.YELLOW), ("11.0.2", Level.YELLOW), ("17.0.15", Level.GREEN),
                           ("21", Level.GREEN), ("", Level.YELLOW)]
)
def test_java(version, level):
    assert judge_java(version).level is level


def test_accelerations():
    assert only(judge_accelerations(APPLICATION)).level is Level.GREEN
    off = replace(APPLICATION, accelerations_off={"kept plans": ("no such method", "every epoch is planned anew")})
    finding = only(judge_accelerations(off))
    assert (finding.level, finding.subject, finding.seen) == (
        Level.YELLOW, "acceleration: kept plans", "off: no such method",
    )
    assert "every epoch is planned anew" in finding.advice


def test_executors_that_answered():
    assert only(judge_executors(APPLICATION)) == green("executors", "1 on 1 host, all reached the driver")
    two = replace(APPLICATION, executors=(EXECUTOR, replace(EXECUTOR, host="host-b")), executors_known=None)
    assert only(judge_executors(two)).seen == "2 on 2 hosts, all reached the driver"
    local = replace(APPLICATION, is_local=True, master="local[2]")
    assert only(judge_executors(local)) == green("executors", "the driver (local[2])")


def test_executors_that_did_not_answer():
    finding = only(judge_executors(replace(APPLICATION, executors_known=3)))
    assert finding.level is Level.YELLOW and finding.seen.startswith("1 of 3 executors were seen")


def test_no_executor_came():
    finding = only(judge_executors(replace(APPLICATION, executors=(), executors_known=0, task_failure="none is there")))
    assert finding.level is Level.RED and "free cores" in finding.advice


def test_tasks_that_fail():
    failed = replace(APPLICATION, executors=(), task_failure="No module named 'holdfast'")
    finding = only(judge_executors(failed))
    assert (finding.level, finding.seen) == (Level.RED, "No module named 'holdfast'")
    assert f"{DAEMON_SETTING} needs Holdfast in that Python" in finding.advice
    without = replace(failed, settings={})
    assert DAEMON_SETTING not in only(judge_executors(without)).advice


def test_a_fit_application_is_green_all_over():
    assert worst(judge_spark(APPLICATION)) is Level.GREEN
    speculating = replace(APPLICATION, settings={**APPLICATION.settings, "spark.speculation": "true"})
    assert [finding.subject for finding in judge_spark(speculating) if finding.level is Level.RED] == [
        "spark.speculation"
    ]


def test_the_worst_of_findings():
    assert worst([]) is Level.GREEN
    assert worst([green("a", "b"), yellow("a", "b", "c")]) is Level.YELLOW
    assert worst([red("a", "b", "c"), green("a", "b")]) is Level.RED
