"""Calls to a storage that may hang."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import ClassVar, TypeVar

from holdfast.errors import StorageError

T = TypeVar("T")

class Patience:
    """Waits a while for each call, and no longer: whoever asks can do without the answer. For calls that may still be
    carried out later, when nobody expects it. While one has not come back, others are refused at once.
    """

    SECONDS: ClassVar[float] = 10.0

    def __init__(self) -> None:
        self._running: Future[object] | None = None

    def ask(self, what: str, call: Callable[[], T]) -> T:
        """What ``call`` gives or raises; StorageError when it takes too long."""
        if self._running is not None and not self._running.done():
            raise StorageError(f"the storage still does not answer; now it was asked to {what}")
        answer: Future[T] = Future()

        def run() -> None:
            try:
                answer.set_result(call())
            except BaseException as error:
                answer.set_exception(error)

        self._running = answer  # type: ignore[assignment]  # of whatever type was asked for
        threading.Thread(target=run, name="holdfast-storage", daemon=True).start()
        try:
            return answer.result(self.SECONDS)
        except TimeoutError:
            if answer.done():
                raise
            raise StorageError(f"the storage has not answered for {self.SECONDS:g} s; it was asked to {what}") from None
