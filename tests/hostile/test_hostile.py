"""The hostile trial in short, and how it judges."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile import __main__ as hostile
from tests.hostile import cases, job
from tests.hostile.cases import Stage, Story
from tests.hostile.damage import Damaged
from tests.hostile.forked import Ended
from tests.hostile.outcome import EXACT, REFUSED, Outcome
from tests.kit.driver import PROJECT, python_path


@pytest.mark.slow
def test_it_in_short() -> None:
    """In a process of its own: its cases are forks of it."""
    command = [sys.executable, "-m", "tests.hostile", "--seed", "7", "--cases", "8", "--disks", "3"]
    surroundings = {"PYTHONPATH": python_path(), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}
    trials = ["--trial", "damage", "--trial", "disks"]
    done = subprocess.run([*command, *trials], cwd=PROJECT, env=surroundings, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """The stage of a job that never runs: its forks end as a test says."""
    return Stage(Story("heap", "worker", "lost", 1), tmp_path / "stage")


def publish(stage: Stage, rows: list[tuple[int, int]]) -> None:
    shutil.rmtree(stage.directory / "out", ignore_errors=True)
    for number, (key, value) in enumerate(rows):
        path = stage.directory / "out" / str(key) / f"part-{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"f1": value}))


def test_rows_that_are_not_those_are_wrong(stage: Stage) -> None:
    publish(stage, job.expected())
    assert stage._judge(Ended(0, ""), Path("file"), None) == (EXACT, "")
    publish(stage, job.expected()[1:])
    assert stage._judge(Ended(0, "told"), Path("file"), None) == ("wrong rows (1 lost, -1 more)", "told")


@pytest.mark.parametrize(
    ("ended", "verdict"),
    [
        (Ended(-9, "", hung=True), "hangs"),
        (Ended(-11, ""), "died of signal 11"),
        (Ended(1, "Traceback (most recent call last)\nValueError: file"), "refused without its name"),
        (Ended(1, "Traceback (most recent call last)\nholdfast.errors.StateError"), "refused without its name"),
    ],
)
def test_an_end_that_is_no_refusal_is_told(stage: Stage, ended: Ended, verdict: str) -> None:
    assert stage._judge(ended, Path("file"), None)[0] == verdict


def test_a_job_that_is_refused_must_go_on_when_the_file_is_mended(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = Ended(1, "Traceback (most recent call last)\nholdfast.errors.StateError: state-file is damaged")
    path = tmp_path / "state-file"
    path.write_bytes(b"content")
    for code, verdict in ((0, "refused by name"), (1, "refused, and behind it: does not go on")):
        publish(stage, job.expected())
        damaged = Damaged(path, "deleted", [path], cases.random.Random(1))
        monkeypatch.setattr(cases, "in_fork", lambda work, log, code=code: Ended(code, ""))
        assert stage._judge(refused, path, damaged)[0].startswith(verdict)
        assert path.read_bytes() == b"content"


def test_of_a_file_of_tests_those_are_cases_that_say_so_or_did_not_pass(tmp_path: Path) -> None:
    path = tmp_path / "test_cases.py"
    path.write_text(
        "import pytest\n"
        "from tests.hostile.outcome import EXACT, REFUSED, is_a_case\n"
        "def test_exact(record_property): is_a_case(record_property, 'a', 'here', EXACT)\n"
        "def test_refused(record_property): is_a_case(record_property, 'b', 'there', REFUSED)\n"
        "def test_compared_with(): pass\n"
        "def test_wrong(record_property):\n"
        "    is_a_case(record_property, 'a', 'here', EXACT)\n"
        "    assert False\n"
        "def test_left_out(record_property):\n"
        "    is_a_case(record_property, 'a', 'here', EXACT)\n"
        "    pytest.skip()\n"
        "def test_broken(missing): pass\n"
    )
    outcomes = hostile.tests(str(path), tmp_path)
    assert [(outcome.trial, outcome.place, outcome.how, outcome.verdict) for outcome in outcomes] == [
        ("a", "here", "test_exact", EXACT),
        ("b", "there", "test_refused", REFUSED),
        ("a", "here", "test_wrong", "failure"),
        ("a", "here", "test_left_out", "skipped"),
        (str(path), "-", "test_broken", "error"),
    ]


def test_only_exact_and_refused_cases_are_good() -> None:
    assert Outcome("damage", "place", "heap", "how", EXACT).good
    assert not Outcome("damage", "place", "heap", "how", "wrong rows").good
