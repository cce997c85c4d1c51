"""A snapshot that a job starts from and owns from then on: it is deleted when the job's own checkpoints have taken its
place.
"""

from __future__ import annotations

import logging
import time

from holdfast.checkpoint.job_directory import JobDirectory
from holdfast.checkpoint.savepoint import dispose_savepoint
from holdfast.checkpoint.shared_files import referenced_files
from holdfast.checkpoint.storage import FileCheckpointStorage, open_snapshot, split_checkpoint_path
from holdfast.errors import HoldfastError, JobLockedError
from holdfast.state.snapshot_files import METADATA_FILE
from holdfast.storage.filesystem import Storage

_log = logging.getLogger(__name__)

#: To find that the snapshot's own job still has a driver takes up to a heartbeat of that.
_NEXT_LOOK_SECONDS = 60.0


class SnapshotClaim:
    """At most one claim of a job, kept in its directory, so that a driver that takes over keeps to it."""

    def __init__(self, directory: JobDirectory | None) -> None:
        self._directory = directory
        self._path = directory.claimed_snapshot() if directory is not None else None
        self._not_before = 0.0

    def take(self, path: str) -> None:
        """From now on the snapshot is the job's."""
        if self._directory is not None:
            self._directory.record_claim(path)
        self._path = path

    def settle(self) -> None:
        """Delete the snapshot: nothing of the job needs it any more. What fails is tried again, the next time or, while
        another driver has the job of the snapshot, after a while; one that is gone, perhaps by a driver that died right
        behind that, needs nothing more.
        """
        if self._path is None or time.monotonic() < self._not_before:
            return
        try:
            _dispose(self._path)
            if self._directory is not None:
                self._directory.record_claim(None)
        except HoldfastError as error:
            if isinstance(error, JobLockedError):
                self._not_before = time.monotonic() + _NEXT_LOOK_SECONDS
            _log.warning("The claimed snapshot %s could not be deleted: %s", self._path, error)
            return
        _log.info("The claimed snapshot %s is deleted: checkpoints of this job have taken its place", self._path)
        self._path = None


def _dispose(path: str) -> None:
    if not Storage.for_uri(path.rstrip("/").removesuffix(f"/{METADATA_FILE}")).exists(METADATA_FILE):
        return
    metadata, _ = open_snapshot(path)
    if metadata.checkpoint_type.is_savepoint:
        dispose_savepoint(path)
        return
    base, job_id = split_checkpoint_path(path)
    # While another driver runs that job, its checkpoints may build on this one.
    with JobDirectory(base, job_id):
        storage = FileCheckpointStorage(base, job_id)
        others = [number for number in storage.completed_ids() if number != metadata.checkpoint_id]
        needed = {file for other in others for file in referenced_files(storage.read_metadata(other))}
        storage.discard(metadata.checkpoint_id)
        storage.delete_paths(referenced_files(metadata) - needed)
