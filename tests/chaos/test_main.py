"""The rounds of ``make chaos``: whose turn it is, with which seed, and what it says at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.testing.chaos import ChaosResult
from holdfast.testing.chaos.oracle import compare
from tests.chaos import __main__ as chaos
from tests.chaos.scenarios import Round, Scenario
from tests.kit.unavailable import Unavailable


def scenario(name: str, wrong_seed: int | None = None) -> Scenario:
    @contextmanager
    def start() -> Iterator[Round]:
        def run(seed: int, directory: Path) -> ChaosResult:
            (directory / "log").touch()
            verdict = compare([1, 2], [1] if seed == wrong_seed else [1, 2], 2)
            return ChaosResult(name, seed, 0.0, {"worker": 1}, 1, verdict)

        yield run

    return start


@contextmanager
def absent() -> Iterator[Round]:
    raise Unavailable("no jars")
    yield


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(chaos.tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_scenarios_take_turns_with_the_next_seed_and_absent_ones_are_left_out(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(chaos, "SCENARIOS", {"a": scenario("a"), "none": absent, "b": scenario("b")})
    assert chaos.main(["--seed", "5", "--rounds", "3"]) == 0
    told = capsys.readouterr().out
    assert "none is left out: no jars" in told
    lines = [line.split() for line in told.splitlines() if "," not in line]
    rows = [words[:2] for words in lines if words[-2:] == ["exactly", "once"]]
    assert rows == [["a", "5"], ["b", "6"], ["a", "7"]]
    assert list(temporary.iterdir()) == []


def test_a_round_that_went_wrong_is_kept_and_told_how_to_repeat(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(chaos, "SCENARIOS", {"a": scenario("a", wrong_seed=6)})
    assert chaos.main(["--seed", "5", "--rounds", "3"]) == 1
    told = capsys.readouterr().out
    assert "make chaos SCENARIO=a SEED=6 ROUNDS=1" in told
    (kept,) = temporary.iterdir()
    assert f"are in {kept}" in told and (kept / "log").exists()


def test_no_round_begins_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chaos, "SCENARIOS", {"a": scenario("a")})
    # A run without rounds has shown nothing.
    assert chaos.main(["--seconds", "0"]) == 1
