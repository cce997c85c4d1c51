"""The daemon of Python workers with tasks of a single letter in the place of Spark's.

A task begins as Spark's do. Its letter is answered with the process that runs it, and then

``p`` the task is done; ``w`` it goes on until another byte comes; ``x`` its process ends; ``f`` it has failed.
"""

from __future__ import annotations

import os
import socket
import struct
from typing import Any

import holdfast.spark.worker_daemon as daemon


def run_task(channel: socket.socket, authenticated: bool) -> int:
    assert authenticated
    with channel.makefile("rwb") as stream:
        if not stream.read(12):
            return 0
        letter = stream.read(1)
        stream.write(struct.pack("!i", os.getpid()))
        stream.flush()
        if letter == b"w":
            stream.read(1)
        if letter == b"x":
            os._exit(1)
    return int(letter == b"f")


if __name__ == "__main__":
    replaced: Any = daemon
    replaced.run_task = run_task
    replaced._PATIENCE = float(os.environ["PATIENCE"])
    daemon.main()
