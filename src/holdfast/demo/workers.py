"""The Python workers of a local Spark, found through /proc."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_DAEMON = b"pyspark.daemon"
#: A worker that rested and then is seen computing so often in a row has begun a task.
_LOOKS = 2
_LOOK_SECONDS = 0.01
_LONGEST_SECONDS = 0.5


@dataclass(frozen=True)
class _Process:
    pid: int
    parent: int
    of_pyspark: bool


def _processes() -> Iterator[_Process]:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            parent = int(_stat(int(entry.name))[1])
        except OSError:
            continue  # it ended meanwhile
        yield _Process(int(entry.name), parent, _DAEMON in command)


def _stat(pid: int) -> list[str]:
    """State, parent, and so on. The name before them, in parentheses, may hold spaces."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def workers_below(root: int) -> list[int]:
    """Process ids of what PySpark's daemon forked, where the daemon is below ``root``."""
    found = {process.pid: process for process in _processes()}

    def is_below(process: _Process | None) -> bool:
        while process is not None and process.pid != root:
            process = found.get(process.parent)
        return process is not None

    def is_worker(process: _Process) -> bool:
        parent = found.get(process.parent)
        return process.of_pyspark and parent is not None and parent.of_pyspark and is_below(process)

    return [process.pid for process in found.values() if is_worker(process)]


def kill_busy_worker(root: int) -> int | None:
    """SIGKILL a worker below ``root`` that has just begun to compute; its id, or None when none does for a while.

    One that has computed all along may be done with its task and collecting garbage, which nobody would miss.
    """
    computing: dict[int, int | None] = dict.fromkeys(workers_below(root))
    deadline = time.monotonic() + _LONGEST_SECONDS
    while time.monotonic() < deadline:
        for pid, looks in computing.items():
            if not _computes(pid):
                computing[pid] = 0
            elif looks is not None:
                computing[pid] = looks + 1
                if looks + 1 == _LOOKS:
                    os.kill(pid, signal.SIGKILL)
                    return pid
        time.sleep(_LOOK_SECONDS)
    return None


def _computes(pid: int) -> bool:
    try:
        return _stat(pid)[0] == "R"
    except OSError:
        return False
