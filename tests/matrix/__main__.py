"""Tests on every line of Spark that Holdfast supports, each in an environment of its own.

What has a good result on the sources as they are is not run again. Once every run of the matrix has a result, what it
saw is written to docs/reference/spark-versions.json, of which ``make docs`` makes a page.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from tests.matrix import catalogue, page
from tests.matrix.catalogue import ACCELERATIONS, Run
from tests.matrix.environments import EnvironmentFailed, matrix_directory, python_of
from tests.matrix.results import Result, Results, fingerprint
from tests.matrix.runner import Runner


def main(arguments: list[str] | None = None) -> int:
    """The exit code: 0 when all runs that were asked for have a good result."""
    options = _parser().parse_args(arguments)
    directory = matrix_directory()
    results = Results(directory / "results")
    try:
        chosen = catalogue.select(options.versions, options.parts, options.accelerations)
        wanted = chosen if options.again else results.open_runs(chosen, fingerprint())
        print(f"{len(wanted)} of {len(chosen)} runs; results are in {directory / 'results'}", flush=True)
        pythons = {version: python_of(version, directory) for version in dict.fromkeys(run.version for run in wanted)}
    except (catalogue.Unknown, EnvironmentFailed) as error:
        print(error, file=sys.stderr)
        return 2
    for result in _all(wanted, Runner(pythons, results), options.at_once):
        print(_line(result), flush=True)
    _record(results, options.record)
    return _verdict(chosen, results)


def _all(wanted: list[Run], runner: Runner, at_once: int) -> Iterator[Result]:
    """Several at once, and then those that have the machine for themselves."""
    with ThreadPoolExecutor(at_once) as threads:
        try:
            yield from threads.map(runner.run, [run for run in wanted if not run.part.alone])
        except BaseException:
            # Else it would wait for all that were begun.
            threads.shutdown(wait=False, cancel_futures=True)
            runner.stop()
            raise
    yield from (runner.run(run) for run in wanted if run.part.alone)


def _record(results: Results, whatever_there_is: bool) -> None:
    now, runs = fingerprint(), list(catalogue.runs())
    last = [results.get(run) if whatever_there_is else results.current(run, now) for run in runs]
    found = [result for result in last if result is not None]
    missing = len(runs) - len(found)
    if missing and not whatever_there_is:
        print(f"{missing} runs have no result on these sources yet: {page.DATA.name} is left as it is", flush=True)
    elif found:
        page.record(found)
        print(f"{page.DATA} and {page.PAGE.name} are written", flush=True)


def _verdict(chosen: list[Run], results: Results) -> int:
    bad = results.open_runs(chosen, fingerprint())
    for run in bad:
        print(f"not good: {run.name}, see {results.path(run, 'log')}", flush=True)
    return 1 if bad or not chosen else 0


def _line(result: Result) -> str:
    counts = f"{result.passed} passed, {len(result.expected)} expected to fail, {len(result.skipped)} skipped"
    verdict = "good" if result.good else f"BAD, {len(result.failed)} failed"
    where = f"{result.version} accelerations {result.accelerations}, {result.part}"
    return f"{where}: {verdict}; {counts}; {result.seconds:.0f} s"


def _parser() -> argparse.ArgumentParser:
    names = ", ".join(part.name for part in catalogue.PARTS)
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__)
    parser.add_argument("--versions", type=_list, help=f"lines of Spark, of {', '.join(catalogue.VERSIONS)}, or oldest")
    parser.add_argument("--parts", type=_list, help=f"of {names}")
    parser.add_argument("--accelerations", choices=list(ACCELERATIONS), help="these alone")
    parser.add_argument("--again", action="store_true", help="also what has a good result")
    parser.add_argument("--at-once", type=int, default=2, help="parts that run beside each other (default: 2)")
    parser.add_argument("--record", action="store_true", help="write the page of whatever results there are")
    return parser


def _list(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


if __name__ == "__main__":
    # Ended from outside, it leaves no process either.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())
