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
    return Sample(minute * 60.0, {"driver 1": figures}, sizes, numbers, sockets)


def test_what_stays_as_it_is_breaks_no_bound() -> None:
    assert broken(growths([sample(minute) for minute in range(120)], 1800), long=True) == []


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (lambda minute: {"megabytes": 100 + minute / 20}, "megabytes of driver 1"),
        (lambda minute: {"descriptors": 9 + minute // 3}, "descriptors of driver 1"),
        (lambda minute: {"files": 5 + 5 * minute}, "files in local"),
        (lambda minute: {"sockets": 1 + minute // 10}, "sockets"),
    ],
)
def test_what_grows_is_told(changes, told) -> None:
    (line,) = broken(growths([sample(minute, **changes(minute)) for minute in range(120)], 1800), long=True)
    assert line.startswith(told)


def test_what_grows_at_first_does_not_count() -> None:
    samples = [sample(minute, megabytes=100 + 5 * min(minute, 29)) for minute in range(120)]
    assert broken(growths(samples, 1800), long=True) == []
