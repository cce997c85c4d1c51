"""Files under one root: a local directory, HDFS, S3 or GCS.

What makes a write, the ``_metadata`` of a checkpoint and the driver's lock atomic:

============  =====================================  ==============================================================
file system   ``write_atomic``, so ``_metadata``     ``create_exclusive`` (attempt numbers), the driver's lock
============  =====================================  ==============================================================
local, NFS    temporary name, fsync, ``rename(2)``,  ``link(2)`` fails where the name exists; ``flock(2)`` is freed
              fsync of the folder                    by the kernel when the driver dies
HDFS          temporary name, close, rename at the   nothing: ``pyarrow.fs`` has no create-without-overwrite
              name node
S3            an object appears whole when its       nothing: ``pyarrow.fs`` has no conditional put, and a rename
              upload ends; there is no rename        is a copy and a delete
GCS           as S3                                  as S3
============  =====================================  ==============================================================

Where the last column says nothing, ``exclusive_create`` is False: the file system does not keep two drivers on one job
directory apart. A record of the driver does that in its place, as well as a record can (``checkpoint.job_lock``).
"""

from __future__ import annotations

import errno
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

from holdfast.errors import ConfigurationError, StorageError

_TEMPORARY = re.compile(r"\.holdfast-tmp\.[0-9a-f]{16}\.(?P<name>.+)")
_ADVICE = {
    errno.ENOSPC: "the disk is full: free space or choose another directory",
    errno.EDQUOT: "the quota is used up: free space or choose another directory",
    errno.EFBIG: "the file is larger than is allowed here: raise the limit or choose another directory",
    errno.EACCES: "give this user access to it or choose another directory",
    errno.EPERM: "give this user access to it or choose another directory",
    errno.EROFS: "the file system is read-only: choose another directory",
    errno.ENOENT: "no such file or directory: check the path, and that all hosts see the same file system",
    errno.ENOTDIR: "a file is where a directory is expected: choose another directory",
    errno.EIO: "the device reports an error: check the disk",
}


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One line of a listing; ``path`` is relative to the storage's root."""

    path: str
    size: int
    modified_ms: int
    is_dir: bool = False

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class Storage(ABC):
    """Files below ``uri``. Paths are relative to it, with ``/``; the empty path is the root. Picklable.

    Directories come into being with their first file. Every failure is a StorageError that names the file, with its
    cause chained.
    """

    #: ``move`` within one file system appears at once and whole, also after a crash.
    atomic_rename: bool
    #: Of two processes that call ``create_exclusive`` at the same moment, exactly one gets True.
    exclusive_create: bool

    def __init__(self, uri: str) -> None:
        self.uri = uri.rstrip("/") or "/"

    @staticmethod
    def for_uri(uri: str) -> Storage:
        """The storage of a path, ``file:``, ``hdfs:``, ``s3:`` (``s3a:``) or ``gs:`` URI. Nothing is created."""
        # Imported here: each implementation imports this module for the contract.
        from holdfast.storage.local import LocalStorage

        if not uri:
            raise ConfigurationError("an empty path was given where a directory is expected")
        scheme = urlsplit(uri).scheme
        if scheme == "file":
            return LocalStorage(unquote(urlsplit(uri).path))
        if not scheme:
            return LocalStorage(uri)
        from holdfast.storage.remote import ArrowStorage

        return ArrowStorage.connect(uri)

    @staticmethod
    def absolute(uri: str) -> str:
        """The same place for every process: a relative path is one of this process, and workers have another working
        directory. Nothing is connected to."""
        return uri if urlsplit(uri).scheme not in ("", "file") else Storage.for_uri(uri).uri

    def location(self, path: str = "") -> str:
        """The full name of a path, for messages and for ``for_uri``."""
        return f"{self.uri.rstrip('/')}/{path}" if path else self.uri

    def child(self, path: str) -> Storage:
        """A storage whose root is a folder of this one."""
        return Storage.for_uri(self.location(path))

    @abstractmethod
    def write_atomic(self, path: str, data: bytes) -> None:
        """Store durably, replacing what is there; a reader sees the old content or the new one, never a part."""

    @abstractmethod
    def create_exclusive(self, path: str, data: bytes) -> bool:
        """Store durably and whole unless the name exists; False then, and nothing is changed."""

    @abstractmethod
    def open_output(self, path: str) -> AbstractContextManager[BinaryIO]:
        """A stream whose content appears under ``path``, durably and whole, when the block ends without error."""

    @abstractmethod
    def open_input(self, path: str) -> AbstractContextManager[BinaryIO]: ...

    @abstractmethod
    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """The bytes that are there: fewer than ``length`` at the end of the file."""

    @abstractmethod
    def exists(self, path: str) -> bool: ...

    @abstractmethod
    def list(self, directory: str = "", recursive: bool = False, temporaries: bool = False) -> list[FileEntry]:
        """Entries of a folder, sorted by path; none when it does not exist.

        Temporary names of writes that did not end are left out unless ``temporaries``.
        """

    @abstractmethod
    def delete(self, path: str) -> None:
        """Delete a file; one that does not exist is no error."""

    @abstractmethod
    def delete_dir(self, path: str) -> None:
        """Delete a folder and all in it; one that does not exist is no error."""

    @abstractmethod
    def move(self, source: str, target: str) -> None:
        """Rename a file durably, replacing ``target``."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Storage.for_uri, (self.uri,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.uri!r})"

    @contextmanager
    def _errors(self, action: str, path: str) -> Iterator[None]:
        """Turn failures of the operating system into StorageError."""
        try:
            yield
        except OSError as cause:
            advice = _ADVICE.get(
                cause.errno or 0, "check that the file system is reachable and that this user may use it"
            )
            raise StorageError(f"cannot {action} {self.location(path)}: {cause}; {advice}") from cause


def temporary_path(path: str) -> str:
    """A name in the same folder, unique, recognisable as unfinished, that still tells the final name."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.holdfast-tmp.{secrets.token_hex(8)}.{name}"


def final_name(name: str) -> str | None:
    """The name that a temporary one was to get; None for a name that is not temporary."""
    match = _TEMPORARY.fullmatch(name)
    return match["name"] if match else None


def is_missing(error: StorageError) -> bool:
    """Whether a StorageError says that a file is not there."""
    return isinstance(error.__cause__, FileNotFoundError)
