"""The page of Spark's versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.matrix import page
from tests.matrix.page import Seen, record, recorded, render
from tests.matrix.results import Told
from tests.matrix.test_results import result


def test_the_page_is_up_to_date():
    assert page.PAGE.read_text() == render(recorded()), "run 'make docs' and commit the result"


def seen(version: str, accelerations: str, part: str, **changes) -> Seen:
    told = {"spark": f"{version}.1", "date": "2026-01-02", "passed": 0, "failed": [], "expected": [], "skipped": []}
    return Seen(version, accelerations, part, **told | changes)


def lines_with(text: str, rendered: str) -> list[str]:
    return [line for line in rendered.splitlines() if text in line]


def test_features_by_version():
    old, gone = Told("tests.a::test_b[x|y]", "no such thing before 4.0"), Told("tests.a::test_c", "no jars")
    rendered = render(
        [
            seen("3.5", "on", "kills", passed=7, expected=[old], fingerprint="0123456789abcdef"),
            seen("3.5", "on", "smoke", passed=4, fingerprint="0123456789abcdef"),
            seen("3.5", "off", "kills", passed=6, expected=[old], skipped=[gone]),
            seen("4.3", "on", "kills", passed=8, date="2026-01-05"),
            seen("4.3", "off", "kills", passed=5, failed=[Told("tests.a::test_d", "assert 1 == 2")], spark="4.3.2"),
        ]
    )
    assert lines_with("kills of workers and drivers", rendered) == [
        "| kills of workers and drivers | 7 passed, 1 expected to fail | not run | - | - | 8 passed |",
        "| kills of workers and drivers | 6 passed, 1 expected to fail, 1 skipped | not run | - | - "
        "| 1 **failed**, 5 passed |",
    ]
    assert lines_with("| 3.5 | o", rendered) == [
        "| 3.5 | off | 3.5.1 | 2026-01-02 | not recorded | 1 |",
        "| 3.5 | on | 3.5.1 | 2026-01-02 | 0123456789ab | 2 |",
    ]
    assert lines_with("| 4.3 | o", rendered) == [
        "| 4.3 | off | 4.3.2 | 2026-01-02 | not recorded | 1 |",
        "| 4.3 | on | 4.3.1 | 2026-01-05 | not recorded | 1 |",
    ]
    assert lines_with("| 4.1 | ", rendered)[0] == "| 4.1 |  |  | never |  | 0 |"
    assert lines_with("test_b", rendered) == [
        "| `tests.a::test_b[x\\|y]` | 3.5 on, 3.5 off | no such thing before 4.0 |"
    ]
    assert lines_with("test_c", rendered) == ["| `tests.a::test_c` | 3.5 off | no jars |"]
    assert lines_with("test_d", rendered) == ["| `tests.a::test_d` | 4.3 off | assert 1 == 2 |"]


def test_sections_without_lines_are_left_out():
    rendered = render([seen("4.3", "on", "smoke", passed=4)])
    assert [line for line in rendered.splitlines() if line.startswith("## ")] == ["## Features"]


def test_what_is_recorded_is_rendered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(page, "DATA", tmp_path / "versions.json")
    monkeypatch.setattr(page, "PAGE", tmp_path / "versions.md")
    record([result()])
    told = {"passed": 3, "spark": "3.5.9", "fingerprint": "now"}
    assert recorded(tmp_path / "versions.json") == [seen("3.5", "on", "smoke", **told)]
    assert (tmp_path / "versions.md").read_text() == render(recorded(tmp_path / "versions.json"))
