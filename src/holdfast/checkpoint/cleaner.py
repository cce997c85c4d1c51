"""Deletes snapshot files that nothing needs any more."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from holdfast.checkpoint.shared_files import left_by_earlier_attempts
from holdfast.checkpoint.storage import CheckpointStorage


class SnapshotFileCleaner:
    """Takes files that were let go of and deletes each once nothing needs it; what fails is tried again."""

    def __init__(self, storage: CheckpointStorage) -> None:
        self._storage = storage
        self._released: set[str] = set()

    def release(self, paths: Iterable[str]) -> None:
        self._released.update(paths)

    def clean(self, needed: Collection[str]) -> None:
        """Delete what was released and is not in ``needed``. Call it only after the change of the store is durable."""
        deletable = self._released.difference(needed)
        self._released -= deletable
        self._released |= self._storage.delete_paths(sorted(deletable))

    def sweep(self, needed: Collection[str], running_attempt: int) -> None:
        """Delete what attempts before the running one left behind."""
        paths = self._storage.snapshot_paths()
        self._storage.delete_paths(sorted(left_by_earlier_attempts(paths, needed, running_attempt)))
