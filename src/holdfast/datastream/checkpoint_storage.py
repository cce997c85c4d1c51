"""Storages of checkpoints as values, with PyFlink's names: ``CheckpointConfig.set_checkpoint_storage(...)`` writes what
they say into the configuration."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod

from holdfast.common import options
from holdfast.common.configuration import Configuration
from holdfast.coverage.answers import answer_missing_names as _answer_missing_names
from holdfast.errors import ProgramError
from holdfast.types.settings import StorageKind

__all__ = ["CheckpointStorage", "FileSystemCheckpointStorage", "JobManagerCheckpointStorage"]

_answer_missing_names(__name__)

_DEFAULT_WRITE_BUFFER = 4096
#: Scheme, authority, and what is behind them up to the slashes at the end.
_ADDRESS = re.compile(r"([A-Za-z][\w+.-]*:)?(//[^/]*)?(/?.*?)/*", re.DOTALL)


class CheckpointStorage(ABC):
    """Where checkpoints are kept."""

    def apply_to(self, configuration: Configuration) -> None:
        """Make it the storage of ``configuration``, in place of the one that was set there."""
        said = self._said()
        for option in (options.CHECKPOINT_STORAGE, options.CHECKPOINT_DIRECTORY, options.CHECKPOINT_INLINE_THRESHOLD):
            configuration.remove(option)
        for key, value in said.items():
            configuration.set_string(key, value)

    @abstractmethod
    def _said(self) -> dict[str, str]:
        """What it says by keys; ProgramError for what cannot be."""


class JobManagerCheckpointStorage(CheckpointStorage):
    """Checkpoints in the memory of the driver. They are lost with it."""

    DEFAULT_MAX_STATE_SIZE = 5 * 1024 * 1024

    def __init__(self, checkpoint_path: str | None = None, max_state_size: int | None = None) -> None:
        self._path = checkpoint_path
        self._max_state_size = self.DEFAULT_MAX_STATE_SIZE if max_state_size is None else max_state_size

    def get_checkpoint_path(self) -> str | None:
        return None if self._path is None else _as_flink_shows(self._path)

    def get_savepoint_path(self) -> str | None:
        return None

    def get_max_state_size(self) -> int:
        return self._max_state_size

    def _said(self) -> dict[str, str]:
        if self._path is not None:
            raise ProgramError(
                f"JobManagerCheckpointStorage was given the path {self._path!r}, and keeps nothing in files. Use "
                "FileSystemCheckpointStorage(path) for checkpoints that outlive the driver."
            )
        if self._max_state_size != self.DEFAULT_MAX_STATE_SIZE:
            raise ProgramError(
                f"JobManagerCheckpointStorage was given max_state_size={self._max_state_size}, and the size of a state "
                f"is limited to {self.DEFAULT_MAX_STATE_SIZE} bytes. Use FileSystemCheckpointStorage(path) for more."
            )
        return {options.CHECKPOINT_STORAGE.key: StorageKind.JOBMANAGER.value}

    def __str__(self) -> str:
        return "JobManagerCheckpointStorage"


class FileSystemCheckpointStorage(CheckpointStorage):
    """Checkpoints in files below ``checkpoint_path``: a path, or a URI of ``file:``, ``hdfs:``, ``s3:`` or ``gs:``.

    State of a subtask up to ``file_state_size_threshold`` bytes is kept with a checkpoint's metadata.
    """

    MAX_FILE_STATE_THRESHOLD = 1024 * 1024

    def __init__(
        self,
        checkpoint_path: str | None = None,
        file_state_size_threshold: int | None = None,
        write_buffer_size: int = -1,
    ) -> None:
        if checkpoint_path is None:
            raise ValueError("FileSystemCheckpointStorage needs checkpoint_path, the directory of checkpoints.")
        threshold = -1 if file_state_size_threshold is None else file_state_size_threshold
        if not -1 <= threshold <= self.MAX_FILE_STATE_THRESHOLD:
            raise ProgramError(
                f"file_state_size_threshold is {threshold} bytes; expected are 0 to {self.MAX_FILE_STATE_THRESHOLD}, "
                "or -1 for what is configured."
            )
        self._path = checkpoint_path
        self._threshold = threshold
        self._write_buffer_size = write_buffer_size

    def get_checkpoint_path(self) -> str:
        return _as_flink_shows(self._path)

    def get_savepoint_path(self) -> str | None:
        return None

    def get_min_file_size_threshold(self) -> int:
        return self._threshold if self._threshold >= 0 else options.CHECKPOINT_INLINE_THRESHOLD.default or 0

    def get_write_buffer_size(self) -> int:
        """What was given. A file of a checkpoint is written at once."""
        return self._write_buffer_size if self._write_buffer_size > 0 else _DEFAULT_WRITE_BUFFER

    def _said(self) -> dict[str, str]:
        said = {
            options.CHECKPOINT_STORAGE.key: StorageKind.FILESYSTEM.value,
            options.CHECKPOINT_DIRECTORY.key: self._path,
        }
        if self._threshold >= 0:
            said[options.CHECKPOINT_INLINE_THRESHOLD.key] = f"{self._threshold} b"
        return said

    def __str__(self) -> str:
        return f"FileSystemCheckpointStorage({self._path})"


def _as_flink_shows(path: str) -> str:
    """A path without a slash at the end; an address without an authority that is empty: ``file:/checkpoints``."""
    scheme, authority, rest = _ADDRESS.fullmatch(path).groups("")  # type: ignore[union-attr] # it takes any text
    return f"{scheme}{authority if authority != '//' else ''}{rest}"
