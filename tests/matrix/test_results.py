"""What is run again, and what a report of pytest says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.matrix.catalogue import SMOKE, Run
from tests.matrix.environments import PROJECT
from tests.matrix.results import Result, Results, Told, fingerprint, read_report

RUN, OTHER = Run("3.5", "on", SMOKE), Run("3.5", "off", SMOKE)
FAILED = [Told("tests.a::test_b", "assert 1 == 2")]


def result(**changes) -> Result:
    told = {"version": "3.5", "accelerations": "on", "part": "smoke", "spark": "3.5.9", "fingerprint": "now"}
    told |= {"date": "2026-01-02", "seconds": 1.5, "code": 0, "passed": 3, "failed": [], "expected": [], "skipped": []}
    return Result(**told | changes)


def test_only_what_is_missing_failed_or_of_other_sources_is_run(tmp_path: Path):
    results = Results(tmp_path / "results")
    assert results.open_runs([RUN, OTHER], "now") == [RUN, OTHER]
    results.put(RUN, result())
    assert results.open_runs([RUN, OTHER], "now") == [OTHER]
    assert results.open_runs([RUN, OTHER], "later") == [RUN, OTHER]
    # Another process finds the same.
    assert Results(tmp_path / "results").current(RUN, "now") == result()
    results.put(RUN, result(code=1, failed=FAILED))
    assert results.open_runs([RUN], "now") == [RUN]


def test_a_result_that_another_tool_has_written_is_none(tmp_path: Path):
    results = Results(tmp_path)
    results.path(RUN, "json").write_text('{"version": "3.5"}')
    assert results.get(RUN) is None
    results.path(RUN, "json").write_text("half of")
    assert results.get(RUN) is None


@pytest.mark.parametrize(
    ("changes", "good"),
    [
        ({}, True),
        ({"passed": 0, "expected": FAILED}, True),
        ({"passed": 0}, False),
        ({"passed": 0, "skipped": FAILED}, False),
        ({"code": 1}, False),
        ({"code": None}, False),
        ({"failed": FAILED}, False),
    ],
)
def test_good_results(changes, good):
    assert result(**changes).good is good


def test_a_report(tmp_path: Path):
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite name="pytest">'
        '<testcase classname="tests.a" name="test_good"/>'
        '<testcase classname="tests.a" name="test_bad"><failure message="assert 1 == 2&#10; + x">-</failure></testcase>'
        '<testcase classname="tests.a" name="test_broken"><error message="failed on setup">more</error></testcase>'
        '<testcase classname="" name="tests.b"><error message="collection failure">no module</error></testcase>'
        '<testcase classname="tests.a" name="test_old"><skipped type="pytest.xfail" message="not yet"/></testcase>'
        '<testcase classname="tests.a" name="test_left"><skipped type="pytest.skip" message="no jars"/></testcase>'
        "</testsuite></testsuites>"
    )
    passed, failed, expected, skipped = read_report(report)
    assert passed == 1
    assert failed == [
        Told("tests.a::test_bad", "assert 1 == 2"),
        Told("tests.a::test_broken", "failed on setup"),
        Told("tests.b", "collection failure"),
    ]
    assert expected == [Told("tests.a::test_old", "not yet")]
    assert skipped == [Told("tests.a::test_left", "no jars")]


def test_where_the_clone_lies_is_left_out(tmp_path: Path):
    report = tmp_path / "report.xml"
    case = f'<testcase classname="a" name="b"><failure message="{PROJECT}/tests/c.py ended with 1"/></testcase>'
    report.write_text(f"<testsuites><testsuite>{case}</testsuite></testsuites>")
    assert read_report(report)[1] == [Told("a::b", "tests/c.py ended with 1")]


def test_what_changes_the_sources(tmp_path: Path):
    for name in (
        "src/holdfast/a.py",
        "tests/test_a.py",
        "tests/matrix/page.py",
        "docs/reference/b.md",
        "pyproject.toml",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    before = fingerprint(tmp_path)
    for name in ("tests/matrix/page.py", "docs/reference/b.md", "README.md", "src/holdfast/__pycache__"):
        path = tmp_path / name
        path.mkdir() if name.endswith("__") else path.write_text("changed")
    (tmp_path / "src/holdfast/__pycache__/a.pyc").write_text("compiled")
    assert fingerprint(tmp_path) == before
    (tmp_path / "src/holdfast/a.py").rename(tmp_path / "src/holdfast/c.py")
    renamed = fingerprint(tmp_path)
    (tmp_path / "tests/test_a.py").write_text("changed")
    assert len({before, renamed, fingerprint(tmp_path)}) == 3
