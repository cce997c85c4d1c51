"""Rounds of faults on small programs without Spark: what they come to, and what a seed repeats."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from holdfast.errors import ConfigurationError
from holdfast.testing.chaos import (
    ChaosResult,
    Fault,
    KillDriver,
    KillService,
    KillWorker,
    Moments,
    Oracle,
    PauseDriver,
    Program,
    Service,
    StopService,
    Target,
    run_chaos,
    table_of,
)
from holdfast.testing.chaos.oracle import compare

#: Writes numbers to a file, a line for each, and goes on behind the last one. What is wrong with it is an argument.
COUNTER = """
import pathlib, sys, time
out, last, kind = pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
seen = [int(line) for line in out.read_text().splitlines()] if out.exists() else []
first = seen[-1] + 1 if seen else 0
if seen and kind == "loses":
    first += 1
if seen and kind == "repeats":
    first -= 1
if seen:
    print("Attempt 1 failed: x. Restarting in 10 ms (because)")
for number in range(first, last):
    if kind == "stops" and number == 5:
        time.sleep(60)
    if kind == "fails" and number == 5:
        sys.exit(3)
    while kind == "waits" and number == last - 1 and not out.with_name("go").exists():
        time.sleep(0.02)
    with out.open("a") as file:
        file.write(f"{number}\\n")
    time.sleep(0.02)
time.sleep(60 if kind == "endless" else 0)
"""

ROWS = 60
QUICK = (0.0, 0.1)


class Noted(Fault):
    """Does nothing but note that it was its turn, and what it drew. Touches a file when there are so many notes."""

    def __init__(self, name: str, notes: list[tuple[str, float]], touches: tuple[int, Path] | None = None) -> None:
        self._name = name
        self._notes = notes
        self._touches = touches

    @property
    def name(self) -> str:
        return self._name

    def strike(self, target: Target, chosen: random.Random) -> bool:
        self._notes.append((self._name, chosen.random()))
        if self._touches is not None and len(self._notes) == self._touches[0]:
            self._touches[1].touch()
        return True


class Told(Service):
    """A service that notes what is done with it."""

    name = "database"

    def __init__(self) -> None:
        self.calls: list[str] = []

    def start(self) -> None:
        self.calls.append("start")

    def stop(self) -> None:
        self.calls.append("stop")

    def kill(self) -> None:
        self.calls.append("kill")


def counting(
    directory: Path, faults: Sequence[Fault], moments: Moments, kind: str = "right", check: object = None
) -> ChaosResult:
    script, out = directory / "counter.py", directory / "out"
    script.write_text(COUNTER)

    def read() -> list[int]:
        return [int(line) for line in out.read_text().splitlines()] if out.exists() else []

    program = Program(script, [str(out), str(ROWS), kind], ends=kind != "endless")
    oracle = Oracle(rows_in=lambda: range(ROWS), rows_out=read, check=check)
    return run_chaos(program, oracle, faults, moments, directory / "logs")


def test_a_program_that_goes_on_where_it_was_is_exactly_once(tmp_path: Path) -> None:
    faults, moments = [KillDriver(), PauseDriver(QUICK)], Moments(3, faults=4, pause=QUICK, hasty=0.0)
    result = counting(tmp_path, faults, moments)
    assert result.exactly_once, result
    assert result.faults == {"driver": 2, "driver paused": 2}
    # Two drivers more than one, and what each of them told of.
    assert result.restarts == 4
    assert (result.name, result.seed, result.verdict.rows_in, result.verdict.rows_out) == ("counter", 3, ROWS, ROWS)
    assert len(list((tmp_path / "logs").glob("driver-*.log"))) == 3


@pytest.mark.parametrize(("kind", "lost", "repeated"), [("loses", 2, 0), ("repeats", 0, 2)])
def test_rows_that_are_lost_or_repeated_are_counted(kind: str, lost: int, repeated: int, tmp_path: Path) -> None:
    result = counting(tmp_path, [KillDriver()], Moments(1, faults=2, pause=QUICK, hasty=0.0), kind)
    assert result.error is None and not result.exactly_once
    assert (result.verdict.lost, result.verdict.repeated, result.verdict.wrong) == (lost, repeated, 0)


def test_a_program_that_publishes_nothing_is_stuck(tmp_path: Path) -> None:
    result = counting(tmp_path, [Noted("none", [])], Moments(1, faults=99, pause=QUICK, patience=1.0), "stops")
    assert result.error is not None and "nothing was published for 1 s" in result.error
    assert result.verdict.lost == ROWS - 5


def test_a_program_that_fails_by_itself_fails_the_round(tmp_path: Path) -> None:
    result = counting(tmp_path, [Noted("none", [])], Moments(1, faults=99, pause=QUICK), "fails")
    assert result.error is not None and "ended by itself, with 3" in result.error
    assert not result.exactly_once


def test_a_program_without_end_is_killed_when_its_output_is_complete(tmp_path: Path) -> None:
    result = counting(tmp_path, [KillDriver()], Moments(1, faults=1, pause=QUICK), "endless")
    assert result.exactly_once, result


def test_a_check_that_fails_is_the_error(tmp_path: Path) -> None:
    def check() -> None:
        raise AssertionError("files are left")

    result = counting(tmp_path, [KillDriver()], Moments(1, faults=1, pause=QUICK), check=check)
    assert result.error == "files are left" and result.verdict.exactly_once


def test_a_seed_repeats_kinds_and_what_they_draw(tmp_path: Path) -> None:
    drawn = []
    for number, seed in enumerate((5, 5, 6)):
        notes: list[tuple[str, float]] = []
        directory = tmp_path / str(number)
        directory.mkdir()
        # The program does not end before all of them had their turn, however slow the machine is.
        faults = [Noted(name, notes, (6, directory / "go")) for name in "abc"]
        counting(directory, faults, Moments(seed, faults=6, pause=QUICK), "waits")
        drawn.append(notes)
    assert drawn[0] == drawn[1] != drawn[2]
    # Each kind has its turn before any has its second.
    assert {name for name, _ in drawn[0][:3]} == {name for name, _ in drawn[0][3:]} == set("abc")


def test_faults_that_find_nothing_to_hit_do_not_count(tmp_path: Path) -> None:
    notes: list[tuple[str, float]] = []
    result = counting(tmp_path, [KillWorker(), Noted("a", notes)], Moments(2, faults=2, pause=QUICK))
    assert result.faults == {"a": 2} and len(notes) == 2


def test_services_go_and_come_back(tmp_path: Path) -> None:
    service = Told()
    faults = [KillService(service, QUICK), StopService(service, QUICK)]
    result = counting(tmp_path, faults, Moments(2, faults=2, pause=QUICK))
    assert result.faults == {"database": 1, "database stopped": 1}
    assert sorted(service.calls) == ["kill", "start", "start", "stop"]
    assert service.calls[1] == service.calls[3] == "start"


def test_moments_need_an_end_and_a_run_needs_faults(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="number of faults, or seconds"):
        Moments(1)
    with pytest.raises(ConfigurationError, match="at least one kind"):
        counting(tmp_path, [], Moments(1, faults=1))


def test_the_table_has_a_line_for_each_result() -> None:
    from rich.console import Console

    right = ChaosResult("job", 7, 12.3, {"worker": 2, "driver": 1}, 4, compare([1, 2], [2, 1], 5))
    wrong = ChaosResult("job", 8, 1.0, {}, 0, compare([1, 2], [2, 2], 5))
    console = Console(width=150)
    with console.capture() as captured:
        console.print(table_of([right, wrong]))
    lines = [" ".join(line.split()) for line in captured.get().splitlines()]
    assert lines[0] == "job seed seconds faults restarts rows in rows out lost repeated wrong verdict"
    assert lines[2] == "job 7 12 driver:1 worker:2 4 5 2 0 0 0 exactly once"
    assert lines[3] == "job 8 1 none 0 5 2 1 1 0 WRONG"
    assert str(wrong).endswith("lost 1, repeated 1, wrong 0, verdict WRONG")
