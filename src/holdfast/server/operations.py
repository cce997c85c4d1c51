"""Operations that requests start and ask about later: each is known by what it is about and its trigger id."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum
from typing import Any


class OperationKind(Enum):
    #: Savepoints, with and without an end of the job: they are asked for at the same address.
    SAVEPOINT = "savepoint"
    CHECKPOINT = "checkpoint"
    DISPOSAL = "disposal"
    RESCALING = "rescaling"


@dataclass(frozen=True)
class OperationKey:
    kind: OperationKind
    #: Empty for what is not about a job.
    job_id: str
    trigger_id: str


class _Operation:
    def __init__(self, future: Future[Any]) -> None:
        self.future = future
        self.ended: float | None = None
        #: Somebody has been told how it ended.
        self.told = False
        future.add_done_callback(self._note_end)

    def _note_end(self, _: Future[Any]) -> None:
        self.ended = time.monotonic()


class Operations:
    """Results are kept for ``store_seconds`` after the operation ended. Any thread may call."""

    def __init__(self, store_seconds: float) -> None:
        self._store_seconds = store_seconds
        self._operations: dict[OperationKey, _Operation] = {}
        self._lock = threading.Lock()

    def start(self, key: OperationKey, begin: Callable[[], Future[Any]]) -> None:
        """Begin, unless an operation of this key exists: then that is the one that was asked for."""
        with self._lock:
            self._drop_old()
            if key not in self._operations:
                self._operations[key] = _Operation(begin())

    def get(self, key: OperationKey) -> Future[Any] | None:
        """The operation's future; None for a key that nobody used, or whose result was dropped."""
        with self._lock:
            self._drop_old()
            operation = self._operations.get(key)
            if operation is None:
                return None
            operation.told = operation.told or operation.future.done()
            return operation.future

    def untold(self) -> bool:
        """Whether the end of an operation, or how it ended, is still to be told."""
        with self._lock:
            return any(not operation.told for operation in self._operations.values())

    def wait_until_told(self, seconds: float) -> None:
        """Until somebody has asked for every result, but not longer than this."""
        end = time.monotonic() + seconds
        while self.untold() and time.monotonic() < end:
            time.sleep(0.05)

    def _drop_old(self) -> None:
        oldest = time.monotonic() - self._store_seconds
        self._operations = {
            key: operation
            for key, operation in self._operations.items()
            if operation.ended is None or operation.ended > oldest
        }
