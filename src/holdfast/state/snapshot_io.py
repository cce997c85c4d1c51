"""How tasks write snapshot bytes and read them back. The coordinator decides where; see checkpoint/storage."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from holdfast.state.handles import FileHandle


class CheckpointNotes(ABC):
    """Small files of one checkpoint by which tasks and the coordinator tell each other what came late. Picklable."""

    @abstractmethod
    def leave(self, name: str, data: bytes) -> None:
        """Write a note, or replace it, at once."""

    @abstractmethod
    def find(self, name: str) -> bytes | None:
        """What a note says; None when there is no such note."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """A note that was read, or may not be there."""

    @abstractmethod
    def discard(self, paths: Iterable[str]) -> None:
        """Delete files of the checkpoint that nobody was told of."""

    @abstractmethod
    def give_up(self) -> None:
        """Tell whoever still writes for the checkpoint that it is in vain."""

    @abstractmethod
    def given_up(self) -> bool:
        """Whether that was told, or another attempt of the job has begun, which takes nothing of this one."""


class SnapshotWriter(ABC):
    """Writes the files of one checkpoint for one subtask. Picklable; used in tasks."""

    @abstractmethod
    def write(self, name: str, data: bytes, shared: bool = False) -> FileHandle:
        """Store durably and give the handle. ``name`` is unique for operator, subtask and execution; ``shared`` files
        may be used by later checkpoints.

        Few bytes come back inline. Too many for the storage raise CheckpointError.
        """

    def notes(self) -> CheckpointNotes | None:
        """Notes about the checkpoint; None where the storage has no place for them, and nothing can come late."""
        return None


class SnapshotReader(ABC):
    """Reads the files of a completed snapshot. Picklable; used in tasks."""

    @abstractmethod
    def read(self, handle: FileHandle) -> bytes:
        """The whole file, verified against its checksum; CorruptFileError otherwise."""

    @abstractmethod
    def read_range(self, handle: FileHandle, offset: int, length: int) -> bytes:
        """A part of the file, not verified: the caller checks its own block checksum. A short read is a
        CorruptFileError.
        """


class CountingReader(SnapshotReader):
    """Counts the bytes that come through it."""

    def __init__(self, reader: SnapshotReader) -> None:
        self._reader = reader
        self.bytes_read = 0

    def read(self, handle: FileHandle) -> bytes:
        data = self._reader.read(handle)
        self.bytes_read += len(data)
        return data

    def read_range(self, handle: FileHandle, offset: int, length: int) -> bytes:
        data = self._reader.read_range(handle, offset, length)
        self.bytes_read += len(data)
        return data
