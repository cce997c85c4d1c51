"""The files of one savepoint: all in its own folder, referred to by paths inside of it, so that it can be moved."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.failpoints import failpoint
from holdfast.state.handles import FileHandle
from holdfast.state.snapshot_files import GIVEN_UP, METADATA_FILE, FileNotes, storage_of
from holdfast.state.snapshot_io import SnapshotWriter
from holdfast.storage.checksum import checksum
from holdfast.storage.filesystem import Storage

#: In the folder for as long as the savepoint is being written.
IN_PROGRESS_FILE = "_in_progress"
#: What the names of notes begin with.
NOTE_PREFIX = "_note-"


@dataclass(frozen=True)
class SavepointWriter(SnapshotWriter):
    """Files under the names that they are given, which are unique; nothing is shared with any other snapshot."""

    directory: str
    checkpoint_id: int
    attempt: int

    def write(self, name: str, data: bytes, shared: bool = False) -> FileHandle:
        """``name`` may have folders."""
        if not is_inside(name):
            raise ValueError(f"a file of a savepoint is called {name!r}; expected a path inside of its folder")
        failpoint("snapshot.write", checkpoint=self.checkpoint_id, attempt=self.attempt, name=name)
        storage_of(self.directory).write_atomic(name, data)
        return FileHandle(path=name, size=len(data), checksum=checksum(data))

    def notes(self) -> SavepointNotes:
        return SavepointNotes(self.directory, self.checkpoint_id, self.attempt)


@dataclass(frozen=True)
class SavepointNotes(FileNotes):
    """Notes as files in the savepoint's folder, which have gone when it is complete."""

    def leave(self, name: str, data: bytes) -> None:
        self._storage.write_atomic(self.path_of(name), data)
        if not self._storage.exists(IN_PROGRESS_FILE):
            # Nobody reads notes of a savepoint that was completed, or given up, meanwhile.
            self.discard([self.path_of(name)])

    def discard(self, paths: Iterable[str]) -> None:
        """What came into a folder after it had been removed goes with it."""
        storage = self._storage
        if not storage.exists(IN_PROGRESS_FILE) and not storage.exists(METADATA_FILE):
            storage.delete_dir("")
            return
        for path in paths:
            storage.delete(path)

    def give_up(self) -> None:
        """Who finds that the folder was removed needs no note, which would make it anew."""
        if self._storage.exists(IN_PROGRESS_FILE):
            self.leave(GIVEN_UP, b"")

    def given_up(self) -> bool:
        """So it is, too, when the savepoint was completed without this attempt, or its folder was removed."""
        storage = self._storage
        return not storage.exists(IN_PROGRESS_FILE) or storage.exists(self.path_of(GIVEN_UP))

    @property
    def _storage(self) -> Storage:
        return storage_of(self.directory)

    def path_of(self, name: str) -> str:
        return f"{NOTE_PREFIX}{self.attempt}-{name}"


def is_inside(path: str) -> bool:
    """Whether a path of a handle stays in its folder."""
    return bool(path) and not path.startswith("/") and ".." not in path.split("/") and "\\" not in path
