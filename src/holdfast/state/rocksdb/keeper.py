"""The thread of a process that looks after its open databases between tasks."""

from __future__ import annotations

import logging
import os
import select
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

_log = logging.getLogger(__name__)


class Kept(Protocol):
    """What the keeper attends to: ``descriptor`` is readable, or -1, and ``attend`` is called when it has something."""

    @property
    def descriptor(self) -> int: ...

    def attend(self) -> None: ...


class Keeper(threading.Thread):
    """Sleeps until another process asks for a database, or a task of this one has given one back."""

    def __init__(self, kept: Callable[[], Sequence[Kept]]) -> None:
        super().__init__(name="holdfast-rocksdb-keeper", daemon=True)
        self._kept = kept
        self._alarm, self._bell = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def wake(self) -> None:
        """Look at all databases now."""
        with suppress(BlockingIOError):
            os.write(self._bell, b"!")

    def run(self) -> None:
        while True:
            waiting = select.poll()
            waiting.register(self._alarm, select.POLLIN)
            for one in self._kept():
                if one.descriptor >= 0:
                    waiting.register(one.descriptor, select.POLLIN)
            waiting.poll()
            with suppress(BlockingIOError):
                os.read(self._alarm, 4096)
            for one in self._kept():
                try:
                    one.attend()
                except Exception:
                    _log.warning("A RocksDB database could not be attended to", exc_info=True)
