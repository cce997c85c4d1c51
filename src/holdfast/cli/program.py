"""Runs a program in this process: that of an attached run, or the one that a detached run has started for it."""

from __future__ import annotations

import logging
import runpy
import signal
import sys
from pathlib import Path

from holdfast.cli.errors import told
from holdfast.errors import JobExecutionError
from holdfast.server.driver import await_jobs


def run_program(program: str, arguments: list[str]) -> None:
    """As ``python program arguments`` would; jobs that still run when it is through are waited for."""
    sys.argv = [program, *arguments]
    sys.path.insert(0, str(Path(program).resolve().parent))
    runpy.run_path(program, run_name="__main__")
    await_jobs()


def main() -> None:
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("holdfast").setLevel(logging.INFO)
    # So that a driver that is told to end leaves no record behind.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        run_program(sys.argv[1], sys.argv[2:])
    except JobExecutionError as error:
        print(told(error), file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
