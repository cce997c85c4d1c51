"""Executors of a driver that runs on this host, found through the port on which they talk to it."""

from __future__ import annotations

from pathlib import Path

from holdfast.testing.chaos.processes import Process, all_processes, descendants, python_workers

_BACKEND = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
_DRIVER_URL = "--driver-url"
_LISTENING = "0A"


def executors_of(driver: int) -> list[Process]:
    """The executor JVMs, on this host, of the application whose driver is a process or below it.

    There are none in local mode, where tasks run in the driver's JVM.
    """
    ports = _listening_ports([driver, *(process.pid for process in descendants(driver))])
    found = [process for process in all_processes() if process.name == "java" and _BACKEND in process.command]
    return [process for process in found if _driver_port(process) in ports]


def workers_of(driver: int) -> list[Process]:
    """The Python workers of a driver's tasks: below itself in local mode, else below its executors."""
    roots = [driver, *(executor.pid for executor in executors_of(driver))]
    return [worker for root in roots for worker in python_workers(root)]


def _driver_port(executor: Process) -> int | None:
    """The port in ``--driver-url spark://CoarseGrainedScheduler@host:port``."""
    words = executor.command
    if _DRIVER_URL not in words[:-1]:
        return None
    port = words[words.index(_DRIVER_URL) + 1].rpartition(":")[2]
    return int(port) if port.isdigit() else None


def _listening_ports(pids: list[int]) -> set[int]:
    sockets = {target for pid in pids for target in _open_files(pid)}
    ports = set()
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENING and f"socket:[{fields[9]}]" in sockets:
                ports.add(int(fields[1].rpartition(":")[2], 16))
    return ports


def _open_files(pid: int) -> list[str]:
    found = []
    try:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            found.append(str(entry.readlink()))
    except OSError:
        pass  # it ended, or closed a file, meanwhile
    return found
