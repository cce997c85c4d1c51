"""The marker of tests that a Spark cannot pass."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from tests.kit.driver import PROJECT, python_path
from tests.kit.spark_versions import INTERNALS_VARIABLE, Spark, line_of, obstacle

OLD, NEW, PLAIN = Spark((3, 5), True), Spark((4, 3), True), Spark((4, 3), False)


def test_lines():
    assert line_of("4.0.5") == line_of("4.0") == (4, 0) < line_of("4.10.1")
    with pytest.raises(pytest.UsageError, match="'four' is no version of Spark; expected one like 4"):
        line_of("four")


@pytest.mark.parametrize(
    ("told", "fails_on"),
    [
        ({"min": "4.0"}, [OLD]),
        ({"min": "3.5"}, []),
        ({"max": "4.2"}, [NEW, PLAIN]),
        ({"max": "4.3"}, []),
        ({"min": "4.0", "max": "4.2"}, [OLD, NEW, PLAIN]),
        ({"internals": True}, [PLAIN]),
        ({"internals": True, "min": "4.0"}, [OLD, PLAIN]),
    ],
)
def test_where_a_test_fails(told, fails_on):
    told = {**told, "reason": "why"}
    assert [spark for spark in (OLD, NEW, PLAIN) if obstacle("test", told, spark) == "why"] == fails_on


@pytest.mark.parametrize(
    "told",
    [
        {"min": "4.0"},
        {"reason": "why"},
        {"minimum": "4.0", "reason": "why"},
        {"min": "4.0", "reason": "why", "run": False},
        {},
    ],
)
def test_a_marker_that_says_too_little_or_something_else(told):
    with pytest.raises(pytest.UsageError, match="it takes a reason and at least one of min, max and internals=True"):
        obstacle("test", told, OLD)


def test_the_spark_of_this_process(monkeypatch):
    line = line_of(metadata.version("pyspark"))
    monkeypatch.delenv(INTERNALS_VARIABLE, raising=False)
    assert Spark.here() == Spark(line, True)
    monkeypatch.setenv(INTERNALS_VARIABLE, "off")
    assert Spark.here() == Spark(line, False)


def test_strict_expected_failures(tmp_path: Path):
    """As pytest sees them, with this project's own settings."""
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_collection_modifyitems\n")
    test = tmp_path / "test_marked.py"
    test.write_text(
        "import pytest\n"
        "future = pytest.mark.spark(min='99.0', reason='not there yet')\n"
        "@future\ndef test_fails(): assert False\n"
        "@future\ndef test_works(): pass\n"
        "@pytest.mark.spark(max='99.0', reason='gone')\ndef test_here(): pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-c", str(PROJECT / "pyproject.toml"), "--rootdir", str(tmp_path)]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", "-rA", str(test)],
        cwd=tmp_path,
        env={"PATH": "", "PYTHONPATH": python_path()},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 1 passed, 1 xfailed" in done.stdout, done.stdout + done.stderr
    assert "[XPASS(strict)] not there yet" in done.stdout
    assert "XFAIL test_marked.py::test_fails - not there yet" in done.stdout
