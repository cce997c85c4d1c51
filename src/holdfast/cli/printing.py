"""What commands print: Flink's lines for people, or one JSON document for scripts."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console

WAITING = "Waiting for response..."


class Output:
    """What a command prints; with ``as_json`` lines for people are left out."""

    def __init__(self, as_json: bool = False) -> None:
        self.as_json = as_json

    def line(self, text: str) -> None:
        if not self.as_json:
            print(text, flush=True)

    def document(self, content: Any) -> None:
        if self.as_json:
            print(json.dumps(content, indent=2), flush=True)

    @contextmanager
    def progress(self, text: str) -> Iterator[None]:
        """Something moves on a terminal while the block runs; elsewhere nothing is printed."""
        if self.as_json or not sys.stderr.isatty():
            yield
            return
        with Console(stderr=True).status(text):
            yield
