"""A daemon of Python workers that gives a partition to the process that worked on it before.

Spark starts a daemon for its Python workers (``spark.python.daemon.module``) and opens a connection to it for every
worker that it wants. A task goes out on whichever connection is free. In Spark's own daemon a process is bound to its
connection, so the subtasks of a job change places from epoch to epoch, and what a process has in memory of its state is
read from the store again.

Here connections and processes are apart. The daemon keeps the connections that wait for a task, sees in the first bytes
of a task which partition it is of, and hands the connection to the process that had this partition last. The process
runs the task with Spark's own code and says when it is done; then the connection waits in the daemon again.

Spark knows a worker by the process that greeted it on its connection, and asks the daemon to kill that one. The daemon
kills the process that has the connection now. A connection ends with the process that has it, as Spark expects.

Nothing but Spark's own modules is imported here: threads that a library starts would not survive the fork.
"""

from __future__ import annotations

import gc
import os
import selectors
import signal
import socket
import struct
import sys
import traceback
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NoReturn

from pyspark.daemon import worker as run_task
from pyspark.serializers import SpecialLengths
from pyspark.util import enable_faulthandler

_INT = struct.Struct("!i")

#: A task begins with the kind of its first message, the length of that message, and in it the partition.
_TASK_HEAD = struct.Struct("!iii")

#: Spark sees the end of a task a moment before the daemon hears of it, and may send the next task of the partition at
#: once. So many seconds are left to the process to say that it is done.
_PATIENCE = 0.02

#: What a process says when it has let go of its connection, and what comes with a connection that is handed to it.
_DONE = _TASK = b"."


class _Process:
    """A process that runs tasks, as the daemon sees it."""

    def __init__(self, pid: int, control: socket.socket) -> None:
        self.pid = pid
        self.control = control
        #: The one that it has, and the partition of its task.
        self.connection: _Connection | None = None
        self.partition: int | None = None
        #: The number of the last task that it was given.
        self.last_task = 0

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

    def task_partition(self) -> int | None:
        """The partition of the task that has arrived; None if it cannot be told, and then any process may run it.

        Raises EOFError if Spark has closed the connection.
        """
        try:
            head = self.channel.recv(_TASK_HEAD.size, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except OSError:
            head = b""
        if not head:
            raise EOFError
        if len(head) < _TASK_HEAD.size:
            return None
        kind, _, partition = _TASK_HEAD.unpack(head)
        return int(partition) if kind == SpecialLengths.START_OF_INIT_MESSAGE else None

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
        #: By partition, the process that had it last.
        self._last: dict[int, _Process] = {}
        self._tasks = 0
        self._selector = selectors.DefaultSelector()

    def run(self) -> None:
        """Until Spark closes the daemon's input."""
        self._selector.register(self._requests, selectors.EVENT_READ, self._kill)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        while True:
            for key, _ in self._selector.select():
                # What came before it in this round may have ended it.
                if self._selector.get_map().get(key.fd) is key:
                    handle: Callable[[], None] = key.data
                    try:
                        handle()
                    except _SparkIsGone:
                        return

    def _accept(self) -> None:
        connection = _Connection(self._listener.accept()[0])
        try:
            process = self._start(connection)
        except OSError as failure:
            # Spark takes what is below zero as a failure.
            connection.channel.sendall(_INT.pack(-(failure.errno or 1)))
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
            control.close()
            self._close_copies()
            _be_process(control_of_process, greeted.channel if greeted else None)
        control_of_process.close()
        process = _Process(pid, control)
        self._processes.append(process)
        self._selector.register(control, selectors.EVENT_READ, lambda: self._hear(process))
        if greeted is not None:
            process.connection, greeted.process = greeted, process
        return process

    def _close_copies(self) -> None:
        """In a new process: what it has of its daemon's and of other processes'."""
        self._selector.close()
        self._listener.close()
        for process in self._processes:
            process.control.close()
        for connection in self._connections:
            connection.channel.close()

    def _hear(self, process: _Process) -> None:
        """A process has let go of its connection, or has ended."""
        try:
            done = process.control.recv(1)
        except OSError:
            done = b""
        if not done:
            self._forget(process)
        elif process.connection is not None:
            connection, process.connection = process.connection, None
            connection.process = None
            self._selector.register(connection.channel, selectors.EVENT_READ, lambda: self._hand_over(connection))

    def _hand_over(self, connection: _Connection) -> None:
        """A task has arrived, or Spark has closed the connection."""
        try:
            partition = connection.task_partition()
        except EOFError:
            self._drop(connection)
            return
        process = self._process_for(partition)
        try:
            socket.send_fds(process.control, [_TASK], [connection.channel.fileno()])
        except OSError:
            # It has ended; the task still waits, and is found again.
            self._forget(process)
            return
        self._selector.unregister(connection.channel)
        process.connection, connection.process = connection, process
        self._tasks += 1
        process.last_task, process.partition = self._tasks, partition
        if partition is not None:
            self._last[partition] = process

    def _process_for(self, partition: int | None) -> _Process:
        """The one that had the partition last, or the one that has been idle for longest."""
        last = None if partition is None else self._last.get(partition)
        if last is not None and last.connection is not None and last.partition == partition:
            self._wait_for(last)
        if last is not None and last.connection is None:
            return last
        idle = self._idle()
        return min(idle, key=lambda process: process.last_task) if idle else self._start()

    def _wait_for(self, process: _Process) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(process.control, selectors.EVENT_READ)
            if selector.select(_PATIENCE):
                self._hear(process)

    def _idle(self) -> list[_Process]:
        return [process for process in self._processes if process.connection is None]

    def _kill(self) -> None:
        """Spark wants to be rid of a worker, by the process that it knows."""
        request = self._requests.read(_INT.size)
        if len(request) < _INT.size:
            raise _SparkIsGone
        (known_as,) = _INT.unpack(request)
        for connection in self._connections:
            if connection.known_as == known_as:
                if connection.process is not None:
                    connection.process.kill()
                else:
                    self._drop(connection)
                return

    def _drop(self, connection: _Connection) -> None:
        """A connection that waits is closed, and a process that is one too many ends."""
        self._selector.unregister(connection.channel)
        self._connections.remove(connection)
        connection.close()
        idle = self._idle()
        if len(self._processes) > len(self._connections) and idle:
            # Spark drops a worker when the process that it knows has ended.
            known = {other.known_as for other in self._connections}
            unwanted = min(idle, key=lambda process: (process.pid in known, process.last_task))
            unwanted.kill()
            self._forget(unwanted)

    def _forget(self, process: _Process) -> None:
        """A process has ended, and its connection with it."""
        self._selector.unregister(process.control)
        process.control.close()
        self._processes.remove(process)
        self._last = {partition: other for partition, other in self._last.items() if other is not process}
        if process.connection is not None:
            self._connections.remove(process.connection)
            process.connection.close()


class _SparkIsGone(Exception):
    """Spark has closed the daemon's input."""


def _be_process(control: socket.socket, greeted: socket.socket | None) -> NoReturn:
    """What a new process does until it ends."""
    for inherited in (signal.SIGHUP, signal.SIGCHLD, signal.SIGTERM):
        signal.signal(inherited, signal.SIG_DFL)
    # The number stays taken, so that no other file is opened as standard input.
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    with enable_faulthandler():
        try:
            if greeted is not None:
                _greet(greeted)
                greeted.close()
                control.sendall(_DONE)
            _run_tasks(control)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)


def _greet(channel: socket.socket) -> None:
    with channel.makefile("rwb") as stream:
        stream.write(_INT.pack(os.getpid()))
        stream.flush()
        if _unix_sockets():
            return
        (length,) = _INT.unpack(stream.read(_INT.size))
        right = stream.read(length) == os.environ["PYTHON_WORKER_FACTORY_SECRET"].encode()
        stream.write(_with_length(b"ok" if right else b"err"))
        stream.flush()
    if not right:
        os._exit(1)


def _run_tasks(control: socket.socket) -> None:
    while True:
        said, connections, _, _ = socket.recv_fds(control, len(_TASK), 1)
        if not said:
            return
        with socket.socket(fileno=connections[0]) as channel:
            failed = run_task(channel, True)
            if failed or not os.environ.get("SPARK_REUSE_WORKER"):
                # What Spark still writes must not meet a closed connection.
                with suppress(OSError):
                    while channel.recv(1024):
                        pass
                return
        control.sendall(_DONE)
        gc.collect()


def _with_length(text: bytes) -> bytes:
    return _INT.pack(len(text)) + text


def _unix_sockets() -> bool:
    return os.environ.get("PYTHON_UNIX_DOMAIN_ENABLED", "false").lower() == "true"


def _listen() -> tuple[socket.socket, int | Path]:
    """A listener, and what Spark is told of it."""
    address: int | Path
    if _unix_sockets():
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
    listener, address = _listen()

    def end(code: int) -> NoReturn:
        if isinstance(address, Path):
            address.unlink(missing_ok=True)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(0, signal.SIGHUP)
        sys.exit(code)

    signal.signal(signal.SIGTERM, lambda *_: end(1))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # Processes that have ended are not waited for.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with os.fdopen(1, "wb", closefd=False) as answers:
        answers.write(_with_length(bytes(address)) if isinstance(address, Path) else _INT.pack(address))
    try:
        # Four bytes at a time: what is in a buffer here would not wake the daemon.
        Daemon(listener, os.fdopen(0, "rb", 4, closefd=False)).run()
    except BaseException:
        traceback.print_exc()
        end(1)
    end(0)


if __name__ == "__main__":
    main()
