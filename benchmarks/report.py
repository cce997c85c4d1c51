"""Turns runs into figures: medians, spread and ratios, as a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.catalogue import CATALOGUE, FLOOR, TRANSFORM_WITH_STATE, Benchmark
from benchmarks.measure import Run

#: Runs of a benchmark by round. A round runs every benchmark once, so that a slow hour of the machine hits all of them.
Rounds = Mapping[str, Sequence[Run]]


@dataclass(frozen=True)
class Figure:
    """One row of the table."""

    name: str
    title: str
    epoch_rows: int
    measured_epochs: int
    repeats: int
    rows_per_second: float
    least: float
    most: float
    of_floor: float | None
    times_transform_with_state: float | None


def figures(rounds: Rounds) -> list[Figure]:
    """A figure for every benchmark that ran, in the order of the catalogue."""
    return [_figure(benchmark, rounds) for benchmark in CATALOGUE if rounds.get(benchmark.name)]


def write_json(directory: Path, machine: Mapping[str, Any], rounds: Rounds) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
    content = {
        "machine": dict(machine),
        "figures": [asdict(figure) for figure in figures(rounds)],
        "runs": {name: [asdict(run) for run in runs] for name, runs in rounds.items()},
    }
    path.write_text(json.dumps(content, indent=2) + "\n")
    return path


def table(rows: Sequence[Figure]) -> str:
    """Plain text, one line a benchmark."""
    columns: list[tuple[str, Callable[[Figure], str]]] = [
        ("", lambda f: f.title),
        ("rows/epoch", lambda f: f"{f.epoch_rows:,}"),
        ("runs x epochs", lambda f: f"{f.repeats} x {f.measured_epochs}"),
        ("rows/s", lambda f: f"{f.rows_per_second:,.0f}"),
        ("least", lambda f: f"{f.least:,.0f}"),
        ("most", lambda f: f"{f.most:,.0f}"),
        ("of floor", lambda f: "-" if f.of_floor is None else f"{f.of_floor:.2f}"),
        ("x transformWithState", lambda f: _times(f.times_transform_with_state)),
    ]
    cells = [[title for title, _ in columns], *([text(figure) for _, text in columns] for figure in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(columns))]
    return "\n".join(_line(line, widths) for line in cells)


def _figure(benchmark: Benchmark, rounds: Rounds) -> Figure:
    runs = rounds[benchmark.name]
    rates = [run.rows_per_second for run in runs]
    # Compared at the same epoch size only: what a key costs is shared by its rows of an epoch.
    small = "-small" if benchmark.small_epochs else ""
    return Figure(
        benchmark.name,
        benchmark.title,
        runs[0].epoch_rows,
        runs[0].measured_epochs,
        len(runs),
        median(rates),
        min(rates),
        max(rates),
        None if benchmark.small_epochs else _ratio(runs, rounds.get(FLOOR)),
        _ratio(runs, rounds.get(TRANSFORM_WITH_STATE + small)),
    )


def _ratio(runs: Sequence[Run], reference: Sequence[Run] | None) -> float | None:
    """The median of the ratios of each round, which drift less than rates do."""
    if not reference:
        return None
    return median(a.rows_per_second / b.rows_per_second for a, b in zip(runs, reference, strict=False))


def _times(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = cells
    return "  ".join(
        [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))]
    )
