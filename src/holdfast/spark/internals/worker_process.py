"""A process of the daemon of Python workers: it runs tasks on the connections that the daemon hands to it."""

from __future__ import annotations

import gc
import inspect
import json
import os
import signal
import socket
import struct
from contextlib import suppress

from pyspark import Broadcast
from pyspark.daemon import worker as run_task

from holdfast.spark.internals.preloaded import differ_from_siblings

try:
    from pyspark.core.broadcast import _broadcastRegistry
except ImportError:  # Spark 3.5
    from pyspark.broadcast import _broadcastRegistry  # type: ignore[no-redef]
try:
    from pyspark.util import enable_faulthandler
except ImportError:  # before Spark 4.2
    from contextlib import nullcontext as enable_faulthandler  # type: ignore[assignment]

INT = struct.Struct("!i")

#: The files of broadcast variables, by their number (as text: JSON has no other keys).
Broadcasts = dict[str, str]


def misfit() -> str | None:
    """Why processes cannot run tasks with the PySpark that is installed: what they use of it, called as they do."""
    try:
        inspect.signature(run_task).bind(None, True)
        inspect.signature(Broadcast).bind(path="")
        dict(_broadcastRegistry)
    except (TypeError, ValueError) as error:
        return f"pyspark.daemon.worker, Broadcast or the registry of broadcasts is of another form: {error}"
    return None


def be_process(control: socket.socket, greeted: socket.socket | None) -> None:
    """What a new process does until it ends: greet Spark on a connection, if there is one, and run tasks.

    To the daemon it says, when it has let go of a connection, which broadcast variables Spark has sent on it, as a line
    of JSON; null if they came encrypted, and no other process can have them. From the daemon it gets such a line with
    each connection.
    """
    for inherited in (signal.SIGHUP, signal.SIGCHLD, signal.SIGTERM):
        signal.signal(inherited, signal.SIG_DFL)
    # The number stays taken, so that no other file is opened as standard input.
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    differ_from_siblings()
    with enable_faulthandler():
        if greeted is not None:
            _greet(greeted)
            greeted.close()
            _say(control, {})
        _run_tasks(control)


def _greet(channel: socket.socket) -> None:
    with channel.makefile("rwb") as stream:
        stream.write(INT.pack(os.getpid()))
        stream.flush()
        if unix_sockets():
            return
        (length,) = INT.unpack(stream.read(INT.size))
        right = stream.read(length) == os.environ["PYTHON_WORKER_FACTORY_SECRET"].encode()
        stream.write(with_length(b"ok" if right else b"err"))
        stream.flush()
    if not right:
        os._exit(1)


def _run_tasks(control: socket.socket) -> None:
    while True:
        told, connections, _, _ = socket.recv_fds(control, 65536, 1)
        while told and not told.endswith(b"\n"):
            more = control.recv(65536)
            told = told + more if more else b""
        if not told:
            return
        with socket.socket(fileno=connections[0]) as channel:
            channel.set_inheritable(False)
            _have_broadcasts(json.loads(told))
            failed = run_task(channel, True)
            if failed or not os.environ.get("SPARK_REUSE_WORKER"):
                # What Spark still writes must not meet a closed connection.
                with suppress(OSError):
                    while channel.recv(1024):
                        pass
                return
        _say(control, _broadcasts())
        gc.collect()


def _say(control: socket.socket, broadcasts: Broadcasts | None) -> None:
    control.sendall(json.dumps(broadcasts).encode() + b"\n")


def _have_broadcasts(of_connection: Broadcasts | None) -> None:
    """Keep the broadcasts that Spark believes to be here, and no others. Values that are loaded stay so."""
    if of_connection is None:
        return
    loaded = dict(_broadcastRegistry)
    _broadcastRegistry.clear()
    for number, path in of_connection.items():
        known = loaded.get(int(number))
        _broadcastRegistry[int(number)] = known if known is not None else Broadcast(path=path)


def _broadcasts() -> Broadcasts | None:
    paths = {str(number): getattr(broadcast, "_path", None) for number, broadcast in _broadcastRegistry.items()}
    return None if None in paths.values() else {number: path for number, path in paths.items() if path is not None}


def with_length(text: bytes) -> bytes:
    return INT.pack(len(text)) + text


def unix_sockets() -> bool:
    return os.environ.get("PYTHON_UNIX_DOMAIN_ENABLED", "false").lower() == "true"
