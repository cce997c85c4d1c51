"""Small questions about files that the storage's contract leaves to its users."""

from __future__ import annotations

import os

from holdfast.errors import StorageError
from holdfast.storage.filesystem import Storage, is_missing
from holdfast.storage.local import LocalStorage


def size_of(storage: Storage, path: str) -> int | None:
    """The size of a file in bytes; None when it does not exist."""
    try:
        with storage.open_input(path) as stream:
            return stream.seek(0, os.SEEK_END)
    except StorageError as error:
        if is_missing(error):
            return None
        raise


def modified_ms_of(file: Storage) -> int:
    """When a file was changed last, given as a storage of its own."""
    if isinstance(file, LocalStorage):
        return os.stat(file.uri).st_mtime_ns // 1_000_000
    folder, _, name = file.uri.rpartition("/")
    return next((entry.modified_ms for entry in Storage.for_uri(folder).list() if entry.path == name), 0)


def make_durable(storage: Storage, path: str) -> None:
    """Make sure that a name that is visible survives a crash of the host. Only local file systems show names before
    they are durable."""
    if isinstance(storage, LocalStorage):
        folder = os.open(os.path.dirname(storage.location(path)), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
