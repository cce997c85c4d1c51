"""Runs an entry of the catalogue in a process of its own, checks what it did and takes its figures."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import median

from benchmarks import processes
from benchmarks.catalogue import Entry, Size
from benchmarks.data import KINDS, Shape, generate
from benchmarks.environments import EnvironmentFailed, python_of
from benchmarks.jobs.protocol import Epoch, JobArguments, Outcome
from benchmarks.oracle import ORACLES, Expected

PROJECT = Path(__file__).resolve().parents[1]

#: After so long a job is ended, and its line says so.
TIMEOUT_SECONDS = 900.0
_LAST_LINES = 25


class BenchmarkFailed(Exception):
    """A job did not run, or did not do its work. The first line says what happened."""


@dataclass(frozen=True)
class Run:
    """One run of one entry. A load above its own two threads says that the machine had other work."""

    entry: str
    rows_per_second: float
    rows: int
    epoch_rows: int
    measured_epochs: int
    epoch_seconds: list[float]
    load: float
    python_mb: float
    jvm_mb: float
    checkpoint_ms: float | None
    checkpoint_bytes: float | None


def run(entry: Entry, size: Size, data: Path, timeout: float = TIMEOUT_SECONDS) -> Run:
    """Run it once. BenchmarkFailed when it fails or emits something else than it must."""
    shape = entry.shape(size)
    outcome, finished = execute(entry, shape, generate(data, shape, entry.contestant.form), timeout)
    measured = measured_epochs(outcome.epochs, shape)
    # The first is a full one.
    later = outcome.checkpoints[1:]
    sizes = [one.bytes for one in later if one.bytes is not None]
    return Run(
        entry.name,
        overall_rate(measured),
        shape.rows,
        shape.epoch_rows,
        len(measured),
        [round(epoch.finished - epoch.started, 4) for epoch in measured],
        round(os.getloadavg()[0], 2),
        round(finished.python_mb, 1),
        round(finished.jvm_mb, 1),
        median(one.millis for one in later) if later else None,
        median(sizes) if sizes else None,
    )


def execute(
    entry: Entry, shape: Shape, data: Path, timeout: float, live: bool = False
) -> tuple[Outcome, processes.Finished]:
    """The checked outcome of a job over the rows of a shape. Of a live job, which has no end, what it read is checked
    alone.
    """
    try:
        python = python_of(entry.contestant.environment)
    except EnvironmentFailed as failure:
        raise BenchmarkFailed(str(failure)) from failure
    with tempfile.TemporaryDirectory(prefix="holdfast-benchmark-") as scratch:
        arguments = JobArguments(
            job=entry.job.program,
            variant=entry.contestant.variant,
            data=data,
            scratch=Path(scratch),
            result=Path(scratch) / "result.json",
            epoch_rows=shape.epoch_rows,
            expected_rows=shape.rows + shape.closing * len(KINDS[shape.kind]),
            gap_ms=shape.gap_ms,
            live=live,
        )
        command = [python, "-m", f"benchmarks.jobs.{entry.contestant.module}", *arguments.command()]
        finished = processes.run(command, Path(scratch), _environment(python), timeout)
        if finished.timed_out or finished.code:
            what = f"took longer than {timeout:.0f} s" if finished.timed_out else f"ended with {finished.code}"
            last = "\n".join(finished.output.splitlines()[-_LAST_LINES:])
            raise BenchmarkFailed(f"{entry.name} {what}:\n{last}")
        outcome = Outcome.read(arguments.result)
    check_read(entry, outcome, arguments.expected_rows)
    if not live:
        check_emitted(entry, shape, outcome)
    return outcome, finished


def check_read(entry: Entry, outcome: Outcome, rows: int) -> None:
    """BenchmarkFailed unless the job read all rows, once."""
    read = sum(epoch.rows for epoch in outcome.epochs)
    if read != rows:
        raise BenchmarkFailed(f"{entry.name} read {read} rows of {rows}")


def check_emitted(entry: Entry, shape: Shape, outcome: Outcome) -> None:
    """BenchmarkFailed unless the job emitted what the oracle says."""
    expected, emitted = expectation(entry.oracle, shape), Expected(outcome.emitted, outcome.checksum)
    if emitted != expected:
        raise BenchmarkFailed(f"{entry.name} emitted {emitted}; the rows give {expected}")


@lru_cache(maxsize=64)
def expectation(oracle: str, shape: Shape) -> Expected:
    return ORACLES[oracle](shape)


def measured_epochs(epochs: Sequence[Epoch], shape: Shape) -> list[Epoch]:
    """Epochs without those that warm up, as far as there are enough of them, and those that only close windows."""
    ordered = sorted(epochs, key=lambda epoch: epoch.started)
    full = [epoch for epoch in ordered if epoch.rows > shape.closing * len(KINDS[shape.kind])]
    return full[max(1, min(shape.warm_up, len(full) // 3)) :] or full


def overall_rate(epochs: Sequence[Epoch]) -> float:
    """Rows per second from the start of the first epoch to the end of the last, with what lies between two epochs."""
    return sum(epoch.rows for epoch in epochs) / (epochs[-1].finished - epochs[0].started)


def _environment(python: str) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(PROJECT / "src"), str(PROJECT)]),
        "PYSPARK_PYTHON": python,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
