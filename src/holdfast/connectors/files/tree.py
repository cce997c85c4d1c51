"""Which files there are, and which subtask reads them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import xxhash

from holdfast.errors import StorageError
from holdfast.storage.filesystem import Storage


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file of a listing; ``path`` is its full location."""

    path: str
    size: int


class FileTree:
    """The files below some paths, each a directory or a single file. Names that begin with ``_`` or ``.`` are not
    part of it, and neither is what lies in directories of such names: that is where writers keep what is not
    complete. Picklable."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._roots = [Storage.for_uri(path) for path in paths]

    def files(self) -> Iterator[FoundFile]:
        """Everything that is there now; StorageError when one of the paths does not exist."""
        for root in self._roots:
            if not root.exists(""):
                raise StorageError(
                    f"The source's path {root.uri} does not exist. Create it before the job starts, or correct the "
                    "path."
                )
            single = _single_file(root)
            if single is not None:
                yield single
                continue
            for entry in root.list("", recursive=True):
                if not entry.is_dir and not _hidden(entry.path):
                    yield FoundFile(root.location(entry.path), entry.size)

    def locate(self, path: str) -> tuple[Storage, str]:
        """Storage and path in it of a full location, also of one below paths that the program no longer names."""
        for root in self._roots:
            inside = _inside(root, path)
            if inside is not None:
                return root, inside
        folder, _, name = path.rpartition("/")
        return Storage.for_uri(folder or "/"), name

    def owner(self, path: str, parallelism: int) -> int:
        """The subtask that reads a file: decided by its path relative to the directory, and by nothing else.

        A file that was given one by one has no directory; its whole path counts.
        """
        _, relative = self.locate(path)
        return xxhash.xxh64_intdigest((relative or path).encode()) % parallelism


def _inside(root: Storage, path: str) -> str | None:
    """The path relative to a root, empty for the root itself; None when it lies elsewhere."""
    if path == root.uri:
        return ""
    prefix = f"{root.uri.rstrip('/')}/"
    return path.removeprefix(prefix) if path.startswith(prefix) else None


def _single_file(root: Storage) -> FoundFile | None:
    """The root itself where it is a file."""
    try:
        with root.open_input("") as stream:
            return FoundFile(root.uri, stream.seek(0, os.SEEK_END))
    except StorageError as error:
        # A directory cannot be opened, and in an object store its name alone is no object.
        if isinstance(error.__cause__, (IsADirectoryError, FileNotFoundError)):
            return None
        raise


def _hidden(path: str) -> bool:
    return any(part.startswith(("_", ".")) for part in path.split("/"))
