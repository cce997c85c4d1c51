"""The daemon of Python workers with tasks of a single letter in the place of Spark's.

A task begins as Spark's do. Its letter is answered with the process that runs it, and then

``p`` the task is done; ``w`` it goes on until another byte comes, and says so; ``x`` its process ends; ``f`` it has
failed; ``v`` it has got a broadcast variable in a file, with the number of its partition, ``e`` an encrypted one, ``d``
it has none any more, ``n`` it answers how many it has.
"""

from __future__ import annotations

import os
import pickle
import socket
import struct
import tempfile
from typing import Any

from pyspark import Broadcast

from holdfast.spark.internals import worker_daemon, worker_process
from holdfast.spark.internals.worker_process import _broadcastRegistry

#: Of its first message, in Sparks whose tasks begin with one.
INIT_MESSAGE = -8


def task_head(partition: int) -> bytes:
    """How a task of this Spark begins."""
    numbers = (INIT_MESSAGE, 5, partition)
    return worker_daemon._TASK_HEAD.pack(*numbers[-(worker_daemon._TASK_HEAD.size // 4) :])


def run_task(channel: socket.socket, authenticated: bool) -> int:
    assert authenticated
    with channel.makefile("rwb") as stream:
        head = stream.read(worker_daemon._TASK_HEAD.size)
        if not head:
            return 0
        partition = worker_daemon._TASK_HEAD.unpack(head)[-1]
        letter = stream.read(1)
        stream.write(struct.pack("!i", os.getpid()))
        stream.flush()
        if letter == b"v":
            _broadcastRegistry[partition] = Broadcast(path=f"file of {partition}")
        if letter == b"e":
            with tempfile.TemporaryFile() as file:
                pickle.dump("secret", file)
                file.seek(0)
                _broadcastRegistry[partition] = Broadcast(sock_file=file)
        if letter == b"d":
            _broadcastRegistry.clear()
        if letter == b"n":
            stream.write(struct.pack("!i", len(_broadcastRegistry)))
            stream.flush()
        if letter == b"w":
            stream.read(1)
            stream.write(b"!")
        if letter == b"x":
            os._exit(1)
    return int(letter == b"f")


if __name__ == "__main__":
    replaced: Any = worker_process
    replaced.run_task = run_task
    replaced = worker_daemon
    # Their processes need nothing of it.
    replaced.preload = lambda: None
    replaced._PATIENCE, replaced._YOUNG = float(os.environ["PATIENCE"]), 0.0
    worker_daemon.main()
