"""A job that is killed in the middle, recovers, and is checked against a direct computation."""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path

from holdfast.demo.displays import display_for
from holdfast.demo.job import Directories
from holdfast.demo.story import Outcome, Scale, Story
from holdfast.errors import HoldfastError


def main(arguments: list[str] | None = None) -> int:
    """The exit code: 0 when every result was published exactly once although a worker was killed."""
    options = _parser().parse_args(arguments)
    directories = Directories(Path(tempfile.mkdtemp(prefix="holdfast-demo-")))
    directories.make()
    _keep_terminal_clean(directories.log)
    display = display_for(sys.stdout, options.plain)
    scale = Scale(options.seconds, options.rate, options.sensors, options.seed)
    try:
        outcome = Story(directories, scale, display).tell(options.backend)
    except HoldfastError as error:
        print(f"\nThe job failed: {error}\nSpark's log is {directories.log}.")
        return 1
    print(_report(outcome))
    if options.keep or not outcome.right:
        print(f"Input, output, checkpoints and Spark's log are in {directories.root}.")
    else:
        shutil.rmtree(directories.root, ignore_errors=True)
    return 0 if outcome.right else 1


def _parser() -> argparse.ArgumentParser:
    defaults = Scale()
    parser = argparse.ArgumentParser(prog="python -m holdfast.demo", description=__doc__)
    parser.add_argument("--seconds", type=float, default=defaults.seconds, help="how long events come in")
    parser.add_argument("--rate", type=int, default=defaults.events_per_second, help="events per second")
    parser.add_argument("--sensors", type=int, default=defaults.sensors, help="number of keys")
    parser.add_argument("--seed", type=int, default=defaults.seed, help="of the made-up readings")
    parser.add_argument("--backend", default="lmdb", help="state backend: lmdb or heap")
    parser.add_argument("--plain", action="store_true", help="lines of text, also on a terminal")
    parser.add_argument("--keep", action="store_true", help="leave the files of the run where they are")
    return parser


def _keep_terminal_clean(log: Path) -> None:
    """Warnings go to a file, and so does standard error as the JVM inherits it: it prints traces of killed workers."""
    logging.basicConfig(filename=log)
    logging.getLogger("holdfast").setLevel(logging.INFO)
    own = os.dup(sys.stderr.fileno())
    with log.open("ab") as file:
        os.dup2(file.fileno(), sys.stderr.fileno())
    sys.stderr = os.fdopen(own, "w", buffering=1)


def _report(outcome: Outcome) -> str:
    verdict = outcome.verdict
    lines = [
        "",
        f"events           {verdict.rows_in:>10,}",
        f"rows expected    {verdict.expected:>10,}",
        f"rows seen        {verdict.rows_out:>10,}",
        f"lost             {verdict.lost:>10,}",
        f"repeated         {verdict.repeated:>10,}",
        f"wrong            {verdict.wrong:>10,}",
        f"workers killed   {outcome.kills:>10,}",
        f"restarts         {outcome.restarts:>10,}",
        "",
    ]
    if outcome.right:
        lines.append("Every result exactly once.")
    elif verdict.exactly_once:
        lines.append("Every result exactly once, but no failure was survived: no kill hit a running epoch.")
    else:
        lines.append("WRONG: the published results are not those of the input.")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
