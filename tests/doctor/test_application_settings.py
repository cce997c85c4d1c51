"""The table of settings: how values are judged, and that the page shows it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast.doctor.application_settings import (
    DAEMON_SETTING,
    OLD_DAEMON,
    SETTINGS,
    SOCKETS,
    WORKER_DAEMON,
    judge_settings,
    seconds_of,
    settings_of_ours,
)
from holdfast.doctor.findings import Level

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "run-on-a-cluster.md"
BY_KEY = {setting.key: setting for setting in SETTINGS}


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.key)
def test_what_is_wanted_is_green(setting):
    finding = setting.judge(setting.wanted)
    assert (finding.level, finding.subject, finding.seen) == (Level.GREEN, setting.key, setting.wanted)
    assert finding.advice == ""


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.key)
def test_a_default_is_judged_as_one(setting):
    finding = setting.judge(None)
    assert finding.seen.endswith("(Spark's default)")
    wanted_by_default = {"spark.speculation", "spark.dynamicAllocation.enabled", "spark.python.worker.reuse"}
    assert finding.level is (Level.GREEN if setting.key in wanted_by_default else Level.YELLOW)


@pytest.mark.parametrize(
    ("key", "value", "level"),
    [
        ("spark.speculation", "true", Level.RED),
        ("spark.speculation", "TRUE", Level.RED),
        ("spark.speculation", "False", Level.GREEN),
        ("spark.dynamicAllocation.enabled", "true", Level.YELLOW),
        ("spark.stage.maxConsecutiveAttempts", "2", Level.YELLOW),
        ("spark.task.maxFailures", "8", Level.YELLOW),
        ("spark.shuffle.reduceLocality.enabled", "true", Level.YELLOW),
        ("spark.locality.wait", "1m", Level.GREEN),
        ("spark.locality.wait", "30000", Level.GREEN),
        ("spark.locality.wait", "30", Level.YELLOW),
        ("spark.locality.wait", "29s", Level.YELLOW),
        ("spark.locality.wait", "for ever", Level.YELLOW),
        ("spark.python.worker.reuse", "false", Level.YELLOW),
        (DAEMON_SETTING, OLD_DAEMON, Level.RED),
        (DAEMON_SETTING, "pyspark.daemon", Level.YELLOW),
        (DAEMON_SETTING, "", Level.YELLOW),
        (SOCKETS, "false", Level.YELLOW),
        ("spark.storage.blockManagerHeartbeatTimeoutMs", "15000", Level.GREEN),
        ("spark.storage.blockManagerHeartbeatTimeoutMs", "800s", Level.YELLOW),
        ("spark.network.timeoutInterval", "2s", Level.GREEN),
    ],
)
def test_values(key, value, level):
    finding = BY_KEY[key].judge(value)
    assert finding.level is level
    if level is not Level.GREEN:
        assert finding.advice.endswith(f"Set {key}={BY_KEY[key].wanted} when the application starts.")


@pytest.mark.parametrize(
    ("text", "unit", "seconds"),
    [("3s", "ms", 3), ("3000", "ms", 3), ("120", "s", 120), ("2min", "s", 120), ("1h", "s", 3600),
     ("250 ms", "s", 0.25), ("", "s", None), ("3x", "s", None), ("s", "s", None)],
)
def test_durations_of_spark(text, unit, seconds):
    assert seconds_of(text, unit) == seconds


def judged(is_local, version):
    return {finding.subject for finding in judge_settings({}, is_local, version)}


def test_only_what_matters_is_judged():
    assert judged(False, (4, 1)) == set(BY_KEY)
    assert judged(False, (4, 0)) == set(BY_KEY) - {SOCKETS}
    assert judged(True, (4, 3)) == {"spark.speculation", "spark.python.worker.reuse", DAEMON_SETTING, SOCKETS}


def test_sessions_of_ours_have_what_is_wanted_and_suits_every_master():
    assert settings_of_ours()["spark.locality.wait"] == "30s"
    assert not {DAEMON_SETTING, SOCKETS, "spark.speculation"} & set(settings_of_ours())


def test_the_page_shows_the_table():
    """Every setting with the value that is wanted and what happens otherwise, in the order of the table."""
    section = PAGE.read_text().partition("## Settings of the application")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(spark\.[\w.]+)` \| `([^`]+)`[^|]*\| (.+) \|$", section, re.MULTILINE)
    assert rows == [(setting.key, setting.wanted, setting.otherwise) for setting in SETTINGS]


def test_the_command_of_the_page_sets_what_is_not_the_default():
    (command,) = (block for block in PAGE.read_text().split("```") if "--archives" in block and "--conf" in block)
    told = dict(re.findall(r"--conf (spark\.[\w.]+)=(\S+)", command))
    # Unix sockets are not there in every version.
    wanted = {s.key: s.wanted for s in SETTINGS if s.wanted != s.default and s.key != SOCKETS}
    assert wanted.items() <= told.items()
    assert told[DAEMON_SETTING] == WORKER_DAEMON
