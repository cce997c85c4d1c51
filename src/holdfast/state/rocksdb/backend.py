"""State beyond memory: one RocksDB database per (operator, subtask) on the host's disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.state.rocksdb.engine import load_engine
from holdfast.state.rocksdb.options import RocksDbOptions
from holdfast.state.rocksdb.store import RocksDbStore
from holdfast.state.store import StateBackend


@dataclass(frozen=True)
class RocksDbBackend(StateBackend):
    """State on the executor's disk, in a log-structured tree, within a fixed budget of memory."""

    settings: RocksDbOptions = field(default_factory=RocksDbOptions)

    name = "rocksdb"

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> RocksDbBackend:
        """The entry point. Raises where RocksDB is not installed."""
        load_engine()
        return cls(RocksDbOptions.from_mapping(options))

    @property
    def cache_limit(self) -> int | None:  # type: ignore[override]
        return self.settings.cache_limit

    def open(self, directory: Path) -> RocksDbStore:
        return RocksDbStore(directory, self.settings)

    def options(self) -> dict[str, Any]:
        return self.settings.as_mapping()
