"""The command line that all suites share, and how the whole benchmark runs them."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.catalogue import Size
from benchmarks.tables import Table

#: Modules below ``benchmarks``, in the order in which they run.
SUITES = ("latency", "recovery", "empty_epoch", "idle", "slots", "growth", "checkpoints", "restore", "backends")
_TIMEOUT_SECONDS = 5400
_LAST_LINES = 5

Measure = Callable[[Size], Sequence[Table]]


def main(description: str | None, measure: Measure) -> int:
    """Measure, print the tables, and write them where the caller wants them."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--size", type=Size, choices=list(Size), default=Size.FULL)
    parser.add_argument("--json", type=Path, help="where the tables go, beside the screen")
    options = parser.parse_args()
    tables = measure(options.size)
    print("\n\n".join(table.text() for table in tables))
    if options.json is not None:
        options.json.write_text(json.dumps([table.content() for table in tables]))
    return 0


def run(name: str, size: Size) -> list[Table]:
    """The tables of a suite, which runs in a process of its own. One that fails is a table with its error."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "tables.json"
        command = [sys.executable, "-m", f"benchmarks.{name}", "--size", size, "--json", str(path)]
        try:
            done = subprocess.run(
                command, env=_environment(), capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return [_failed(name, f"took longer than {_TIMEOUT_SECONDS} s")]
        if not path.exists():
            last = "\n".join((done.stdout + done.stderr).splitlines()[-_LAST_LINES:])
            return [_failed(name, f"ended with {done.returncode}: {last}")]
        return [Table.of(content) for content in json.loads(path.read_text())]


def _environment() -> dict[str, str]:
    project = Path(__file__).resolve().parents[1]
    paths = [str(project / "src"), str(project), os.environ.get("PYTHONPATH", "")]
    found = os.pathsep.join(path for path in paths if path)
    return {**os.environ, "PYTHONPATH": found, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}


def _failed(name: str, why: str) -> Table:
    return Table(name, f"{name}: failed", ["error"], [[why.replace("\n", " ")]])
