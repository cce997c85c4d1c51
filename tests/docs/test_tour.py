"""The tour of the README, as it stands there, on Spark."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from holdfast.server.jobs_directory import JobsDirectory
from tests.docs.blocks import PROJECT, blocks_of

#: In the place of a person who watches until some checkpoints have completed.
_WATCH = """
watched() {
    for _ in $(seq 50); do
        holdfast checkpoints "$1" --json 2>/dev/null | grep -q '"completed": [1-9]' && return 0
        sleep 2
    done
    return 1
}
"""


def _commands() -> str:
    blocks = [block.code for block in blocks_of(PROJECT / "README.md") if "$JOB" in block.code]
    return re.sub(r"^holdfast checkpoints --follow (\S+).*$", r"watched \1", "\n".join(blocks), flags=re.MULTILINE)


@pytest.mark.slow
def test_the_tour(tmp_path):
    commands = tmp_path / "bin"
    commands.mkdir()
    for name, call in (("holdfast", "-m holdfast.cli"), ("python", "")):
        (commands / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {call} "$@"\n')
        (commands / name).chmod(0o755)
    (tmp_path / "clone").mkdir()
    (tmp_path / "clone" / "examples").symlink_to(PROJECT / "examples")
    jobs = tmp_path / "jobs"
    environment = {
        **os.environ,
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(PROJECT / "src"),
        "HOLDFAST_JOBS_DIR": str(jobs),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    try:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", _WATCH + _commands()],
            cwd=tmp_path / "clone",
            env=environment,
            capture_output=True,
            text=True,
            timeout=420,
        )
    finally:
        logs = "".join(path.read_text()[-3000:] for path in jobs.glob("logs/*"))
        for record in JobsDirectory(jobs).living():
            with suppress(ProcessLookupError):
                os.killpg(record.process.pid, signal.SIGKILL)
    assert done.returncode == 0, done.stdout + done.stderr + logs
    lines = done.stdout.splitlines()
    assert sum(line.endswith(": counting (RUNNING)") for line in lines) == 1
    assert "You can resume your program from this savepoint with the run command." in lines
    assert any(line.endswith(": counting (FINISHED)") for line in lines)
    assert re.fullmatch(r"\d+ results of 10 digits: every count exactly once, without a gap\.", lines[-1])
