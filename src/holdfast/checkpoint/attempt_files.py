"""The attempts of a job, each under a number that nobody else has: ``attempts/<number>`` in its directory."""

from __future__ import annotations

import logging

from holdfast.errors import StorageError
from holdfast.state.snapshot_files import ATTEMPTS_FOLDER
from holdfast.storage.filesystem import Storage

_log = logging.getLogger(__name__)
_KEPT = 16


class AttemptFiles:
    """The greatest number is the attempt that counts. A file of it tells those before to stop, uploads too."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def last(self) -> int:
        """The greatest number that is recorded, or 0."""
        return max(self.numbers(), default=0)

    def numbers(self) -> list[int]:
        return [int(entry.name) for entry in self._storage.list(ATTEMPTS_FOLDER) if entry.name.isdecimal()]

    def create(self, number: int, content: bytes) -> bool:
        """Record that an attempt begins, durably; False when it had begun before. Old ones are forgotten."""
        if not self._storage.create_exclusive(self._path(number), content):
            return False
        self._forget_old()
        return True

    def read(self, number: int) -> bytes:
        return self._storage.read(self._path(number))

    def write(self, number: int, content: bytes) -> None:
        self._storage.write_atomic(self._path(number), content)

    def delete(self, number: int) -> None:
        self._storage.delete(self._path(number))

    def _forget_old(self) -> None:
        """A failure is none of the attempt that has just begun, and the next one tries again."""
        try:
            for old in sorted(self.numbers())[: -_KEPT - 1]:
                self.delete(old)
        except StorageError as error:
            _log.warning("Files of old attempts stay behind until the next attempt: %s", error)

    @staticmethod
    def _path(number: int) -> str:
        return f"{ATTEMPTS_FOLDER}/{number}"
