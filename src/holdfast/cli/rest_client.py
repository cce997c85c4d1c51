"""Talks to the job server of a driver."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from holdfast.cli.errors import CommandError

_TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True)
class RestClient:
    """``token`` None: the server needs none. ``authority`` is a file of certificates that vouch for it."""

    url: str
    token: str | None = None
    authority: str | None = None

    def get(self, path: str) -> Any:
        return self._send("GET", path)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self._send("POST", path, body)

    def patch(self, path: str) -> Any:
        return self._send("PATCH", path)

    def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data, method=method)
        if data is not None:
            request.add_header("Content-Type", "application/json")
        if self.token is not None:
            request.add_header("Authorization", f"Bearer {self.token}")
        context = ssl.create_default_context(cafile=self.authority) if self.url.startswith("https:") else None
        # A proxy that the environment names is for other hosts: the token is for this server alone.
        handlers: list[Any] = [urllib.request.ProxyHandler({})]
        if context is not None:
            handlers.append(urllib.request.HTTPSHandler(context=context))
        try:
            with urllib.request.build_opener(*handlers).open(request, timeout=_TIMEOUT_SECONDS) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            raise CommandError(f"The job server refused {method} {path} ({error.code}): {_said(error)}") from None
        except (OSError, ValueError) as error:
            raise CommandError(f"The job server at {self.url} does not answer: {error}") from None


def job_path(job_id: str, rest: str = "") -> str:
    return f"/jobs/{quote(job_id, safe='')}{rest}"


def _said(error: urllib.error.HTTPError) -> str:
    text = error.read().decode(errors="replace")
    try:
        return "; ".join(json.loads(text)["errors"])
    except (ValueError, KeyError, TypeError):
        return text or error.reason
