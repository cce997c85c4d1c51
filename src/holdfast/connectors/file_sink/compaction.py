"""Few large files instead of many small ones: when they are joined, and how. Names are those of Flink."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

from holdfast.coverage.answers import SaysWhatToUse, note_accepted
from holdfast.errors import ConfigurationError

_CHUNK = 1 << 20


@dataclass(frozen=True)
class FileCompactStrategy(SaysWhatToUse):
    """When the files of a bucket that wait in staging are joined and published: after so many checkpoints, or when
    they have so many bytes, whichever comes first.
    """

    num_checkpoints: int | None = None
    size_threshold: int | None = None

    def is_due(self, size: int, checkpoints: int) -> bool:
        return (self.size_threshold is not None and size >= self.size_threshold) or (
            self.num_checkpoints is not None and checkpoints >= self.num_checkpoints
        )

    class Builder:
        def __init__(self) -> None:
            self._num_checkpoints: int | None = None
            self._size_threshold: int | None = None

        def enable_compaction_on_checkpoint(
            self, num_checkpoints_before_compaction: int
        ) -> FileCompactStrategy.Builder:
            if num_checkpoints_before_compaction < 1:
                raise ConfigurationError(
                    f"Compaction after {num_checkpoints_before_compaction} checkpoints was asked for; it must be at "
                    "least 1."
                )
            self._num_checkpoints = num_checkpoints_before_compaction
            return self

        def set_size_threshold(self, size_threshold: int) -> FileCompactStrategy.Builder:
            if size_threshold < 1:
                raise ConfigurationError(f"The size threshold is {size_threshold} bytes; it must be positive.")
            self._size_threshold = size_threshold
            return self

        def set_num_compact_threads(self, num_compact_threads: int) -> FileCompactStrategy.Builder:
            """No effect: each subtask joins its own files."""
            note_accepted("FileCompactStrategy.Builder.set_num_compact_threads")
            return self

        def build(self) -> FileCompactStrategy:
            if self._num_checkpoints is None and self._size_threshold is None:
                raise ConfigurationError(
                    "A FileCompactStrategy says when files are joined: call enable_compaction_on_checkpoint(n), "
                    "set_size_threshold(bytes) or both."
                )
            return FileCompactStrategy(self._num_checkpoints, self._size_threshold)

    @staticmethod
    def builder() -> FileCompactStrategy.Builder:
        return FileCompactStrategy.Builder()


class FileCompactor(SaysWhatToUse, ABC):
    """Makes one file of several. Picklable; called in tasks, again with the same files after a failure."""

    #: False when files are published as they are.
    joins: bool = True

    @abstractmethod
    def compact(self, inputs: Sequence[BinaryIO], output: BinaryIO) -> None:
        """Write the rows of all inputs, in their order. The streams are opened and closed by the caller."""

    @staticmethod
    def concat_file_compactor(file_delimiter: bytes | None = None) -> ConcatFileCompactor:
        return ConcatFileCompactor(bytes(file_delimiter or b""))

    @staticmethod
    def identical_file_compactor() -> IdenticalFileCompactor:
        return IdenticalFileCompactor()


@dataclass(frozen=True)
class ConcatFileCompactor(FileCompactor):
    """One file's bytes behind the other's."""

    file_delimiter: bytes = b""

    def compact(self, inputs: Sequence[BinaryIO], output: BinaryIO) -> None:
        for number, stream in enumerate(inputs):
            if number:
                output.write(self.file_delimiter)
            shutil.copyfileobj(stream, output, _CHUNK)


@dataclass(frozen=True)
class IdenticalFileCompactor(FileCompactor):
    """Files wait as the strategy says, and are published as they are."""

    joins = False

    def compact(self, inputs: Sequence[BinaryIO], output: BinaryIO) -> None:
        for stream in inputs:
            shutil.copyfileobj(stream, output, _CHUNK)


@dataclass(frozen=True)
class Compaction:
    strategy: FileCompactStrategy
    #: None for the format's own.
    compactor: FileCompactor | None = None
