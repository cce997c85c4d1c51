"""The contract of file formats: how a file becomes columns, and how to go on in its middle."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import pyarrow as pa

from holdfast.errors import StorageError
from holdfast.storage.filesystem import Storage
from holdfast.types.information import TypeInformation

MOVE_ADVICE = "Files must not change: write them elsewhere and move them into the directory when they are complete."


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that does not change any more, with the size it had when it was found."""

    storage: Storage
    path: str
    size: int

    @property
    def location(self) -> str:
        return self.storage.location(self.path)


class FileCursor(ABC):
    """An open file. Lives in one process; where it stands is ``offset``, whose unit is the format's own."""

    offset: int

    @abstractmethod
    def read(self, rows: int) -> pa.RecordBatch | None:
        """The next rows, at least one and at most ``rows``, in the columns of the format's type; None at the end of
        the file."""

    def close(self) -> None:
        """Free what is open."""


class FileFormat(ABC):
    """The picklable description of a format and of the rows it gives."""

    type_info: TypeInformation

    @abstractmethod
    def open(self, file: InputFile, offset: int) -> FileCursor:
        """Go on at an offset that a cursor of this format had, or begin at 0. Raises StorageError for a file that
        does not fit the type."""


def changed(location: str, expected: int, size: int) -> StorageError:
    """For a file whose size is no longer the one it was found with."""
    return StorageError(
        f"{location} had {expected} bytes when it was found and has {size} now, before it was read to the end. "
        f"{MOVE_ADVICE}"
    )
