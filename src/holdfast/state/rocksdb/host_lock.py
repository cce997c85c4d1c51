"""Which process of the host has a store: a lock that ends with its process, and a way to ask for it.

RocksDB lets one process open a database. Workers keep theirs between tasks and give it up when another one asks: the
one that waits writes its process id into a FIFO, the holder reads it. Who waits asks again and again, so that a
request that the holder before has read is not lost on the next one.
"""

from __future__ import annotations

import fcntl
import os
import struct
import time
from contextlib import suppress
from pathlib import Path

from holdfast.errors import StateError
from holdfast.storage.private_files import FILE_MODE

_REQUEST = struct.Struct("=q")
#: Seconds between two attempts: from the first to the longest.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.05


class HostLock:
    """The lock of one directory. Not for two objects of one process at the same time: the system would grant both."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock: int | None = None
        self._requests: int | None = None

    def acquire(self, patience: float) -> bool:
        """Wait for the lock, at most ``patience`` seconds; whether it had to be asked for."""
        fifo = self._directory / "wanted"
        with suppress(FileExistsError):
            os.mkfifo(fifo, FILE_MODE)
        # Read and write, so that it has a reader and opens at once.
        self._requests = os.open(fifo, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._lock = os.open(self._directory / "holder", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        deadline, pause = time.monotonic() + patience, _FIRST_PAUSE
        while not self._try():
            if time.monotonic() > deadline:
                holder = os.pread(self._lock, 32, 0).decode(errors="replace").strip()
                self.release()
                raise StateError(
                    f"The store {self._directory} is held by the process {holder or 'of unknown id'} for more than "
                    f"{patience:.0f} s. If it is a task that hangs, end that process."
                )
            with suppress(BlockingIOError):
                os.write(self._requests, _REQUEST.pack(os.getpid()))
            time.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)
        os.pwrite(self._lock, f"{os.getpid():<32}".encode(), 0)
        return pause > _FIRST_PAUSE

    def _try(self) -> bool:
        assert self._lock is not None
        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def fileno(self) -> int:
        """What becomes readable when another process asks; -1 when the lock is not held."""
        return -1 if self._requests is None else self._requests

    def wanted(self) -> bool:
        """Whether another process asked since the last call."""
        asked = b""
        with suppress(BlockingIOError):
            while self._requests is not None and (some := os.read(self._requests, 4096)):
                asked += some
        return any(pid != os.getpid() for (pid,) in _REQUEST.iter_unpack(asked))

    def release(self) -> None:
        """Give the lock up. In a forked child this closes copies and leaves the parent's lock as it is."""
        for descriptor in (self._lock, self._requests):
            if descriptor is not None:
                os.close(descriptor)
        self._lock = self._requests = None
