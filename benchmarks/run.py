"""Rows per second of Holdfast and of its peers on the same events: ``python benchmarks/run.py --help``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PROJECT), str(PROJECT / "src")]

from benchmarks import machine, measure, report  # noqa: E402
from benchmarks.catalogue import Benchmark, select  # noqa: E402
from benchmarks.data import Shape, generate  # noqa: E402

FULL = Shape(rows=5_000_000, keys=100_000, epoch_rows=500_000)
# An even number of files: two subtasks that share them read the same number of rows.
QUICK = Shape(rows=1_000_000, keys=100_000, epoch_rows=250_000)


def main() -> int:
    options = _options()
    shape = _shape(options)
    benchmarks = _runnable(select(options.only))
    repeats = options.repeats or (1 if options.quick else 3)
    facts = machine.describe()
    rounds: dict[str, list[measure.Run]] = {}
    failed = False
    for number in range(repeats):
        for benchmark in benchmarks:
            try:
                run = _run(benchmark, shape, options.data)
            except measure.BenchmarkFailed as failure:
                failed = True
                print(failure, file=sys.stderr)
                continue
            rounds.setdefault(benchmark.name, []).append(run)
            rate = f"{run.rows_per_second:,.0f} rows/s, load {run.load}"
            print(f"{number + 1}/{repeats} {benchmark.name}: {rate}", file=sys.stderr, flush=True)
    print(f"{facts['cores']} cores, {facts['cpu']}, load {facts['load']} at the start, keys {shape.keys:,}\n")
    print(report.table(report.figures(rounds)))
    print(f"\n{report.write_json(options.results, facts, rounds)}")
    return 1 if failed else 0


def _run(benchmark: Benchmark, whole: Shape, data: Path) -> measure.Run:
    shape = benchmark.shape(whole)
    return measure.run(benchmark, shape, generate(data, shape))


def _runnable(benchmarks: list[Benchmark]) -> list[Benchmark]:
    runnable = []
    for benchmark in benchmarks:
        missing = measure.missing_packages(benchmark)
        if missing:
            print(
                f"skipped {benchmark.name}: it needs {', '.join(missing)}; pip install 'holdfast[bench]'",
                file=sys.stderr,
            )
        else:
            runnable.append(benchmark)
    return runnable


def _shape(options: argparse.Namespace) -> Shape:
    default = QUICK if options.quick else FULL
    return Shape(options.rows or default.rows, options.keys or default.keys, options.epoch_rows or default.epoch_rows)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="1 M rows, one repeat")
    parser.add_argument("--rows", type=int, help="events in all; a multiple of --epoch-rows")
    parser.add_argument("--keys", type=int, help="different keys")
    parser.add_argument("--epoch-rows", type=int, help="events of an epoch or micro-batch")
    parser.add_argument("--repeats", type=int, help="3 unless --quick")
    parser.add_argument("--only", help="names of benchmarks, comma separated; 'holdfast*' for all that begin so")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "holdfast-benchmarks")
    parser.add_argument("--results", type=Path, default=PROJECT / "benchmarks" / "results")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
