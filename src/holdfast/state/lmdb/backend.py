"""The default backend: one LMDB environment per (operator, subtask) on the host's disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.state.handles import NativeImage
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.lmdb import take_over
from holdfast.state.lmdb.image import ENGINE
from holdfast.state.lmdb.options import LmdbOptions
from holdfast.state.lmdb.restore import entries_of
from holdfast.state.lmdb.snapshot import IMAGES_FROM_BYTES
from holdfast.state.lmdb.store import LmdbStore
from holdfast.state.snapshot_io import SnapshotReader
from holdfast.state.store import Capabilities, Stamp, StateBackend


@dataclass(frozen=True)
class LmdbBackend(StateBackend):
    """State on the executor's disk, through the page cache. Changes of an epoch become visible in one commit."""

    settings: LmdbOptions = field(default_factory=LmdbOptions)
    #: The size of a store from which its full snapshots are images of its file.
    images_from: int = IMAGES_FROM_BYTES

    name = ENGINE
    capabilities = Capabilities(native_images=True, several_processes=True, bounded_memory=True)

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> LmdbBackend:
        """The entry point."""
        return cls(LmdbOptions.from_mapping(options))

    @property
    def cache_limit(self) -> int | None:  # type: ignore[override]  # read only here
        return self.settings.cache_limit

    def open(self, directory: Path) -> LmdbStore:
        return LmdbStore(directory, self.settings, self.images_from)

    def copy(self, source: Path, target: Path, stamp: Stamp) -> bool:
        return take_over.copy(source, target)

    def native_entries(
        self, image: NativeImage, reader: SnapshotReader, key_groups: KeyGroupRange, scratch: Path | None
    ) -> Iterator[tuple[bytes, bytes]]:
        return entries_of(image, reader, key_groups, scratch)

    def options(self) -> dict[str, Any]:
        return dict(self.settings.as_mapping())
