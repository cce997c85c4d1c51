"""The heap backend: state in the worker's memory, for state that is small beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.state.heap.files import link_files
from holdfast.state.heap.store import HeapStore
from holdfast.state.store import Capabilities, Stamp, StateBackend


@dataclass(frozen=True)
class HeapBackend(StateBackend):
    """State in memory, logged on the host. It has no options, and its live objects stay between epochs."""

    name = "heap"
    capabilities = Capabilities(several_processes=True)
    cache_limit = None

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> HeapBackend:
        """The entry point."""
        del options
        return cls()

    def open(self, directory: Path) -> HeapStore:
        return HeapStore(directory)

    def copy(self, source: Path, target: Path, stamp: Stamp) -> bool:
        return link_files(source, target)
