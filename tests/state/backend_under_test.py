"""A keyed state backend for tests, driven epoch by epoch in one process, by the name of its store."""

from __future__ import annotations

from pathlib import Path

from holdfast.state.keyed_backend import KeyedScope
from holdfast.testing import ManualClock
from holdfast.testing.contracts.keyed_subtask import KeyedSubtask
from tests.state.stores import forget_process_caches, make_backend


class Subtask(KeyedSubtask):
    def __init__(
        self,
        name: str,
        directory: Path,
        scope: KeyedScope | None = None,
        cache_limit: int | None = None,
        clock: ManualClock | None = None,
    ):
        super().__init__(make_backend(name), directory, scope, cache_limit, clock, forget_process_caches)
        self.name = name
