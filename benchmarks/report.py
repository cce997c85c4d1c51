"""Turns runs into figures: medians, spread and ratios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.catalogue import CONTESTANTS, FLOOR, HOLDFAST, JOBS, Entry, Job
from benchmarks.measure import Run
from benchmarks.tables import Cell, Table
from benchmarks.targets import TARGETS, Target

#: Runs by entry, one a round; None where it failed. A round runs every entry once, so that a slow hour of the machine
#: hits all of them, and ratios are taken within a round.
Rounds = Mapping[str, Sequence[Run | None]]


@dataclass(frozen=True)
class Figure:
    """One line of the table of a job. ``error`` says why there are no figures, or fewer than repeats."""

    job: str
    contestant: str
    title: str
    rows: int | None
    epoch_rows: int | None
    repeats: int
    rows_per_second: float | None
    least: float | None
    most: float | None
    of_floor: float | None
    holdfast_over: float | None
    python_mb: float | None
    jvm_mb: float | None
    checkpoint_ms: float | None
    checkpoint_bytes: float | None
    error: str | None = None


def figures(rounds: Rounds, errors: Mapping[str, str]) -> list[Figure]:
    """A figure for every entry that was tried, in the order of the catalogue."""
    entries = [Entry(job, contestant) for job in JOBS for contestant in CONTESTANTS]
    return [_figure(entry, rounds, errors) for entry in entries if entry.name in rounds or entry.name in errors]


def tables(found: Sequence[Figure]) -> list[Table]:
    """One for each job that was measured."""
    return [_table(job, mine) for job in JOBS if (mine := [figure for figure in found if figure.job == job.name])]


def target_table(rounds: Rounds) -> Table:
    """What was wanted and what was found, of all targets whose both sides were measured."""
    rows = [
        [target.title, target.against, _best_ratio(target, rounds), target.wanted]
        for target in TARGETS
        if _best_ratio(target, rounds) is not None
    ]
    note = "Ratios of rows per second, Holdfast's over the other's, the median of those of each round."
    return Table("targets", "Ratios", ["job", "against", "ratio", "wanted"], rows, note)


def _table(job: Job, found: Sequence[Figure]) -> Table:
    whole = max((figure.rows or 0 for figure in found), default=0)
    columns = ["", "rows/s", "least", "most", "of floor", "Holdfast is x", "workers MB", "JVM MB", "checkpoint", "rows"]
    rows: list[list[Cell]] = []
    for one in found:
        if one.error is not None and one.rows_per_second is None:
            rows.append([one.title, "failed", *[None] * 7, one.error.splitlines()[0]])
            continue
        checkpoint: str | None = None
        if one.checkpoint_ms is not None:
            size = "" if one.checkpoint_bytes is None else f", {one.checkpoint_bytes / 1e6:.1f} MB"
            checkpoint = f"{one.checkpoint_ms:,.0f} ms{size}"
        rows.append(
            [
                one.title,
                one.rows_per_second,
                one.least,
                one.most,
                one.of_floor,
                one.holdfast_over,
                one.python_mb,
                one.jvm_mb,
                checkpoint,
                f"{one.rows or 0:,}" + (", the first ones" if (one.rows or 0) < whole else ""),
            ]
        )
    return Table(job.name, f"{job.name}: {job.title}", columns, rows)


def _figure(entry: Entry, rounds: Rounds, errors: Mapping[str, str]) -> Figure:
    all_runs = rounds.get(entry.name, ())
    runs = [run for run in all_runs if run is not None]
    rates = [run.rows_per_second for run in runs]

    def middle(field: str) -> float | None:
        values = [value for run in runs if (value := getattr(run, field)) is not None]
        return median(values) if values else None

    name = entry.contestant.name
    over = ratio(rounds, f"{entry.job.name}/{HOLDFAST}", entry.name) if name != HOLDFAST else None
    return Figure(
        entry.job.name,
        name,
        entry.contestant.title,
        runs[0].rows if runs else None,
        runs[0].epoch_rows if runs else None,
        len(runs),
        median(rates) if rates else None,
        min(rates, default=None),
        max(rates, default=None),
        ratio(rounds, entry.name, f"{entry.job.name}/{FLOOR}"),
        over,
        middle("python_mb"),
        middle("jvm_mb"),
        middle("checkpoint_ms"),
        middle("checkpoint_bytes"),
        errors.get(entry.name),
    )


def ratio(rounds: Rounds, ours: str, theirs: str) -> float | None:
    """The median of the ratios of each round, which drift less than rates do."""
    pairs = zip(rounds.get(ours, ()), rounds.get(theirs, ()), strict=False)
    ratios = [one.rows_per_second / other.rows_per_second for one, other in pairs if one and other]
    return median(ratios) if ratios else None


def _best_ratio(target: Target, rounds: Rounds) -> float | None:
    """Against the best of the forms that the other has."""
    job = target.job
    ratios = [ratio(rounds, f"{job}/{target.ours}", f"{job}/{theirs}") for theirs in target.theirs]
    return min((found for found in ratios if found is not None), default=None)
