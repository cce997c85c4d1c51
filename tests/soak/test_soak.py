"""The soak in short, and how it judges."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.__main__ import soak
from tests.soak.bounds import broken
from tests.soak.samples import ProcessFigures, Sample, growths


@pytest.mark.slow
def test_it_in_short(tmp_path: Path) -> None:
    samples, wrong = soak(tmp_path, seconds=24, kill_every=8, seed=7)
    assert wrong == []
    assert broken(growths(samples, 10), long=False) == []


def sample(minute: int, megabytes: float = 100.0, descriptors: int = 9, files: int = 5, sockets: int = 1) -> Sample:
    figures = ProcessFigures(megabytes, 7, descriptors)
    sizes, numbers = {"local": 2.0, "out": float(minute)}, {"local": files, "out": 1}
    steady = dict.fromkeys(("jvm 2", "worker 3", "worker 4", "worker 5"), ProcessFigures(100.0, 7, 9))
    return Sample(minute * 60.0, {"driver 1": figures, **steady}, sizes, numbers, sockets)


def test_what_stays_as_it_is_breaks_no_bound() -> None:
    assert broken(growths([sample(minute) for minute in range(120)], 1800), long=True) == []


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (lambda minute: {"megabytes": 100 + minute / 20}, "megabytes of driver 1"),
        (lambda minute: {"descriptors": 9 + minute // 30}, "descriptors of driver 1"),
        (lambda minute: {"files": 5 + minute}, "files in local"),
        (lambda minute: {"sockets": 1 + minute // 60}, "sockets"),
    ],
)
def test_what_grows_is_told(changes, told) -> None:
    (line,) = broken(growths([sample(minute, **changes(minute)) for minute in range(120)], 1800), long=True)
    assert line.startswith(told)


def test_what_grows_at_first_does_not_count() -> None:
    samples = [sample(minute, megabytes=100 + 5 * min(minute, 29)) for minute in range(120)]
    assert broken(growths(samples, 1800), long=True) == []


def test_processes_that_were_killed_too_soon_are_not_taken_for_judged() -> None:
    def generation(minute: int) -> Sample:
        whole = sample(minute)
        alive = {"driver 1": whole.processes["driver 1"], f"worker {minute // 4}": ProcessFigures(50.0, 3, 9)}
        return Sample(whole.seconds, alive, whole.sizes, whole.files, whole.sockets)

    jvm, worker = broken(growths([generation(minute) for minute in range(120)], 1800), long=True)
    assert jvm.startswith("0 processes were judged as jvm")
    assert worker.startswith("0 processes were judged as worker")


def test_a_folder_that_grows_is_told() -> None:
    def growing(minute: int) -> Sample:
        whole = sample(minute)
        return Sample(whole.seconds, whole.processes, {"local": float(minute)}, whole.files, whole.sockets)

    (line,) = broken(growths([growing(minute) for minute in range(120)], 1800), long=False)
    assert line.startswith("megabytes in local")
