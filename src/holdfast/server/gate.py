"""The door of the job server: a listening socket that keeps the number of open connections within bounds.

Connections are counted from the moment the kernel hands them over, so that one that never begins, or never ends, its
TLS handshake counts too.
"""

from __future__ import annotations

import resource
import socket
from contextlib import suppress
from typing import Any

from holdfast.server.admission import Admission, Connection, ConnectionLimits

#: Accepted in one turn of the event loop. A request with a token is read two turns later: far fewer connections must
#: come meanwhile than an address may have, or it would be crowded out before it is seen.
_PER_TURN = 8
#: The part of the process's file descriptors that connections leave to the job.
_RESERVED = 0.25


class AdmittedSocket(socket.socket):
    """A connection that stays counted until it is closed."""

    def __init__(self, accepted: socket.socket, connection: Connection, gate: Gate) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, accepted.detach())
        self.connection = connection
        self._gate = gate

    def end(self) -> None:
        """Whoever reads from it or writes to it finds that it has ended, and closes it."""
        with suppress(OSError):
            self.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._gate.left(self)
        super().close()


class Gate(socket.socket):
    """Takes over a socket that listens. Event loops call ``accept`` until it would block."""

    def __init__(self, listening: socket.socket, limits: ConnectionLimits) -> None:
        super().__init__(listening.family, listening.type, listening.proto, listening.detach())
        self._admission = Admission(limits)
        self._inside: dict[int, AdmittedSocket] = {}
        self._this_turn = 0

    def connection(self, descriptor: int) -> Connection:
        return self._inside[descriptor].connection

    def left(self, admitted: AdmittedSocket) -> None:
        self._admission.forget(admitted.connection)
        if self._inside.get(admitted.fileno()) is admitted:
            del self._inside[admitted.fileno()]

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection that may stay. BlockingIOError when there is none, or when other work is to be done
        before the next one is taken."""
        while self._this_turn < _PER_TURN:
            self._this_turn += 1
            try:
                accepted, address = super().accept()
            except OSError:
                self._this_turn = 0
                raise
            admitted = AdmittedSocket(accepted, Connection(str(address[0])), self)
            if self._enter(admitted):
                return admitted, address
        self._this_turn = 0
        raise BlockingIOError("Enough connections were accepted in this turn of the event loop")

    def _enter(self, admitted: AdmittedSocket) -> bool:
        """Whether it may stay."""
        self._inside[admitted.fileno()] = admitted
        gone = self._admission.admit(admitted.connection, _short_of_descriptors(admitted.fileno()))
        for other in list(self._inside.values()):
            if other.connection in gone and other is not admitted:
                other.end()
        if admitted.connection in gone:
            admitted.close()
        return admitted.connection not in gone


def _short_of_descriptors(newest: int) -> bool:
    """A new descriptor has the lowest free number: as many as that are open."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return limit != resource.RLIM_INFINITY and newest >= limit * (1 - _RESERVED)
