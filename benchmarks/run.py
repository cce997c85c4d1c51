"""Holdfast and its peers on the same rows, and what state costs as it grows: ``python benchmarks/run.py --help``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PROJECT), str(PROJECT / "src")]

from benchmarks import machine, measure, page, report, suite  # noqa: E402 - behind the path that finds it
from benchmarks.catalogue import Entry, Size, select  # noqa: E402 - behind the path that finds it
from benchmarks.environments import CACHE  # noqa: E402 - behind the path that finds it
from benchmarks.tables import Table  # noqa: E402 - behind the path that finds it

THROUGHPUT = "throughput"


def main() -> int:
    options = _options()
    size = Size.QUICK if options.quick else options.size
    suites = _suites(options.suites)
    facts = {**machine.describe(), "size": size, "started": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"}
    found = Found(facts, options.results / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json")
    if THROUGHPUT in suites:
        entries = select(options.jobs, options.peers)
        facts["environments"] = machine.environments({entry.contestant.environment for entry in entries})
        for number in range(options.repeats or (3 if size is Size.FULL else 1)):
            _round(number, entries, size, options, found)
    for name in suites:
        if name != THROUGHPUT:
            print(f"suite {name}", file=sys.stderr, flush=True)
            found.of_suites += suite.run(name, size)
            found.save()
    print(f"{facts['cores']} cores, {facts['cpu']}, load {facts['load']} at the start\n")
    print("\n\n".join(table.text() for table in found.tables()))
    print(f"\n{found.path}")
    if options.page:
        page.write(PROJECT / "docs", found.results())
    return 1 if found.errors or any(table.title.endswith(": failed") for table in found.of_suites) else 0


@dataclass
class Found:
    """What was measured so far. It is saved after every step: a run takes hours."""

    facts: dict[str, Any]
    path: Path
    rounds: dict[str, list[measure.Run | None]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    of_suites: list[Table] = field(default_factory=list)

    def tables(self) -> list[Table]:
        targets = report.target_table(self.rounds)
        figures = report.figures(self.rounds, self.errors)
        return [*([targets] if targets.rows else []), *report.tables(figures), *self.of_suites]

    def results(self) -> dict[str, Any]:
        return {
            "machine": {**self.facts, "load at the end": round(os.getloadavg()[0], 2)},
            "figures": [asdict(figure) for figure in report.figures(self.rounds, self.errors)],
            "tables": [table.content() for table in self.tables()],
            "errors": self.errors,
            "runs": {name: [run and asdict(run) for run in runs] for name, runs in self.rounds.items()},
        }

    def save(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.results(), indent=2) + "\n")


def _round(number: int, entries: list[Entry], size: Size, options: argparse.Namespace, found: Found) -> None:
    """Every entry once. One that failed is not tried again: its error is in the table."""
    for entry in entries:
        runs = found.rounds.setdefault(entry.name, [])
        if entry.name in found.errors:
            runs.append(None)
            continue
        try:
            run = measure.run(entry, size, options.data, options.timeout)
        except measure.BenchmarkFailed as failure:
            found.errors[entry.name] = str(failure)
            runs.append(None)
            print(f"{number + 1} {failure}", file=sys.stderr, flush=True)
        else:
            runs.append(run)
            rate = f"{run.rows_per_second:,.0f} rows/s, load {run.load}"
            print(f"{number + 1} {entry.name}: {rate}", file=sys.stderr, flush=True)
        found.save()


def _suites(names: str | None) -> list[str]:
    known = [THROUGHPUT, *suite.SUITES]
    wanted = names.split(",") if names else known
    for name in wanted:
        if name not in known:
            raise SystemExit(f"there is no suite {name!r}; there are: {', '.join(known)}")
    return [name for name in known if name in wanted]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows and keys, one repeat; as --size quick")
    parser.add_argument("--size", type=Size, choices=list(Size), default=Size.FULL)
    parser.add_argument("--repeats", type=int, help="rounds of the throughput suite; 3 at full size, else 1")
    parser.add_argument("--suites", help=f"of {THROUGHPUT}, {', '.join(suite.SUITES)}; comma separated, all by default")
    parser.add_argument("--jobs", help="jobs of the throughput suite, comma separated; 'average*': all that begin so")
    parser.add_argument("--peers", help="who runs them, in the same way: 'holdfast*,floor,bytewax*'")
    parser.add_argument("--timeout", type=float, default=measure.TIMEOUT_SECONDS, help="seconds of a single run")
    parser.add_argument("--page", action="store_true", help="write tables and plots into docs/performance.md")
    parser.add_argument("--data", type=Path, default=CACHE / "data")
    parser.add_argument("--results", type=Path, default=PROJECT / "benchmarks" / "results")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
