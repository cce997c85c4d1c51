"""HTTP of the job server, with a limit on how long a request may take to arrive."""

from __future__ import annotations

import asyncio
from typing import ClassVar

import h11
import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol

from holdfast.server.admission import CONNECTION
from holdfast.server.gate import Gate
from holdfast.server.models_cluster import ErrorMessage

_ARRIVING = frozenset({h11.IDLE, h11.SEND_BODY})


class GuardedProtocol(H11Protocol):
    """One connection. The head of a request has ``seconds`` from when the connection was made, or from the answer
    before it; its body has as many from its head on. Then the connection is closed, whatever trickles in."""

    gate: ClassVar[Gate]
    seconds: ClassVar[float]

    _phase: tuple[object, object] | None = None
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # a server has no other transport
        super().connection_made(transport)
        connection = self.gate.connection(transport.get_extra_info("socket").fileno())
        self.app_state = {**self.app_state, CONNECTION: connection}
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_watching()

    def _watch(self) -> None:
        """Each part of a request has its own deadline, which what arrives of it does not move."""
        phase = (self.conn.their_state, self.cycle)
        if phase == self._phase:
            return
        self._phase = phase
        self._stop_watching()
        if self.conn.their_state in _ARRIVING and not self.transport.is_closing():
            self._deadline = self.loop.call_later(self.seconds, self._give_up)

    def _stop_watching(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        # A connection over which nothing has come is not owed an answer, nor is a request that has got one.
        head_begun = self.conn.our_state is h11.IDLE and self.conn.trailing_data[0]
        if head_begun or self.conn.our_state is h11.SEND_RESPONSE:
            self._send_timeout()
        self.transport.close()

    def _send_timeout(self) -> None:
        text = f"The request did not arrive within {self.seconds:g} s, which 'holdfast.rest.request-timeout' allows"
        body = msgspec.json.encode(ErrorMessage([text]))
        headers = [
            ("content-type", "application/json"),
            ("content-length", str(len(body))),
            ("connection", "close"),
        ]
        for event in (
            h11.Response(status_code=408, headers=headers, reason=b"Request Timeout"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")


def guarded_protocol(gate: Gate, seconds: float) -> type[GuardedProtocol]:
    """The protocol class of one server, as uvicorn wants it: it makes instances itself."""
    return type("GuardedProtocolOfServer", (GuardedProtocol,), {"gate": gate, "seconds": seconds})
