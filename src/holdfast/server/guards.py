"""What stands before every request: its host and origin, its token, and the length of its body.

Plain ASGI, so that a body is not read before all of them agree.
"""

from __future__ import annotations

import base64
import binascii
from contextlib import suppress
from urllib.parse import urlsplit

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.server.access_tokens import AccessTokens
from holdfast.server.admission import CONNECTION
from holdfast.server.identity import DRIVER_HEADER
from holdfast.server.models_cluster import ErrorMessage
from holdfast.server.settings import ListenSettings

_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


async def refuse(send: Send, status: int, message: str, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
    body = msgspec.json.encode(ErrorMessage([message]))
    length = (b"content-length", str(len(body)).encode())
    kind = (b"content-type", b"application/json")
    await send({"type": "http.response.start", "status": status, "headers": [kind, length, *headers]})
    await send({"type": "http.response.body", "body": body})


class HostGuard:
    """Checks what a request calls the server. On loopback that must be a name of this host: a web site that lets its
    own name point here is refused. Nor may a page of another site send requests.
    """

    def __init__(self, app: ASGIApp, listen: ListenSettings) -> None:
        self._app = app
        named = {listen.address.lower(), listen.advertised.lower(), *(host.lower() for host in listen.allowed_hosts)}
        self._names = frozenset(named | _LOOPBACK_NAMES) if listen.loopback or listen.allowed_hosts else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = _headers(scope)
        host = headers.get(b"host", b"").decode("latin-1")
        if self._names is not None and _host_name(host) not in self._names:
            text = f"The host name '{_host_name(host)}' is not one of this server. Call it by its address, or add the "
            await refuse(send, 421, text + "name to 'holdfast.rest.allowed-hosts'")
            return
        origin = headers.get(b"origin")
        if origin is not None and _authority(origin.decode("latin-1")) != host.lower():
            await refuse(send, 403, "The request comes from a page of another site")
            return
        await self._app(scope, receive, send)


class DriverName:
    """Every answer, a refusal too, names the driver: whoever looks for it knows that it is this one before he sends a
    token."""

    def __init__(self, app: ASGIApp, driver: str) -> None:
        self._app = app
        self._header = (DRIVER_HEADER.encode(), driver.encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), self._header]}
            await send(message)

        await self._app(scope, receive, send_named)


class TokenGuard:
    """``open_paths`` need no token. A connection over which an allowed request came is trusted from then on."""

    def __init__(self, app: ASGIApp, tokens: AccessTokens, open_paths: frozenset[str]) -> None:
        self._app = app
        self._tokens = tokens
        self._open_paths = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in self._open_paths:
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await refuse(send, 401, refusal, ((b"www-authenticate", b'Bearer realm="holdfast"'),))
            return
        scope["state"][CONNECTION].trusted = True
        await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> str | None:
        """Why the request is refused; None where it is allowed."""
        if not self._tokens.needed:
            return None
        given = _credential(_headers(scope).get(b"authorization", b""))
        if given is None:
            message = "The request has no token. Send 'Authorization: Bearer TOKEN', or the token as the password of "
            return message + "basic authentication; it is in the file that 'rest.auth.token-file' names"
        return None if self._tokens.allow(given, scope["path"]) else "The token is wrong"


class BodyGuard:
    """Answers at once when a body is announced, or turns out, to be longer than ``limit``; it is not kept. What the
    application gets has been read to its end."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = _headers(scope).get(b"content-length", b"0")
        body = await self._read(receive) if announced.isdigit() and int(announced) <= self._limit else None
        if body is None:
            text = f"The body is longer than {self._limit} bytes, which 'rest.server.max-content-length' allows"
            await refuse(send, 413, text)
            return
        await self._app(scope, _replay(body, receive), send)

    async def _read(self, receive: Receive) -> list[Message] | None:
        """All messages of the body; None as soon as they are too long."""
        messages: list[Message] = []
        length = 0
        while not messages or messages[-1].get("more_body", False):
            messages.append(await receive())
            length += len(messages[-1].get("body", b""))
            if length > self._limit:
                return None
        return messages


def _replay(messages: list[Message], receive: Receive) -> Receive:
    waiting = iter(messages)

    async def replayed() -> Message:
        message = next(waiting, None)
        return message if message is not None else await receive()

    return replayed


def _headers(scope: Scope) -> dict[bytes, bytes]:
    return dict(scope["headers"])


def _host_name(host: str) -> str:
    """The name of a host, without the port."""
    return (urlsplit(f"//{host}").hostname or "").lower() if _is_authority(host) else host


def _is_authority(host: str) -> bool:
    try:
        return urlsplit(f"//{host}").hostname is not None
    except ValueError:
        return False


def _authority(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _credential(header: bytes) -> bytes | None:
    """The bearer token, or the password of basic authentication; None where there is neither."""
    scheme, _, rest = header.partition(b" ")
    if scheme.lower() == b"bearer":
        return rest.strip() or None
    if scheme.lower() == b"basic":
        with suppress(binascii.Error, ValueError):
            return base64.b64decode(rest.strip(), validate=True).partition(b":")[2] or None
    return None


