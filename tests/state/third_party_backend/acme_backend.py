"""A state backend as another package would offer it: heap stores that count how often they are opened."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.state.heap.store import HeapStore
from holdfast.state.store import LocalStore, StateBackend


class AcmeBackend(StateBackend):
    name = "acme"
    cache_limit = 7

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.greeting = options.get("acme.greeting", "hello")
        self.opened = 0

    def open(self, directory: Path) -> LocalStore:
        self.opened += 1
        return HeapStore(directory)


def not_a_backend(options: Mapping[str, Any]) -> str:
    return "just text"
