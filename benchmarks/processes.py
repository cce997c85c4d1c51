"""A job's process with all that it starts: how long it may take, and how much memory it took."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

_SAMPLE_SECONDS = 0.25


@dataclass(frozen=True)
class Finished:
    """How a process ended, its output, and the most memory that it and its children had at one time, in MB.

    Memory is anonymous memory: without pages of files, which the system takes back when it needs them.
    """

    code: int
    output: str
    timed_out: bool
    python_mb: float
    jvm_mb: float


def run(command: list[str], directory: Path, environment: dict[str, str], timeout: float) -> Finished:
    log = directory / "output.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=directory, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        memory = _MemoryOf(process.pid)
        timed_out = False
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            memory.stop()
            _end_group(process)
    output_text = log.read_text(errors="replace")
    return Finished(process.returncode, output_text, timed_out, memory.most["python"] / 1e6, memory.most["jvm"] / 1e6)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """The process and what it left behind: it has a session of its own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class _MemoryOf:
    """Samples the memory of a process and its descendants until it is stopped."""

    def __init__(self, root: int) -> None:
        self.most = {"python": 0, "jvm": 0}
        self._root = root
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stopped.wait(_SAMPLE_SECONDS):
            now = {"python": 0, "jvm": 0}
            for name, size in _family(self._root):
                now["jvm" if name == "java" else "python"] += size
            self.most = {kind: max(self.most[kind], now[kind]) for kind in now}


def _family(root: int) -> list[tuple[str, int]]:
    """Name and anonymous bytes of a process and of all below it."""
    found: dict[int, tuple[int, str, int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (facts := _facts(entry)) is not None:
            found[int(entry.name)] = facts
    children: dict[int, list[int]] = {}
    for pid, (parent, _, _) in found.items():
        children.setdefault(parent, []).append(pid)
    family, pending = [], [root]
    while pending:
        pid = pending.pop()
        pending += children.get(pid, [])
        if pid in found:
            family.append(found[pid][1:])
    return family


def _facts(entry: Path) -> tuple[int, str, int] | None:
    try:
        lines = (entry / "status").read_text().splitlines()
    except OSError:
        # It has ended meanwhile.
        return None
    fields = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return int(fields["PPid"]), fields["Name"], int(fields.get("RssAnon", "0 kB").split()[0]) * 1024


def cpu_seconds(root: int) -> dict[str, float]:
    """What a process and all below it have used of processors, by kind, with their children that have ended."""
    used = {"python": 0.0, "jvm": 0.0}
    for pid in [root, *_below(root)]:
        with contextlib.suppress(OSError):
            name, _, rest = (Path("/proc") / str(pid) / "stat").read_text().partition(" (")[2].rpartition(") ")
            ticks = sum(int(field) for field in rest.split()[11:15])
            used["jvm" if name == "java" else "python"] += ticks / os.sysconf("SC_CLK_TCK")
    return used


def python_workers(root: int) -> list[int]:
    """Spark's Python workers below a process: those that a daemon of Spark has forked."""
    return [pid for pid in _below(root) if _is_daemon(pid) and _is_daemon(_parent(pid))]


def _below(root: int) -> list[int]:
    every = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    parents = {pid: _parent(pid) for pid in every}
    return [pid for pid in every if pid != root and root in _ancestors(pid, parents)]


def _ancestors(pid: int, parents: dict[int, int]) -> set[int]:
    found: set[int] = set()
    while pid in parents and parents[pid] not in found:
        pid = parents[pid]
        found.add(pid)
    return found


def _parent(pid: int) -> int:
    facts = _facts(Path("/proc") / str(pid))
    return facts[0] if facts is not None else 0


def _is_daemon(pid: int) -> bool:
    try:
        words = (Path("/proc") / str(pid) / "cmdline").read_bytes().split(b"\0")
        return b"pyspark.daemon" in words or b"holdfast.spark.internals.worker_daemon" in words
    except OSError:
        return False
