"""Processes of a running job, read from /proc: whose children they are, which ones are Python workers, how they die."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

#: Spark's own daemon of Python workers, and the one that keeps partitions with their processes.
_DAEMONS = frozenset({"pyspark.daemon", "holdfast.spark.internals.worker_daemon"})
_PR_SET_PDEATHSIG = 1

Found = TypeVar("Found")


@dataclass(frozen=True)
class Process:
    """One process. The start time tells it from a later one of the same id."""

    pid: int
    parent: int
    started: int
    name: str
    command: tuple[str, ...]

    @classmethod
    def read(cls, pid: int) -> Process | None:
        """None when there is no such process, or only what is left of one that nobody waited for."""
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            return None
        # The name in parentheses may hold spaces; the fields behind it do not.
        head, _, tail = stat.rpartition(")")
        fields = tail.split()
        if fields[0] in ("Z", "X"):
            return None
        words = tuple(word.decode(errors="replace") for word in command.split(b"\0") if word)
        return cls(pid, int(fields[1]), int(fields[19]), head.partition("(")[2], words)

    @property
    def alive(self) -> bool:
        now = Process.read(self.pid)
        return now is not None and now.started == self.started

    @property
    def computes(self) -> bool:
        """Whether it has, or waits for, a core at this moment."""
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "R"
        except OSError:
            return False

    def kill(self) -> bool:
        """SIGKILL; false when it was gone before."""
        return self._signal(signal.SIGKILL)

    def stop(self) -> bool:
        """SIGSTOP: it keeps its memory and sockets and does nothing, like a process that hangs."""
        return self._signal(signal.SIGSTOP)

    def resume(self) -> bool:
        return self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> bool:
        if not self.alive:
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True


def die_with_parent() -> None:
    """In a new child process: ask the kernel to kill it when its parent ends, in whatever way."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def all_processes() -> list[Process]:
    found = (Process.read(int(entry.name)) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [process for process in found if process is not None]


def descendants(root: int) -> list[Process]:
    """Every process below one, parents before children. Orphans are not found: they have lost their parent."""
    children: dict[int, list[Process]] = {}
    for process in all_processes():
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(0), [])
        found.extend(below)
        waiting.extend(process.pid for process in below)
    return found


def python_workers(root: int) -> list[Process]:
    """The Python workers below a driver or executor: what their daemon forked, without the daemon itself."""
    family = {process.pid: process for process in descendants(root) if not _DAEMONS.isdisjoint(process.command)}
    return [process for process in family.values() if process.parent in family]


def java_processes(root: int) -> list[Process]:
    """The JVMs below a process."""
    return [process for process in descendants(root) if process.name == "java"]


def kill_worker(root: int, index: int = 0, timeout: float = 30.0) -> Process:
    """SIGKILL one Python worker below ``root``, waiting for one to be there."""

    def nth() -> Process | None:
        workers = python_workers(root)
        return workers[index] if index < len(workers) and workers[index].kill() else None

    return wait_until(nth, timeout, f"Python worker {index} below process {root}")


def kill_tree(root: int) -> None:
    """SIGKILL a process and everything below it, and wait until all are gone."""
    top = Process.read(root)
    if top is None:
        return
    # Stopped, it starts no further children between the look and the kill.
    top.stop()
    family = [top, *descendants(root)]
    kill_all(family)


def kill_all(processes: Iterable[Process], timeout: float = 20.0) -> None:
    doomed = list(processes)
    for process in doomed:
        process.kill()
    wait_until(lambda: not any(process.alive for process in doomed) or None, timeout, "death of killed processes")


def wait_until(probe: Callable[[], Found | None], timeout: float, what: str, interval: float = 0.02) -> Found:
    """The first result of ``probe`` that is not None."""
    deadline = time.monotonic() + timeout
    while True:
        found = probe()
        if found is not None:
            return found
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {timeout:g} s in vain for {what}")
        time.sleep(interval)
