"""Somebody who reads a page and types its commands, one block after the other, into one shell."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from holdfast.server.jobs_directory import JobsDirectory
from holdfast.testing.chaos.processes import descendants, die_with_parent, kill_all
from tests.docs.blocks import PROJECT, Block

_END_OF_BLOCK = "-- end of a block --"


@dataclass(frozen=True)
class Read:
    """What each block of commands printed, and what there is to say where something went wrong."""

    code: int
    printed: list[list[str]]
    report: str


def read_page(blocks: Iterable[Block], directory: Path, prelude: str = "", seconds: float = 420.0) -> Read:
    """Run the commands of a page, and write its files as they come, in a new folder of ``directory``. Nothing that they
    have started is left."""
    own, jobs = directory / "here", directory / "jobs"
    own.mkdir()
    with (directory / "printed").open("w+b") as printed:
        process = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", prelude + "".join(map(_commands, blocks))],
            cwd=own,
            env=_environment(directory, jobs),
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=die_with_parent,
        )
        try:
            errors = process.communicate(timeout=seconds)[1]
        except subprocess.TimeoutExpired:
            errors = f"it did not end within {seconds} s"
        finally:
            _end(process, jobs)
        printed.seek(0)
        parts = printed.read().decode(errors="replace").split(f"{_END_OF_BLOCK}\n")
    logs = "".join(path.read_text()[-3000:] for path in [*jobs.glob("logs/*"), *own.glob("*.txt")])
    return Read(process.returncode, [part.splitlines() for part in parts], "".join(parts) + errors + logs)


def _commands(block: Block) -> str:
    if block.file is None:
        return f"{block.code}\necho {shlex.quote(_END_OF_BLOCK)}\n"
    return f"cat > {shlex.quote(block.file)} <<'END OF FILE'\n{block.code}END OF FILE\n"


def _environment(directory: Path, jobs: Path) -> dict[str, str]:
    commands = directory / "bin"
    commands.mkdir()
    for name, call in (("holdfast", "-m holdfast.cli"), ("python", "")):
        (commands / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {call} "$@"\n')
        (commands / name).chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(PROJECT / "src"),
        "HOLDFAST_JOBS_DIR": str(jobs),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def _end(shell: subprocess.Popen[str], jobs: Path) -> None:
    kill_all(descendants(shell.pid))
    shell.kill()
    shell.wait(20)
    for record in JobsDirectory(jobs).living():
        with suppress(ProcessLookupError):
            os.killpg(record.process.pid, signal.SIGKILL)
