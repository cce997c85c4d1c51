"""The contract of file formats: how a file becomes columns, and how to go on in its middle."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from holdfast.errors import StorageError
from holdfast.storage.filesystem import Storage
from holdfast.types.information import TypeInformation
from holdfast.types.typeinfo import Types

MOVE_ADVICE = "Files must not change: write them elsewhere and move them into the directory when they are complete."


@dataclass(frozen=True, slots=True)
class BadRecord:
    """What could not be read: a line, or what is left of a file from a position on."""

    path: str
    #: Where it begins: bytes for formats of lines, rows for Parquet.
    position: int
    #: The line as text; None for a whole file.
    record: str | None
    reason: str


#: The rows of a side output of bad records.
BAD_RECORD_TYPE: Final = Types.ROW_NAMED(
    ["path", "position", "record", "reason"], [Types.STRING(), Types.LONG(), Types.STRING(), Types.STRING()]
)


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
        """The next rows, at most ``rows``, in the columns of the format's type; None at the end of the file. At least
        one, unless records were put aside."""

    def close(self) -> None:
        """Free what is open."""


class FileFormat(ABC):
    """The picklable description of a format and of the rows it gives."""

    type_info: TypeInformation

    @abstractmethod
    def open(self, file: InputFile, offset: int, put_aside: list[BadRecord] | None = None) -> FileCursor:
        """Go on at an offset that a cursor of this format had, or begin at 0. Raises UnfitFileError for a file that
        does not fit the type. Records that do not fit are ``put_aside``, or raise it too where that is None."""


def changed(location: str, expected: int, size: int) -> StorageError:
    """For a file whose size is no longer the one it was found with."""
    return StorageError(
        f"{location} had {expected} bytes when it was found and has {size} now, before it was read to the end. "
        f"{MOVE_ADVICE}"
    )
