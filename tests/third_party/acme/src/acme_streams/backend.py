"""A state backend on SQLite: one database per (operator, subtask)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acme_streams.images import entries_of
from acme_streams.store import AcmeStore
from holdfast.errors import ConfigurationError
from holdfast.state.handles import NativeImage
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.snapshot_io import SnapshotReader
from holdfast.state.store import Capabilities, StateBackend

CACHE_LIMIT = "state.backend.acme.cache-limit"


@dataclass(frozen=True)
class AcmeBackend(StateBackend):
    cache_limit: int = 10_000

    name = "acme"
    capabilities = Capabilities(native_images=True, several_processes=True, bounded_memory=True)

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> AcmeBackend:
        """The entry point."""
        value = options.get(CACHE_LIMIT, cls.cache_limit)
        try:
            return cls(int(value))
        except ValueError as error:
            raise ConfigurationError(f"{CACHE_LIMIT} is {value!r}; give a number of entries.") from error

    def open(self, directory: Path) -> AcmeStore:
        return AcmeStore(directory)

    def native_entries(
        self, image: NativeImage, reader: SnapshotReader, key_groups: KeyGroupRange, scratch: Path | None
    ) -> Iterator[tuple[bytes, bytes]]:
        return entries_of(image, reader, key_groups, scratch)

    def options(self) -> dict[str, Any]:
        return {CACHE_LIMIT: self.cache_limit}
