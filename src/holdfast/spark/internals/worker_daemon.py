"""A daemon of Python workers that gives a partition to the process that worked on it before.

Spark starts a daemon for its Python workers (``spark.python.daemon.module``) and opens a connection to it for every
worker that it wants. A task goes out on whichever connection is free. In Spark's own daemon a process is bound to its
connection, so the subtasks of a job change places from epoch to epoch, and what a process has in memory of its state is
read from the store again.

Here connections and processes are apart. The daemon keeps the connections that wait for a task, sees in the first bytes
of a task which partition it is of, and hands the connection to the process that had this partition last. The process
runs the task with Spark's own code (``worker_process.py``) and says when it is done; then the connection waits in the
daemon again.

What Spark knows of a worker is true of its connection:

- Broadcast variables: Spark sends those that a connection has not had. So what a connection has had goes with it from
  process to process.
- The process: Spark knows the one that greeted it on the connection, and asks the daemon to kill that one. The daemon
  kills the one that has the connection now.
- Its end: a connection ends with the process that has it.

What every process needs is imported here, once (``preloaded.py``).
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import struct
import sys
import time
import traceback
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NoReturn

from holdfast.spark.internals.search_path import prefer_installed_pyspark

if __name__ == "__main__":
    # What follows imports PySpark.
    prefer_installed_pyspark()

from pyspark.serializers import SpecialLengths

from holdfast.spark.internals.preloaded import preload
from holdfast.spark.internals.worker_process import INT, Broadcasts, be_process, unix_sockets, with_length

#: A task begins with the kind of its first message, the length of that message, and in it the partition. Before Spark
#: 4.3 it begins with the partition.
_FIRST_MESSAGE: int | None = getattr(SpecialLengths, "START_OF_INIT_MESSAGE", None)
_TASK_HEAD = struct.Struct("!i" if _FIRST_MESSAGE is None else "!iii")

#: Spark sees the end of a task a moment before the daemon hears of it, and may send the next task of the partition at
#: once. For so many seconds that one waits for the process to say that it is done.
_PATIENCE = 0.01

#: A process that has had its task for fewer seconds is not waited for: two Python functions of one stage begin
#: together, and have the same partition.
_YOUNG = 0.01


class _Process:
    """A process that runs tasks, as the daemon sees it."""

    def __init__(self, pid: int, control: socket.socket) -> None:
        self.pid = pid
        self.control = control
        self.heard = b""
        #: The connection that it has, the partition of its last task, and when that began.
        self.connection: _Connection | None = None
        self.partition: int | None = None
        self.since = 0.0

    @property
    def lives(self) -> bool:
        # A child that a task left behind may have the control open still, and hide that its parent has ended.
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


class _Connection:
    """A worker, as Spark sees it."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        #: The process that greeted Spark on it.
        self.known_as = 0
        #: The process that has it.
        self.process: _Process | None = None
        #: What Spark has sent on it, or the process that has it because no other can.
        self.broadcasts: Broadcasts | None = {}
        self.bound_to: _Process | None = None
        #: When its task is given to another process than the one that it waits for.
        self.patient_until: float | None = None

    def task_partition(self) -> int | None:
        """The partition of the task that has arrived; None if it cannot be told, and then any process may run it.

        Raises EOFError or OSError if Spark has closed the connection.
        """
        head = self.channel.recv(_TASK_HEAD.size, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        if not head:
            raise EOFError
        if len(head) < _TASK_HEAD.size:
            return None
        numbers = _TASK_HEAD.unpack(head)
        return int(numbers[-1]) if _FIRST_MESSAGE in (None, numbers[0]) else None

    def close(self) -> None:
        # A process that is about to end may have it open; Spark is to see its end now.
        with suppress(OSError):
            self.channel.shutdown(socket.SHUT_RDWR)
        self.channel.close()


class Daemon:
    """Accepts connections, starts processes, and brings the two together."""

    def __init__(self, listener: socket.socket, requests: BinaryIO) -> None:
        self._listener = listener
        #: The workers that Spark wants killed.
        self._requests = requests
        self._connections: list[_Connection] = []
        self._processes: list[_Process] = []
        #: Connections with a task that waits for the process that has its partition.
        self._patient: list[_Connection] = []
        #: The process that had a task last, by its partition and how many processes were at work on that when it came:
        #: the first and the second Python function of a stage stay apart.
        self._last: dict[tuple[int, int], _Process] = {}
        self._selector = selectors.DefaultSelector()

    def run(self) -> None:
        """Until Spark closes the daemon's input."""
        self._selector.register(self._requests, selectors.EVENT_READ, self._kill)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        while True:
            for key, _ in self._selector.select(self._patience()):
                # What came before it in this round may have ended it.
                if self._selector.get_map().get(key.fd) is key:
                    handle: Callable[[], None] = key.data
                    try:
                        handle()
                    except _SparkIsGone:
                        return
            for connection in list(self._patient):
                self._hand_over(connection)

    def _patience(self) -> float | None:
        """How long the daemon may wait for something to happen."""
        until = [connection.patient_until for connection in self._patient if connection.patient_until is not None]
        return max(0.0, min(until) - time.monotonic()) if until else None

    def _accept(self) -> None:
        connection = _Connection(self._listener.accept()[0])
        try:
            process = self._start(connection)
        except OSError as failure:
            # Spark takes what is below zero as a failure.
            with suppress(OSError):
                connection.channel.sendall(INT.pack(-(failure.errno or 1)))
            connection.close()
            return
        connection.known_as = process.pid
        self._connections.append(connection)

    def _start(self, greeted: _Connection | None = None) -> _Process:
        """A new process, which has the connection that it greets Spark on until it has done so."""
        control, control_of_process = socket.socketpair()
        try:
            pid = os.fork()
        except OSError:
            control.close()
            control_of_process.close()
            raise
        if pid == 0:
            # Whatever happens, what follows is the parent's.
            try:
                control.close()
                self._close_copies()
                be_process(control_of_process, greeted.channel if greeted else None)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        control_of_process.close()
        process = _Process(pid, control)
        self._processes.append(process)
        self._selector.register(control, selectors.EVENT_READ, lambda: self._hear(process))
        if greeted is not None:
            process.connection, greeted.process = greeted, process
        return process

    def _close_copies(self) -> None:
        """In a new process: what it has of its daemon's and of other processes'."""
        with suppress(OSError):
            self._selector.close()
        self._listener.close()
        for process in self._processes:
            process.control.close()
        for connection in self._connections:
            connection.channel.close()

    def _hear(self, process: _Process) -> None:
        """A process has let go of its connection, or has ended."""
        try:
            said = process.control.recv(65536, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            said = b""
        if not said:
            self._forget(process)
            return
        process.heard += said
        if not process.heard.endswith(b"\n"):
            return
        broadcasts: Broadcasts | None = json.loads(process.heard)
        process.heard = b""
        connection, process.connection = process.connection, None
        assert connection is not None
        connection.process = None
        connection.broadcasts = broadcasts
        connection.bound_to = process if broadcasts is None else None
        self._selector.register(connection.channel, selectors.EVENT_READ, lambda: self._hand_over(connection))

    def _hand_over(self, connection: _Connection) -> None:
        """A task has arrived, or Spark has closed the connection."""
        try:
            partition = connection.task_partition()
            if self._may_wait(connection, partition):
                self._wait(connection)
                return
            process, place = self._process_for(connection, partition)
        except (EOFError, OSError):
            # Spark is gone, or there can be no process: then Spark sees the end of its worker.
            self._drop(connection)
            return
        try:
            socket.send_fds(
                process.control, [json.dumps(connection.broadcasts).encode() + b"\n"], [connection.channel.fileno()]
            )
        except OSError:
            # It has ended; the task still waits, and is found again.
            self._forget(process)
            return
        self._stop_watching(connection)
        process.connection, connection.process = connection, process
        process.partition, process.since = partition, time.monotonic()
        if place is not None:
            self._last[place] = process

    def _may_wait(self, connection: _Connection, partition: int | None) -> bool:
        """Whether a task may wait for a process that has had its partition for long enough to be at its end."""
        now = time.monotonic()
        impatient = connection.patient_until is not None and now >= connection.patient_until
        if connection.bound_to is not None or impatient:
            return False
        return any(now - process.since > _YOUNG for process in self._busy_with(partition))

    def _wait(self, connection: _Connection) -> None:
        if connection not in self._patient:
            self._selector.unregister(connection.channel)
            self._patient.append(connection)
            connection.patient_until = time.monotonic() + _PATIENCE

    def _process_for(self, connection: _Connection, partition: int | None) -> tuple[_Process, tuple[int, int] | None]:
        """The one that had the partition last, or the one whose last task is the oldest; and what to remember it by."""
        if connection.bound_to is not None:
            return connection.bound_to, None
        for process in self._idle():
            if not process.lives:
                self._forget(process)
        idle = self._idle()
        place = None if partition is None else (partition, len(self._busy_with(partition)))
        last = None if place is None else self._last.get(place)
        if last is not None and last in idle:
            return last, place
        oldest = min(idle, key=lambda process: process.since) if idle else None
        return oldest or self._start(), place

    def _idle(self) -> list[_Process]:
        bound = {connection.bound_to for connection in self._connections}
        return [process for process in self._processes if process.connection is None and process not in bound]

    def _busy_with(self, partition: int | None) -> list[_Process]:
        return [
            process
            for process in self._processes
            if process.connection is not None and process.partition is not None and process.partition == partition
        ]

    def _kill(self) -> None:
        """Spark wants to be rid of a worker, by the process that it knows."""
        request = self._requests.read(INT.size)
        if len(request) < INT.size:
            raise _SparkIsGone
        (known_as,) = INT.unpack(request)
        for connection in self._connections:
            if connection.known_as == known_as:
                if connection.process is None:
                    self._drop(connection)
                else:
                    connection.process.kill()
                    self._forget(connection.process)
                return

    def _drop(self, connection: _Connection) -> None:
        """A connection that waits is closed, and a process that is one too many ends."""
        self._stop_watching(connection)
        self._connections.remove(connection)
        connection.close()
        idle = self._idle()
        if len(self._processes) > len(self._connections) and idle:
            # Spark drops a worker when the process that it knows has ended.
            known = {other.known_as for other in self._connections}
            unwanted = min(idle, key=lambda process: (process.pid in known, process.since))
            unwanted.kill()
            self._forget(unwanted)

    def _stop_watching(self, connection: _Connection) -> None:
        if connection in self._patient:
            self._patient.remove(connection)
        else:
            self._selector.unregister(connection.channel)
        connection.patient_until = None

    def _forget(self, process: _Process) -> None:
        """A process has ended, and its connection with it."""
        self._selector.unregister(process.control)
        process.control.close()
        self._processes.remove(process)
        self._last = {place: other for place, other in self._last.items() if other is not process}
        if process.connection is not None:
            self._connections.remove(process.connection)
            process.connection.close()
        for connection in [connection for connection in self._connections if connection.bound_to is process]:
            self._drop(connection)


class _SparkIsGone(Exception):
    """Spark has closed the daemon's input."""


def _listen() -> tuple[socket.socket, int | Path]:
    """A listener, and what Spark is told of it."""
    address: int | Path
    if unix_sockets():
        address = Path(os.environ["PYTHON_WORKER_FACTORY_SOCK_DIR"], f".{uuid.uuid4()}.sock")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(address))
    else:
        version_6 = os.environ.get("SPARK_PREFER_IPV6", "false").lower() == "true"
        listener = socket.socket(socket.AF_INET6 if version_6 else socket.AF_INET, socket.SOCK_STREAM)
        listener.bind(("::1" if version_6 else "127.0.0.1", 0))
        address = listener.getsockname()[1]
    listener.listen(max(1024, socket.SOMAXCONN))
    return listener, address


def main() -> NoReturn:
    # Its processes are in its group, and end with it.
    os.setpgid(0, 0)
    preload()
    listener, address = _listen()

    def end(code: int) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if isinstance(address, Path):
            address.unlink(missing_ok=True)
        os.kill(0, signal.SIGHUP)
        sys.exit(code)

    signal.signal(signal.SIGTERM, lambda *_: end(1))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # Processes that have ended are not waited for.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with os.fdopen(1, "wb", closefd=False) as answers:
        answers.write(with_length(bytes(address)) if isinstance(address, Path) else INT.pack(address))
    try:
        # Four bytes at a time: what is in a buffer here would not wake the daemon.
        Daemon(listener, os.fdopen(0, "rb", 4, closefd=False)).run()
    except Exception:
        traceback.print_exc()
        end(1)
    end(0)


if __name__ == "__main__":
    main()
