"""Files under one root: a local directory, HDFS, S3 or GCS.

What makes a write, the ``_metadata`` of a checkpoint and the driver's lease atomic:

============  =====================================  ==============================================================
file system   ``write_atomic``                       ``create_exclusive``: ``_metadata``, attempts, so leases
============  =====================================  ==============================================================
local, NFS    temporary name, fsync, ``rename(2)``,  ``link(2)`` fails where the name exists; ``flock(2)`` is freed
              fsync of the folder                    by the kernel when the driver dies
HDFS, by      temporary name, close, rename that     temporary name, close, rename that does not replace: one entry
WebHDFS       replaces: one entry in the log of the  in the log of the name node, refused where the name exists
              name node
HDFS, by      as by WebHDFS, but what is replaced    nothing: ``pyarrow.fs`` replaces, in two steps, whatever has
libhdfs       is missing for a moment                the name
S3            an object appears whole when its       a put with ``If-None-Match: *``, refused by the server where the
              upload ends; there is no rename        name exists. ``pyarrow.fs`` has none: by Amazon's client
GCS           as S3                                  an upload with ``ifGenerationMatch=0``, in the same way
============  =====================================  ==============================================================

A file of HDFS is durable when its last data node has it, in memory: HDFS keeps replicas against the loss of a host.
With ``dfs.datanode.synconclose`` it is on their disks.

Where the last column says nothing, ``exclusive_create`` is False: the file system does not keep two drivers apart that
take a job in the same moment. They look again a moment later, and one gives way (``checkpoint.lease``). Only a lock of
the kernel goes with its driver; everywhere the lease of one that was killed runs out.
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
_HDFS = frozenset({"hdfs", "webhdfs", "swebhdfs"})
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
        """The storage of a path, ``file:``, ``hdfs:`` (``webhdfs:``), ``s3:`` (``s3a:``) or ``gs:`` URI. Nothing is
        created.
        """
        # Imported here: each implementation imports this module for the contract.
        from holdfast.storage.local import LocalStorage

        if not uri:
            raise ConfigurationError("an empty path was given where a directory is expected")
        scheme = urlsplit(uri).scheme
        if scheme == "file":
            return LocalStorage(unquote(urlsplit(uri).path))
        if not scheme:
            return LocalStorage(uri)
        if scheme in _HDFS:
            from holdfast.storage.hdfs import open_hdfs

            return open_hdfs(uri)
        from holdfast.storage.remote import ArrowStorage

        return ArrowStorage.connect(uri)

    @staticmethod
    def absolute(uri: str) -> str:
        """A URI that every process understands: a relative path is one of this process, and workers have another
        working directory. Nothing is connected to."""
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

    def write_private(self, path: str, data: bytes) -> None:
        """As ``write_atomic``, in a folder that holds nothing else. Where files have owners, nobody but this user can
        read it or look into the folder; elsewhere the rights of the place hold.
        """
        self.write_atomic(path, data)

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
            raise StorageError(f"cannot {action} {self.location(path)}: {cause}; {self._advice(cause)}") from cause

    def _advice(self, cause: OSError) -> str:
        """What to do about a failure."""
        return _ADVICE.get(cause.errno or 0, "check that the file system is reachable and that this user may use it")


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
