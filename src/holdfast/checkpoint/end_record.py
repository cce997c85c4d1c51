"""Where it is written that a job has ended and must not begin again."""

from __future__ import annotations

from abc import ABC, abstractmethod

from holdfast.storage.filesystem import Storage

_ENDED = "ended"


class EndRecord(ABC):
    """One durable record of a job, written and deleted by the driver that leads it."""

    @property
    @abstractmethod
    def location(self) -> str:
        """For a person who wants to take the record away."""

    @abstractmethod
    def read(self) -> bytes | None:
        """None when there is no record."""

    @abstractmethod
    def write(self, content: bytes) -> None: ...

    @abstractmethod
    def delete(self) -> None: ...


class FileEndRecord(EndRecord):
    """A file in the job's directory."""

    def __init__(self, directory: Storage) -> None:
        self._directory = directory

    @property
    def location(self) -> str:
        return self._directory.location(_ENDED)

    def read(self) -> bytes | None:
        return self._directory.read(_ENDED) if self._directory.exists(_ENDED) else None

    def write(self, content: bytes) -> None:
        self._directory.write_atomic(_ENDED, content)

    def delete(self) -> None:
        self._directory.delete(_ENDED)
