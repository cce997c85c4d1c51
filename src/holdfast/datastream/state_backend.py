"""State backends as values, with PyFlink's names: ``env.set_state_backend(...)`` writes what they say into the
configuration."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum

from holdfast.common import options
from holdfast.common.configuration import Configuration
from holdfast.coverage.answers import answer_missing_names, note_accepted, refusal
from holdfast.errors import ProgramError

__all__ = ["EmbeddedRocksDBStateBackend", "HashMapStateBackend", "PredefinedOptions", "StateBackend"]

answer_missing_names(__name__)

_PREDEFINED = "state.backend.rocksdb.predefined-options"
_DEFAULT_TRANSFER_THREADS = 4


class StateBackend(ABC):
    """Where keyed state is kept while a job runs."""

    @abstractmethod
    def apply_to(self, configuration: Configuration) -> None:
        """Make it the backend of ``configuration``, in place of the one that was set there."""


class HashMapStateBackend(StateBackend):
    """Objects in the memory of the Python workers: ``state.backend.type: heap``."""

    def apply_to(self, configuration: Configuration) -> None:
        _set_type(configuration, "heap")

    def __str__(self) -> str:
        return "HashMapStateBackend"


class PredefinedOptions(Enum):
    """What RocksDB is tuned for: ``state.backend.rocksdb.predefined-options``."""

    DEFAULT = 0
    SPINNING_DISK_OPTIMIZED = 1
    SPINNING_DISK_OPTIMIZED_HIGH_MEM = 2
    FLASH_SSD_OPTIMIZED = 3


class EmbeddedRocksDBStateBackend(StateBackend):
    """RocksDB on the executors' disks: ``state.backend.type: rocksdb``. What is not set here is as it is configured."""

    def __init__(self, enable_incremental_checkpointing: bool | None = None) -> None:
        if enable_incremental_checkpointing not in (None, True, False):
            raise TypeError(
                f"enable_incremental_checkpointing is None, True or False; got {enable_incremental_checkpointing!r}."
            )
        self._incremental = enable_incremental_checkpointing
        self._paths: tuple[str, ...] = ()
        self._predefined: PredefinedOptions | None = None
        self._threads = _DEFAULT_TRANSFER_THREADS

    def set_db_storage_paths(self, *paths: str) -> None:
        """The directory of the databases on every executor's host; without one the configured one."""
        if len(paths) > 1:
            raise ProgramError(
                f"set_db_storage_paths() was given {len(paths)} directories, and all databases of a host are in one. "
                "Give one, on the fastest disk; several disks are joined by the system."
            )
        self._paths = paths

    def get_db_storage_paths(self) -> list[str]:
        return list(self._paths)

    def is_incremental_checkpoints_enabled(self) -> bool:
        """Unlike in Flink, True where nothing else is said."""
        return options.CHECKPOINT_INCREMENTAL.default is True if self._incremental is None else self._incremental

    def set_predefined_options(self, options: PredefinedOptions) -> None:
        self._predefined = options

    def get_predefined_options(self) -> PredefinedOptions:
        return self._predefined or PredefinedOptions.DEFAULT

    def set_options(self, options_factory_class_name: str) -> None:
        raise ProgramError(refusal("EmbeddedRocksDBStateBackend.set_options"))

    def get_options(self) -> str | None:
        return None

    def set_number_of_transfer_threads(self, number_of_transfering_threads: int) -> None:
        note_accepted("EmbeddedRocksDBStateBackend.set_number_of_transfer_threads")
        self._threads = number_of_transfering_threads

    def get_number_of_transfer_threads(self) -> int:
        return self._threads

    def apply_to(self, configuration: Configuration) -> None:
        _set_type(configuration, "rocksdb")
        if self._incremental is not None:
            configuration.remove(options.CHECKPOINT_INCREMENTAL)
            configuration.set_boolean(options.CHECKPOINT_INCREMENTAL.key, self._incremental)
        if self._predefined is not None:
            configuration.set_string(_PREDEFINED, self._predefined.name)
        if self._paths:
            configuration.set_string(options.LOCAL_DIRECTORY.key, self._paths[0])

    def __str__(self) -> str:
        return "EmbeddedRocksDBStateBackend"


def _set_type(configuration: Configuration, name: str) -> None:
    configuration.remove(options.BACKEND)
    configuration.set_string(options.BACKEND.key, name)
