"""Waits for an operation that was started through REST."""

from __future__ import annotations

import time
from typing import Any

from holdfast.cli.errors import CommandError
from holdfast.cli.rest_client import RestClient

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0


def await_operation(client: RestClient, path: str, what: str) -> dict[str, Any]:
    """What the operation gave. CommandError, with the reason, when it failed."""
    pause = _FIRST_PAUSE
    while True:
        answer = client.get(path)
        if answer["status"]["id"] == "COMPLETED":
            operation: dict[str, Any] = answer["operation"] or {}
            cause = operation.get("failure-cause") or operation.get("failureCause")
            if cause is not None:
                raise CommandError(f"{what} failed.\n{cause['stack-trace'].rstrip()}")
            return operation
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
