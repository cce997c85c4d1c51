"""Where snapshot bytes go: files below a job's checkpoint directory, or inside the acknowledgement itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from holdfast.errors import CheckpointError, CorruptFileError, StorageError
from holdfast.failpoints import failpoint
from holdfast.state.handles import FileHandle
from holdfast.state.snapshot_io import CheckpointNotes, SnapshotReader, SnapshotWriter
from holdfast.storage.checksum import check_content, checksum
from holdfast.storage.filesystem import Storage, is_missing

DEFAULT_INLINE_THRESHOLD = 20 * 1024
DEFAULT_MEMORY_LIMIT = 5 * 1024 * 1024
SHARED_FOLDER = "shared"
#: What makes a snapshot complete.
METADATA_FILE = "_metadata"
#: Has a file for every attempt that began, named by its number.
ATTEMPTS_FOLDER = "attempts"
#: The note that tells uploads to stop.
GIVEN_UP = "given-up"


@lru_cache(maxsize=64)
def storage_of(uri: str) -> Storage:
    """One connection per process and directory: a task writes many small files."""
    return Storage.for_uri(uri)


def checkpoint_folder(checkpoint_id: int) -> str:
    return f"chk-{checkpoint_id}"


@dataclass(frozen=True)
class FileSnapshotWriter(SnapshotWriter):
    """Files in ``chk-<id>/<attempt>-<name>`` or ``shared/<attempt>-<id>-<name>``; few bytes go into the handle.

    The attempt in each name keeps an attempt that was given up from overwriting what its successor writes.
    """

    directory: str
    checkpoint_id: int
    attempt: int
    inline_threshold: int = DEFAULT_INLINE_THRESHOLD

    def write(self, name: str, data: bytes, shared: bool = False) -> FileHandle:
        digest = checksum(data)
        if len(data) <= self.inline_threshold:
            return FileHandle(path="", size=len(data), checksum=digest, inline=bytes(data))
        path = self.path_of(name, shared)
        failpoint("snapshot.write", checkpoint=self.checkpoint_id, attempt=self.attempt, name=name)
        storage_of(self.directory).write_atomic(path, data)
        return FileHandle(path=path, size=len(data), checksum=digest)

    def notes(self) -> FileNotes:
        return FileNotes(self.directory, self.checkpoint_id, self.attempt)

    def path_of(self, name: str, shared: bool) -> str:
        if not name or "/" in name:
            raise ValueError(f"a snapshot file is called {name!r}; expected a file name without '/'")
        if shared:
            return f"{SHARED_FOLDER}/{self.attempt}-{self.checkpoint_id}-{name}"
        return f"{checkpoint_folder(self.checkpoint_id)}/{self.attempt}-{name}"


@dataclass(frozen=True)
class FileNotes(CheckpointNotes):
    """Notes as files beside those of the checkpoint, named in the same way, so that whoever sweeps finds them too."""

    directory: str
    checkpoint_id: int
    attempt: int

    def leave(self, name: str, data: bytes) -> None:
        storage_of(self.directory).write_atomic(self.path_of(name), data)

    def find(self, name: str) -> bytes | None:
        try:
            return storage_of(self.directory).read(self.path_of(name))
        except StorageError as error:
            if is_missing(error):
                return None
            raise

    def remove(self, name: str) -> None:
        storage_of(self.directory).delete(self.path_of(name))

    def discard(self, paths: Iterable[str]) -> None:
        for path in paths:
            storage_of(self.directory).delete(path)

    def give_up(self) -> None:
        self.leave(GIVEN_UP, b"")

    def given_up(self) -> bool:
        storage = storage_of(self.directory)
        return storage.exists(self.path_of(GIVEN_UP)) or storage.exists(f"{ATTEMPTS_FOLDER}/{self.attempt + 1}")

    def path_of(self, name: str) -> str:
        return f"{checkpoint_folder(self.checkpoint_id)}/{self.attempt}-note-{name}"


@dataclass(frozen=True)
class FileSnapshotReader(SnapshotReader):
    """Reads handles whose paths are relative to ``directory``, and inline ones."""

    directory: str

    def read(self, handle: FileHandle) -> bytes:
        if handle.inline is not None:
            return _verified_inline(handle)
        storage = storage_of(self.directory)
        data = _read(storage, handle, 0, None)
        check_content(storage.location(handle.path), data, handle.size, handle.checksum)
        return data

    def read_range(self, handle: FileHandle, offset: int, length: int) -> bytes:
        if handle.inline is not None:
            return _range_of_inline(handle, offset, length)
        storage = storage_of(self.directory)
        data = _read(storage, handle, offset, length)
        _check_length(storage.location(handle.path), data, offset, length)
        return data


@dataclass(frozen=True)
class MemorySnapshotWriter(SnapshotWriter):
    """Everything inline, for checkpoints in the driver's memory."""

    limit: int = DEFAULT_MEMORY_LIMIT

    def write(self, name: str, data: bytes, shared: bool = False) -> FileHandle:
        if len(data) > self.limit:
            raise CheckpointError(
                f"the snapshot {name} has {len(data)} bytes; checkpoints in the driver's memory take "
                f"at most {self.limit} bytes each. Set execution.checkpointing.storage to filesystem and "
                "execution.checkpointing.dir to a directory that all hosts share."
            )
        return FileHandle(path="", size=len(data), checksum=checksum(data), inline=bytes(data))


@dataclass(frozen=True)
class InlineSnapshotReader(SnapshotReader):
    """Reads handles that hold their bytes, and no others."""

    def read(self, handle: FileHandle) -> bytes:
        return _verified_inline(handle)

    def read_range(self, handle: FileHandle, offset: int, length: int) -> bytes:
        return _range_of_inline(handle, offset, length)


def _inline_bytes(handle: FileHandle) -> bytes:
    if handle.inline is None:
        raise StorageError(
            f"the snapshot file {handle.path} is wanted from checkpoints in memory, which have no files; "
            "open the checkpoint by its path instead"
        )
    return handle.inline


def _verified_inline(handle: FileHandle) -> bytes:
    data = _inline_bytes(handle)
    check_content("inline snapshot", data, handle.size, handle.checksum)
    return data


def _range_of_inline(handle: FileHandle, offset: int, length: int) -> bytes:
    data = _inline_bytes(handle)[offset : offset + length]
    _check_length("inline snapshot", data, offset, length)
    return data


def _read(storage: Storage, handle: FileHandle, offset: int, length: int | None) -> bytes:
    try:
        return storage.read(handle.path, offset, length)
    except StorageError as error:
        if is_missing(error):
            raise CorruptFileError(
                storage.location(handle.path), f"the file is missing; {handle.size} bytes are expected"
            ) from error
        raise


def _check_length(location: str, data: bytes, offset: int, length: int) -> None:
    if len(data) != length:
        raise CorruptFileError(
            location, f"{length} bytes are expected at {offset}, {len(data)} are there: the file was cut short"
        )
