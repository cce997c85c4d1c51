"""State beyond memory: one RocksDB database per (operator, subtask) on the host's disk."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.errors import StateError
from holdfast.state.handles import NativeImage
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.rocksdb.images import ENGINE, LocalImages
from holdfast.state.rocksdb.library import load_engine
from holdfast.state.rocksdb.options import RocksDbOptions
from holdfast.state.rocksdb.restore import entries_of
from holdfast.state.rocksdb.store import RocksDbStore
from holdfast.state.snapshot_io import SnapshotReader
from holdfast.state.store import Capabilities, Stamp, StateBackend


@dataclass(frozen=True)
class RocksDbBackend(StateBackend):
    """State on the executor's disk, in a log-structured tree, within a fixed budget of memory."""

    settings: RocksDbOptions = field(default_factory=RocksDbOptions)

    name = ENGINE
    capabilities = Capabilities(native_images=True, bounded_memory=True)

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> RocksDbBackend:
        """The entry point. Raises where RocksDB is not installed."""
        load_engine()
        return cls(RocksDbOptions.from_mapping(options))

    @property
    def cache_limit(self) -> int | None:  # type: ignore[override]  # read only here
        return self.settings.cache_limit

    def open(self, directory: Path) -> RocksDbStore:
        return RocksDbStore(directory, self.settings)

    def copy(self, source: Path, target: Path, stamp: Stamp) -> bool:
        """From the image that the store keeps of its newest completed checkpoint."""
        image = LocalImages(source).at(stamp)
        if image is None or not image.check():
            return False
        store = self.open(target)
        try:
            store.adopt(image, stamp)
        except (OSError, StateError):
            # Its owner has just let go of it: the checkpoint has it.
            shutil.rmtree(target, ignore_errors=True)
            return False
        finally:
            store.close()
        return True

    def native_entries(
        self, image: NativeImage, reader: SnapshotReader, key_groups: KeyGroupRange, scratch: Path | None
    ) -> Iterator[tuple[bytes, bytes]]:
        return entries_of(image, reader, key_groups, scratch)

    def options(self) -> dict[str, Any]:
        return self.settings.as_mapping()
