"""Files are damaged, disks become full, savepoints hold code and servers are flooded. Every job gives exact results, or
is refused and says which file it is; no code is run, and what is attacked stays alive. Cases are drawn from a seed.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec
from rich.console import Console

from tests.hostile.damaged_files import damage
from tests.hostile.outcome import Outcome, table_of

#: Tests that are cases too, and say of which trial.
_FLOODS = "tests/server/test_flood.py"
_SAVEPOINTS = "tests/job/test_hostile_snapshots.py"
_MEMORY = Path("/dev/shm")


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    seed = random.SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    trials: dict[str, Callable[[Path], Iterator[Outcome]]] = {
        "damage": partial(damage, seed, options.cases),
        "disks": partial(full_disks, seed, options.disks),
        "floods": partial(tests, _FLOODS),
        "savepoints": partial(tests, _SAVEPOINTS),
    }
    chosen = options.trial or list(trials)
    print(f"seed {seed}: {', '.join(chosen)}", flush=True)
    outcomes: list[Outcome] = []
    memory = _MEMORY if _MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="holdfast-hostile-", dir=memory, ignore_cleanup_errors=True) as directory:
        for name in chosen:
            for outcome in trials[name](Path(directory)):
                outcomes.append(outcome)
                if not outcome.good:
                    print(f"{outcome.trial}, {outcome.place}, {outcome.backend}: {outcome.how}: {outcome.verdict}")
                    print(outcome.told[-4_000:], flush=True)
    Console(width=140).print(table_of(outcomes))
    return 0 if outcomes and all(outcome.good for outcome in outcomes) else 1


def full_disks(seed: int, cases: int, root: Path) -> Iterator[Outcome]:
    """In a namespace in which file systems can be mounted without anybody's leave."""
    command = [sys.executable, "-m", "tests.hostile.full_disks", str(seed), str(cases), str(root)]
    namespace = ["unshare", "--mount", "--map-root-user", *command]
    with subprocess.Popen(namespace, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            yield msgspec.json.decode(line, type=Outcome)
    if process.returncode:
        yield Outcome("full disks", "-", "-", "no disk could be mounted", f"exit code {process.returncode}")


def tests(path: str, root: Path) -> Iterator[Outcome]:
    """Each test of a file that says so is a case (``is_a_case``), and each that did not pass."""
    report = root / f"{Path(path).stem}.xml"
    # The newer form of reports has no properties of tests.
    options = ["-q", "-p", "no:cacheprovider", "-o", "junit_family=xunit1", f"--junitxml={report}"]
    command = [sys.executable, "-m", "pytest", *options, path]
    done = subprocess.run(command, capture_output=True, text=True)
    for test in ET.parse(report).getroot().iter("testcase") if report.exists() else ():
        case = {found.get("name"): found.get("value", "") for found in test.iter("property")}
        wrong = next((found for kind in ("error", "failure", "skipped") for found in test.iter(kind)), None)
        verdict = case.get("verdict") if wrong is None else wrong.tag
        if verdict is not None:
            told = "" if wrong is None else wrong.text or ""
            place = case.get("place", "-")
            yield Outcome(case.get("trial", path), place, "-", test.get("name", "?"), verdict, told)
    if done.returncode not in (0, 1):
        yield Outcome(path, "-", "-", path, f"pytest ended with {done.returncode}", done.stdout + done.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--seed", type=int, help="of all cases (default: drawn)")
    parser.add_argument("--cases", type=int, default=1_000, help="of damaged files")
    parser.add_argument("--disks", type=int, default=72, help="that become full")
    names = ("damage", "disks", "floods", "savepoints")
    parser.add_argument("--trial", action="append", choices=names, help="these alone; may be given several times")
    return parser


if __name__ == "__main__":
    sys.exit(main())
