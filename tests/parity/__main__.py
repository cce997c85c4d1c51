"""Runs every program of tests/parity/programs on PyFlink and on Holdfast, and compares what they give.

python -m tests.parity                    both packages, every program; ends with 1 where they differ
python -m tests.parity --only 'windows.*'
python -m tests.parity --record           what PyFlink gives becomes what the tests expect
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from benchmarks.environments import PROJECT_ENVIRONMENT, python_of
from tests.kit.kafka import broker
from tests.kit.maven import jars_of
from tests.kit.unavailable import Unavailable
from tests.parity import records
from tests.parity.case import Case, Setting
from tests.parity.expected import reason
from tests.parity.runner import FAILED, OUTSIDE, Results, chosen_modules, module_names

PROJECT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = {"pyflink": "flink", "holdfast": PROJECT_ENVIRONMENT}
#: It is released apart from Flink; this is the newest.
KAFKA_JARS = ("org.apache.flink:flink-sql-connector-kafka:5.0.0-2.2",)
_MOST_LINES, _MOST_CHARACTERS = 6, 400
SAME, DIFFERS, UNEXPECTEDLY_SAME = "same", "differs", "same, and should leave the list of differences"
UNEXPECTED = (DIFFERS, UNEXPECTEDLY_SAME)


@dataclass(frozen=True)
class Services:
    """What programs with a service need: where it is, and PyFlink's jars for it."""

    variables: Mapping[str, str] = field(default_factory=dict)
    jars: Sequence[str] = ()


@contextmanager
def services(modules: Collection[str]) -> Iterator[Services]:
    """A broker for the programs with Kafka, if they are among the modules. Where it cannot be had, they are left out,
    and the output says so.
    """
    with ExitStack() as stack:
        found = Services()
        if "kafka" in modules:
            try:
                jars = [path.as_uri() for path in sorted(jars_of(*KAFKA_JARS).glob("*.jar"))]
                kafka = stack.enter_context(broker({"auto.create.topics.enable": "true", "num.partitions": "2"}))
                found = Services({OUTSIDE["kafka"]: kafka.servers}, jars)
            except Unavailable as why:
                print(f"Programs with Kafka are left out: {why}", flush=True)
        yield found


def run(package: str, patterns: Sequence[str], outside: Services) -> Results:
    """All programs on a package, each module in a process: PyFlink's JVM becomes slow after some hundred jobs."""
    parts = [_run_module(package, module, patterns, outside) for module in chosen_modules(patterns)]
    cases = {name: case for part in parts for name, case in part.cases.items()}
    runs = {name: lines for part in parts for name, lines in part.runs.items()}
    return Results(package, parts[0].version, cases, runs)


def _run_module(package: str, module: str, patterns: Sequence[str], outside: Services) -> Results:
    own_patterns = [f"{module}.{pattern.partition('.')[2] or '*'}" for pattern in patterns if _fits(module, pattern)]
    with tempfile.TemporaryDirectory(prefix="parity-") as directory:
        results = Path(directory) / "results.json"
        program = [python_of(ENVIRONMENTS[package]), "-m", "tests.parity.runner", package, str(results)]
        program += ["--only", *own_patterns, "--jars", *(outside.jars if package == "pyflink" else ())]
        paths = os.pathsep.join([str(PROJECT), str(PROJECT / "src")])
        own = {"PYTHONPATH": paths, "SPARK_LOCAL_IP": "127.0.0.1", "TZ": "UTC", **outside.variables}
        subprocess.run(program, cwd=directory, env={**os.environ, **own}, check=True)
        return Results.read(results)


def _fits(module: str, pattern: str) -> bool:
    return fnmatchcase(module, pattern.partition(".")[0])


def differences(case: Case, one: dict[str, list[str]], other: dict[str, list[str]]) -> list[str]:
    """Texts for the settings in which two runs of a program differ: what only the one has, and only the other."""
    found: dict[str, list[str]] = {}
    for setting in case.settings():
        there = case.compared(one.get(setting.name, ["not run"]), setting)
        here = case.compared(other.get(setting.name, ["not run"]), setting)
        if there != here:
            found.setdefault(_difference(there, here), []).append(setting.name)
    return [f"  {', '.join(settings)}: {text}" for text, settings in found.items()]


def _difference(there: list[str], here: list[str]) -> str:
    if FAILED in here:
        [trace] = [line for line in here if line != FAILED]
        return f"failed here: {trace.strip()[-_MOST_CHARACTERS:]}"
    missing = [f"    - {line}" for line in (Counter(there) - Counter(here)).elements()]
    more = [f"    + {line}" for line in (Counter(here) - Counter(there)).elements()]
    head = f"{len(missing)} missing, {len(more)} more" if missing or more else "the same in another order"
    return "\n".join([head, *missing[:_MOST_LINES], *more[:_MOST_LINES]])


def compare(pyflink: Results, holdfast: Results) -> int:
    """The number of programs whose outcome nobody expects."""
    verdicts: Counter[tuple[int, str]] = Counter()
    for name, case in pyflink.cases.items():
        found = differences(case, pyflink.runs[name], holdfast.runs.get(name, {}))
        verdict = _verdict(bool(found), reason(name))
        verdicts[case.part, verdict] += 1
        if verdict != SAME:
            print("\n".join([f"{name} (part {case.part}): {verdict}, {reason(name)}", *found]), flush=True)
    print(f"\napache-flink {pyflink.version} and holdfast {holdfast.version}, programs by part:")
    for (part, verdict), count in sorted(verdicts.items()):
        print(f"  part {part:2}: {count:3} {verdict}")
    return sum(count for (_, verdict), count in verdicts.items() if verdict in UNEXPECTED)


def _verdict(differs: bool, why: str | None) -> str:
    if differs:
        return DIFFERS if why is None else "differs, as expected"
    return SAME if why is None else UNEXPECTEDLY_SAME


def record(pyflink: Results) -> list[str]:
    """Keep what PyFlink gave. The names of programs that failed on it, of which nothing is kept."""
    failed = {name for name, runs in pyflink.runs.items() for lines in runs.values() if FAILED in lines}
    for module in module_names():
        runs = {
            name.partition(".")[2]: {
                setting: pyflink.cases[name].compared(lines, Setting.parse(setting))
                for setting, lines in by_setting.items()
            }
            for name, by_setting in pyflink.runs.items()
            if name.partition(".")[0] == module and name not in failed
        }
        if runs:
            records.write(module, pyflink.version, {**records.read(module), **runs})
    return sorted(failed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=["*"], metavar="PATTERN", help="programs, such as 'windows.*'")
    parser.add_argument("--record", action="store_true", help="keep what PyFlink gives")
    given = parser.parse_args()
    modules = chosen_modules(given.only)
    if not modules:
        parser.error(f"no module of programs fits {given.only}; there are {module_names()}")
    with services(modules) as outside:
        pyflink = run("pyflink", given.only, outside)
        failed = record(pyflink) if given.record else []
        unexpected = compare(pyflink, run("holdfast", given.only, outside))
    if failed:
        print(f"Not recorded, since they failed on PyFlink: {', '.join(failed)}")
    sys.exit(min(1, unexpected + len(failed)))


if __name__ == "__main__":
    main()
