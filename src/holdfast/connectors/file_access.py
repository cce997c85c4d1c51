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


def make_durable(storage: Storage, path: str) -> None:
    """Make sure that a name that is visible survives a crash of the host. Only local file systems show names before
    they are durable."""
    if isinstance(storage, LocalStorage):
        folder = os.open(os.path.dirname(storage.location(path)), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
