"""Talks to the job server of a driver."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.parse import quote

from holdfast.cli.errors import CommandError
from holdfast.server.identity import DRIVER_HEADER

_TIMEOUT_SECONDS = 60.0
#: Of a host that does not answer at all, it shall not take a minute to tell so.
_GREETING_SECONDS = 10.0


@dataclass(frozen=True)
class RestClient:
    """``token`` None: the server needs none. ``authority`` is a file of certificates that vouch for it, and
    ``certificates`` are such certificates (PEM)."""

    url: str
    token: str | None = None
    authority: str | None = None
    certificates: str | None = None

    def get(self, path: str) -> Any:
        return self._send("GET", path)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self._send("POST", path, body)

    def put(self, path: str, body: dict[str, Any]) -> Any:
        return self._send("PUT", path, body)

    def patch(self, path: str) -> Any:
        return self._send("PATCH", path)

    def driver_name(self) -> str | None:
        """How the driver behind the address names itself; None for a server of something else. No token is sent."""
        try:
            request = urllib.request.Request(f"{self.url}/", method="HEAD")
            with self._opener().open(request, timeout=_GREETING_SECONDS) as response:
                name: str | None = response.headers.get(DRIVER_HEADER)
        except urllib.error.HTTPError as error:
            name = error.headers.get(DRIVER_HEADER)
        except (OSError, ValueError, HTTPException) as error:
            raise self._no_answer(error) from None
        return name

    def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data, method=method)
        if data is not None:
            request.add_header("Content-Type", "application/json")
        if self.token is not None:
            request.add_header("Authorization", f"Bearer {self.token}")
        try:
            with self._opener().open(request, timeout=_TIMEOUT_SECONDS) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            raise CommandError(f"The job server refused {method} {path} ({error.code}): {_said(error)}") from None
        except (OSError, ValueError, HTTPException) as error:
            raise self._no_answer(error) from None

    def _opener(self) -> urllib.request.OpenerDirector:
        # A proxy that the environment names is for other hosts: the token is for this server alone.
        handlers: list[Any] = [urllib.request.ProxyHandler({})]
        if self.url.startswith("https:"):
            context = ssl.create_default_context(cafile=self.authority)
            if self.certificates is not None:
                context.load_verify_locations(cadata=self.certificates)
            handlers.append(urllib.request.HTTPSHandler(context=context))
        return urllib.request.build_opener(*handlers)

    def _no_answer(self, error: Exception) -> CommandError:
        return CommandError(f"The job server at {self.url} does not answer: {error}")


def server_url(address: str) -> str:
    """The URL of a server at HOST:PORT, or of what is a URL already."""
    return (address if "://" in address else f"http://{address}").rstrip("/")


def job_path(job_id: str, rest: str = "") -> str:
    return f"/jobs/{quote(job_id, safe='')}{rest}"


def _said(error: urllib.error.HTTPError) -> str:
    text = error.read().decode(errors="replace")
    try:
        return "; ".join(json.loads(text)["errors"])
    except (ValueError, KeyError, TypeError):
        return text or error.reason
