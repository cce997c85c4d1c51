"""Where the checkpoints of a job are kept: files under one URI, or the driver's memory."""

from __future__ import annotations

import errno
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from holdfast.checkpoint.metadata_format import decode_metadata, encode_metadata
from holdfast.checkpoint.shared_files import FileOrigin, metadata_handles, origin_of
from holdfast.errors import CheckpointError, CorruptFileError, StorageError
from holdfast.failpoints import failpoint
from holdfast.state.handles import CheckpointMetadata
from holdfast.state.snapshot_files import (
    DEFAULT_INLINE_THRESHOLD,
    DEFAULT_MEMORY_LIMIT,
    METADATA_FILE,
    SHARED_FOLDER,
    FileSnapshotReader,
    FileSnapshotWriter,
    InlineSnapshotReader,
    MemorySnapshotWriter,
    checkpoint_folder,
)
from holdfast.state.snapshot_io import SnapshotReader, SnapshotWriter
from holdfast.storage.checksum import check_file
from holdfast.storage.filesystem import Storage, is_missing

_log = logging.getLogger(__name__)
_FOLDER = re.compile(r"chk-([0-9]+)")
_COMMITTING = "_committing"
_COMMITTED = "_committed"
_VERIFY_THREADS = 4


class CheckpointStorage(ABC):
    """The place where checkpoints are kept. Used on the driver; its writers and readers travel to tasks."""

    @abstractmethod
    def writer(self, checkpoint_id: int, attempt: int) -> SnapshotWriter: ...

    @abstractmethod
    def reader(self) -> SnapshotReader: ...

    @abstractmethod
    def location(self, checkpoint_id: int) -> str:
        """Where a checkpoint is, whether or not it exists."""

    @abstractmethod
    def write_metadata(self, metadata: CheckpointMetadata) -> str:
        """Make the checkpoint visible, durably and at once, and give its location. After an error it is not visible."""

    @abstractmethod
    def discard(self, checkpoint_id: int) -> None:
        """Make the checkpoint invisible, durably, and forget its commit. Its snapshot files stay."""

    @abstractmethod
    def verify(self, metadata: CheckpointMetadata) -> None:
        """Read all that the checkpoint references; CorruptFileError for the first file that is not what was written."""

    @abstractmethod
    def mark_commit_begun(self, checkpoint_id: int) -> None:
        """Record, durably, that sinks may have published rows of this checkpoint."""

    @abstractmethod
    def mark_committed(self, checkpoint_id: int) -> None:
        """Record that all of its rows are published."""

    @abstractmethod
    def commits_begun(self) -> frozenset[int]:
        """Checkpoints whose commit has begun, also where the checkpoint itself is lost. A damaged record counts."""

    @abstractmethod
    def seen_ids(self) -> frozenset[int]:
        """Every checkpoint that left a trace here, completed or not."""

    @abstractmethod
    def snapshot_paths(self) -> list[str]:
        """Every file of every checkpoint, unfinished ones too."""

    @abstractmethod
    def paths_of(self, origin: FileOrigin) -> set[str]:
        """Snapshot files that one attempt wrote for one checkpoint."""

    @abstractmethod
    def delete_paths(self, paths: Iterable[str]) -> set[str]:
        """Delete what can be deleted and give the rest."""


class FileCheckpointStorage(CheckpointStorage):
    """``<uri>/<job id>/`` with ``chk-<n>/_metadata``, ``chk-<n>/<attempt>-...`` and ``shared/<attempt>-<n>-...``.

    A checkpoint is visible if, and only if, its ``_metadata`` exists.
    """

    def __init__(self, uri: str, job_id: str, inline_threshold: int = DEFAULT_INLINE_THRESHOLD) -> None:
        self._storage = Storage.for_uri(uri).child(job_id)
        self._inline_threshold = inline_threshold

    @property
    def directory(self) -> str:
        return self._storage.uri

    def writer(self, checkpoint_id: int, attempt: int) -> FileSnapshotWriter:
        return FileSnapshotWriter(self.directory, checkpoint_id, attempt, self._inline_threshold)

    def reader(self) -> FileSnapshotReader:
        return FileSnapshotReader(self.directory)

    def location(self, checkpoint_id: int) -> str:
        return self._storage.location(checkpoint_folder(checkpoint_id))

    def write_metadata(self, metadata: CheckpointMetadata) -> str:
        path, content = _metadata_path(metadata.checkpoint_id), encode_metadata(metadata)
        created = self._storage.create_exclusive(path, content)
        if not created and self._is_late(metadata):
            self.discard(metadata.checkpoint_id)
            created = self._storage.create_exclusive(path, content)
        if not created:
            raise StorageError(
                f"{self._storage.location(path)} exists already: another driver works in this directory. Stop one of "
                "the two, or give the jobs different ids."
            )
        return self.location(metadata.checkpoint_id)

    def _is_late(self, metadata: CheckpointMetadata) -> bool:
        """Whether a driver of an earlier attempt completed the checkpoint of this number since the attempt of
        ``metadata`` began. It does not count: numbers that were there at that time are not drawn.
        """
        number = metadata.checkpoint_id
        late = self.read_metadata(number).attempt < metadata.attempt and number not in self.commits_begun()
        if late:
            _log.warning("Checkpoint %d of an earlier attempt was completed late: it does not count", number)
        return late

    def read_metadata(self, checkpoint_id: int) -> CheckpointMetadata:
        path = _metadata_path(checkpoint_id)
        location = self._storage.location(path)
        metadata = decode_metadata(self._storage.read(path), location)
        if metadata.checkpoint_id != checkpoint_id:
            raise CorruptFileError(location, f"this is the metadata of checkpoint {metadata.checkpoint_id}")
        return metadata

    def completed_ids(self) -> list[int]:
        """Checkpoints that are visible, oldest first."""
        return sorted(number for number in self._folders() if self._storage.exists(_metadata_path(number)))

    def discard(self, checkpoint_id: int) -> None:
        # The metadata last: the record of a commit whose checkpoint cannot be found stops every later recovery.
        for name in (_COMMITTING, _COMMITTED, METADATA_FILE):
            self._storage.delete(f"{checkpoint_folder(checkpoint_id)}/{name}")
        self._delete_if_empty(checkpoint_folder(checkpoint_id))

    def verify(self, metadata: CheckpointMetadata) -> None:
        files = {handle.path: handle for handle in metadata_handles(metadata) if handle.inline is None}
        with ThreadPoolExecutor(_VERIFY_THREADS) as pool:
            checks = [
                pool.submit(check_file, self._storage, handle.path, handle.size, handle.checksum)
                for handle in files.values()
            ]
            try:
                for check in checks:
                    check.result()
            finally:
                for check in checks:
                    check.cancel()
        _verify_inline(metadata, self.reader())

    def mark_commit_begun(self, checkpoint_id: int) -> None:
        self._storage.write_atomic(
            f"{checkpoint_folder(checkpoint_id)}/{_COMMITTING}", b"the commit of the sinks began\n"
        )

    def mark_committed(self, checkpoint_id: int) -> None:
        folder = checkpoint_folder(checkpoint_id)
        self._storage.move(f"{folder}/{_COMMITTING}", f"{folder}/{_COMMITTED}")

    def commits_begun(self) -> frozenset[int]:
        return frozenset(
            number
            for number in self._folders()
            if any(self._storage.exists(f"{checkpoint_folder(number)}/{name}") for name in (_COMMITTING, _COMMITTED))
        )

    def seen_ids(self) -> frozenset[int]:
        origins = (origin_of(path) for path in self._paths_in(SHARED_FOLDER))
        return frozenset(self._folders()) | {origin.checkpoint_id for origin in origins if origin is not None}

    def snapshot_paths(self) -> list[str]:
        folders = [SHARED_FOLDER, *map(checkpoint_folder, self._folders())]
        return [path for folder in folders for path in self._paths_in(folder)]

    def paths_of(self, origin: FileOrigin) -> set[str]:
        candidates = self._paths_in(checkpoint_folder(origin.checkpoint_id)) + self._paths_in(SHARED_FOLDER)
        return {path for path in candidates if origin_of(path) == origin}

    def delete_paths(self, paths: Iterable[str]) -> set[str]:
        failed = set()
        folders = set()
        for path in paths:
            failpoint("snapshot.delete", path=path)
            try:
                self._storage.delete(path)
                folders.add(path.rpartition("/")[0])
            except StorageError as error:
                _log.warning("A file that no checkpoint needs could not be deleted: %s", error)
                failed.add(path)
        for folder in folders:
            self._delete_if_empty(folder)
        return failed

    def _delete_if_empty(self, folder: str) -> None:
        try:
            if _FOLDER.fullmatch(folder) and not self._storage.list(folder, temporaries=True):
                self._storage.delete_dir(folder)
        except StorageError as error:
            _log.warning("An empty folder could not be deleted: %s", error)

    def _folders(self) -> list[int]:
        matches = (_FOLDER.fullmatch(entry.name) for entry in self._storage.list() if entry.is_dir)
        return [int(match[1]) for match in matches if match is not None]

    def _paths_in(self, folder: str) -> list[str]:
        return [entry.path for entry in self._storage.list(folder, temporaries=True) if not entry.is_dir]


class MemoryCheckpointStorage(CheckpointStorage):
    """Everything inside the acknowledgements, at most ``limit`` bytes a handle; lost with the driver."""

    def __init__(self, limit: int = DEFAULT_MEMORY_LIMIT) -> None:
        self._limit = limit
        self._seen: set[int] = set()
        self._begun: set[int] = set()

    def writer(self, checkpoint_id: int, attempt: int) -> MemorySnapshotWriter:
        return MemorySnapshotWriter(self._limit)

    def reader(self) -> InlineSnapshotReader:
        return InlineSnapshotReader()

    def location(self, checkpoint_id: int) -> str:
        return f"<driver memory>/{checkpoint_folder(checkpoint_id)}"

    def write_metadata(self, metadata: CheckpointMetadata) -> str:
        for handle in metadata_handles(metadata):
            if handle.inline is None:
                raise CheckpointError(
                    f"the snapshot file {handle.path} cannot be part of a checkpoint in the driver's memory"
                )
        self._seen.add(metadata.checkpoint_id)
        return self.location(metadata.checkpoint_id)

    def discard(self, checkpoint_id: int) -> None:
        self._begun.discard(checkpoint_id)

    def verify(self, metadata: CheckpointMetadata) -> None:
        _verify_inline(metadata, self.reader())

    def mark_commit_begun(self, checkpoint_id: int) -> None:
        self._begun.add(checkpoint_id)

    def mark_committed(self, checkpoint_id: int) -> None:
        self._begun.add(checkpoint_id)

    def commits_begun(self) -> frozenset[int]:
        return frozenset(self._begun)

    def seen_ids(self) -> frozenset[int]:
        return frozenset(self._seen)

    def snapshot_paths(self) -> list[str]:
        return []

    def paths_of(self, origin: FileOrigin) -> set[str]:
        return set()

    def delete_paths(self, paths: Iterable[str]) -> set[str]:
        return set()


def open_snapshot(path: str) -> tuple[CheckpointMetadata, SnapshotReader]:
    """A checkpoint or savepoint by the path of its folder or of its ``_metadata`` file, with what reads its files."""
    folder = path.rstrip("/").removesuffix(f"/{METADATA_FILE}")
    storage = Storage.for_uri(folder)
    try:
        data = storage.read(METADATA_FILE)
    except StorageError as error:
        if not is_missing(error):
            raise
        raise CheckpointError(
            f"{path} is not a completed checkpoint or savepoint: there is no {storage.location(METADATA_FILE)}. Give "
            "the path of a folder such as <checkpoint directory>/<job id>/chk-7 or <directory>/savepoint-4fc1d5-..., "
            "or of the _metadata file in it."
        ) from error
    metadata = decode_metadata(data, storage.location(METADATA_FILE))
    root = folder if metadata.properties.get("relocatable") else folder.rpartition("/")[0]
    return metadata, FileSnapshotReader(Storage.for_uri(root).uri)


def split_checkpoint_path(path: str) -> tuple[str, str]:
    """The checkpoint directory and the job id of a checkpoint's path; empty where it has none."""
    root = path.rstrip("/").removesuffix(f"/{METADATA_FILE}").rpartition("/")[0]
    base, _, job_id = root.rpartition("/")
    return base, job_id


def _metadata_path(checkpoint_id: int) -> str:
    return f"{checkpoint_folder(checkpoint_id)}/{METADATA_FILE}"


def _verify_inline(metadata: CheckpointMetadata, reader: SnapshotReader) -> None:
    for handle in metadata_handles(metadata):
        if handle.inline is not None:
            reader.read(handle)


def is_damage(error: StorageError) -> bool:
    """Whether an error says that a file is lost or changed, and not that the storage cannot be reached for now."""
    cause = error.__cause__
    device_error = isinstance(cause, OSError) and cause.errno == errno.EIO
    return isinstance(error, CorruptFileError) or is_missing(error) or device_error
