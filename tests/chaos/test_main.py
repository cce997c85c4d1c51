"""The rounds of ``make chaos``: whose turn it is, with which seed, and what it says at the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.testing.chaos import ChaosResult
from holdfast.testing.chaos.oracle import compare
from tests.chaos import __main__ as chaos
from tests.chaos.scenarios import Round, Scenario
from tests.kit.unavailable import Unavailable

FAULTS = {"worker": 1, "driver paused": 3, "kafka": 2}


def scenario(name: str, wrong_seed: int | None = None, faults: Mapping[str, int] = FAULTS) -> Scenario:
    @contextmanager
    def start() -> Iterator[Round]:
        def run(seed: int, directory: Path) -> ChaosResult:
            (directory / "log").touch()
            verdict = compare([1, 2], [1] if seed == wrong_seed else [1, 2], 2)
            return ChaosResult(name, seed, 0.0, faults, 1, verdict)

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


def test_rounds_go_on_until_so_many_processes_of_jobs_were_killed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scenarios = {"a": scenario("a"), "b": scenario("b", faults={"driver": 1, "executor": 1, "kafka stopped": 4})}
    monkeypatch.setattr(chaos, "SCENARIOS", scenarios)
    assert chaos.main(["--seed", "5", "--kills", "5", "--seconds", "0"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        "4 rounds, 0 failed, 6 kills (driver:2 executor:2 worker:2), "
        "other faults driver paused:6 kafka:4 kafka stopped:8, lost 0, repeated 0, wrong 0, seeds 5 to 8"
    )


def test_the_last_line_has_the_rows_of_all_rounds_that_went_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(chaos, "SCENARIOS", {"a": scenario("a", wrong_seed=6)})
    assert chaos.main(["--seed", "5", "--rounds", "2"]) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("2 rounds, 1 failed, 2 kills (worker:2)")
    assert last.endswith("lost 1, repeated 0, wrong 0, seeds 5 to 6")


def test_a_number_of_kills_that_nobody_gets_to_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    idle = {"a": scenario("a", faults={"worker": 0}), "b": scenario("b", faults={"kafka": 1})}
    monkeypatch.setattr(chaos, "SCENARIOS", idle)
    assert chaos.main(["--kills", "1"]) == 1
