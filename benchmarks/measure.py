"""Runs a benchmark in a process of its own and takes its rate."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.catalogue import Benchmark
from benchmarks.data import Shape, expected_averages
from benchmarks.jobs.protocol import Epoch, JobArguments, Outcome

PROJECT = Path(__file__).resolve().parents[1]

_LAST_LINES = 25


class BenchmarkFailed(Exception):
    """A job did not run, or did not do its work."""


@dataclass(frozen=True)
class Run:
    """One run of one benchmark. A load above its own two threads says that the machine had other work."""

    benchmark: str
    rows_per_second: float
    epoch_rates: list[float]
    epoch_rows: int
    measured_epochs: int
    load: float


def missing_packages(benchmark: Benchmark) -> list[str]:
    return [package for package in benchmark.needs if not _installed(package)]


def run(benchmark: Benchmark, shape: Shape, data: Path) -> Run:
    """Run it once. BenchmarkFailed when it fails or emits another number of rows than it must."""
    with tempfile.TemporaryDirectory(prefix=f"holdfast-{benchmark.name}-") as scratch:
        outcome = _outcome(benchmark, shape, data, Path(scratch))
    _check(benchmark, shape, outcome)
    measured = sorted(outcome.epochs, key=lambda epoch: epoch.started)[benchmark.warm_up(shape) :]
    rates = [epoch.rows / (epoch.finished - epoch.started) for epoch in measured]
    load = round(os.getloadavg()[0], 2)
    return Run(benchmark.name, overall_rate(measured), rates, shape.epoch_rows, len(measured), load)


def overall_rate(epochs: Sequence[Epoch]) -> float:
    """Rows per second from the start of the first epoch to the end of the last, with what lies between two epochs."""
    return sum(epoch.rows for epoch in epochs) / (epochs[-1].finished - epochs[0].started)


def _outcome(benchmark: Benchmark, shape: Shape, data: Path, scratch: Path) -> Outcome:
    arguments = JobArguments(data, scratch, shape.epoch_rows, benchmark.variant, scratch / "result.json")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(PROJECT / "src"), str(PROJECT)]),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [sys.executable, "-m", f"benchmarks.jobs.{benchmark.module}", *arguments.command()]
    done = subprocess.run(command, cwd=scratch, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stdout + done.stderr).splitlines()[-_LAST_LINES:]
        raise BenchmarkFailed(f"{benchmark.name} ended with {done.returncode}:\n" + "\n".join(lines))
    return Outcome.read(arguments.result)


def _check(benchmark: Benchmark, shape: Shape, outcome: Outcome) -> None:
    rows = sum(epoch.rows for epoch in outcome.epochs)
    if rows != shape.rows:
        raise BenchmarkFailed(f"{benchmark.name} read {rows} rows of {shape.rows}")
    if benchmark.emits_averages and outcome.emitted != expected_averages(shape):
        raise BenchmarkFailed(
            f"{benchmark.name} emitted {outcome.emitted} averages; the events give {expected_averages(shape)}"
        )


def _installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False
