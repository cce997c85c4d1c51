"""A process that floods a server with connections and holds them: ``python -m tests.server.flood PORT NUMBER KIND``.

It says ``ready`` when all are made, goes on sending where its kind does, and ends with its standard input.
"""

from __future__ import annotations

import resource
import selectors
import socket
import sys
import time
from contextlib import suppress

#: What each connection sends at once, and again and again.
KINDS = {
    "idle": (b"", b""),
    "slow-head": (b"POST /jobs HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"x-more: y\r\n"),
    "slow-body": (b"POST /jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\n", b"x"),
    "page": (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b""),
}


def main(port: int, number: int, kind: str) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    first, again = KINDS[kind]
    connections = [_connect(port, first) for _ in range(number)]
    print("ready", flush=True)
    ended = selectors.DefaultSelector()
    ended.register(sys.stdin, selectors.EVENT_READ)
    while not ended.select(timeout=0.2):
        for connection in connections if again else ():
            with suppress(OSError):
                connection.send(again)


def _connect(port: int, first: bytes) -> socket.socket:
    """A server that accepts nobody for a while is asked again."""
    end = time.monotonic() + 60
    while True:
        try:
            connection = socket.create_connection(("127.0.0.1", port), timeout=10)
            break
        except OSError:
            if time.monotonic() > end:
                raise
    with suppress(OSError):
        connection.sendall(first)
    return connection


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
