"""The place of one savepoint: a folder of its own that holds everything, so that it can be copied anywhere."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import msgspec

from holdfast.checkpoint.metadata_format import METADATA_FILE, encode_metadata
from holdfast.errors import CheckpointError, StorageError
from holdfast.state.handles import CheckpointMetadata
from holdfast.state.snapshot_files import FileSnapshotReader, FileSnapshotWriter
from holdfast.storage.filesystem import Storage

#: Metadata property: the paths of files are relative to the folder of ``_metadata``.
RELOCATABLE = "relocatable"
_IN_PROGRESS = "_in_progress"


@dataclass(frozen=True)
class SavepointLocation:
    """``<target>/savepoint-<start of the job id>-<random>``. Used on the driver; its writers travel to tasks."""

    path: str

    @staticmethod
    def create(target: str, job_id: str) -> SavepointLocation:
        """A new folder below ``target``; StorageError when it cannot be made."""
        storage = Storage.for_uri(target).child(f"savepoint-{job_id[:6]}-{secrets.token_hex(6)}")
        # Whether it can be written to is found out before an epoch is run for it.
        storage.write_atomic(_IN_PROGRESS, f"a savepoint of job {job_id}\n".encode())
        return SavepointLocation(storage.uri)

    def writer(self, checkpoint_id: int, attempt: int) -> FileSnapshotWriter:
        return FileSnapshotWriter(self.path, checkpoint_id, attempt)

    def reader(self) -> FileSnapshotReader:
        return FileSnapshotReader(self.path)

    def write_metadata(self, metadata: CheckpointMetadata) -> str:
        """Make the savepoint visible, durably and at once, and give its location. After an error it is not visible."""
        storage = Storage.for_uri(self.path)
        marked = msgspec.structs.replace(metadata, properties={**metadata.properties, RELOCATABLE: True})
        if not storage.create_exclusive(METADATA_FILE, encode_metadata(marked)):
            raise StorageError(f"{storage.location(METADATA_FILE)} exists already: somebody else writes this savepoint")
        storage.delete(_IN_PROGRESS)
        return self.path

    def discard(self) -> None:
        """Remove what was written for a savepoint that failed."""
        storage = Storage.for_uri(self.path)
        if storage.exists(METADATA_FILE):
            raise CheckpointError(f"the savepoint {self.path} is complete; it is not discarded")
        storage.delete_dir("")
