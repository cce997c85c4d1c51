"""The Python workers of a local Spark, found through /proc."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_DAEMON = b"pyspark.daemon"
_SAMPLE_SECONDS = 0.1


@dataclass(frozen=True)
class _Process:
    pid: int
    parent: int
    cpu_ticks: int
    is_daemon_or_worker: bool


def _processes() -> Iterator[_Process]:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # The name in parentheses may hold spaces; the fields behind it do not.
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue  # it ended meanwhile
        yield _Process(int(entry.name), int(fields[1]), int(fields[11]) + int(fields[12]), _DAEMON in command)


def _workers(root: int) -> dict[int, int]:
    """CPU ticks of every process below ``root`` that PySpark's daemon forked, by process id."""
    found = {process.pid: process for process in _processes()}

    def is_below(process: _Process | None) -> bool:
        while process is not None and process.pid != root:
            process = found.get(process.parent)
        return process is not None

    return {
        process.pid: process.cpu_ticks
        for process in found.values()
        if process.is_daemon_or_worker
        and (parent := found.get(process.parent)) is not None
        and parent.is_daemon_or_worker
        and is_below(process)
    }


def kill_busy_worker() -> int | None:
    """SIGKILL the worker below this process that computes most just now; its id, or None when all of them rest."""
    before = _workers(os.getpid())
    time.sleep(_SAMPLE_SECONDS)
    work = {pid: ticks - before[pid] for pid, ticks in _workers(os.getpid()).items() if pid in before}
    busiest = max(work, key=lambda pid: work[pid], default=None)
    if busiest is None or work[busiest] == 0:
        return None
    try:
        os.kill(busiest, signal.SIGKILL)
    except ProcessLookupError:
        return None
    return busiest
