"""What others ask of a running job: to stop waiting, to be cancelled."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from holdfast.checkpoint.snapshot_triggers import SnapshotTrigger
from holdfast.errors import HoldfastError
from holdfast.job.rescaling import Rescaling


class JobCancelled(HoldfastError):
    """The job was asked to end. Not a failure: nothing is restarted."""


class JobControl:
    """Shared between the thread that runs a job and those that ask something of it."""

    def __init__(self) -> None:
        self._wake = threading.Condition()
        self._cancelled = False
        self._interrupt: Callable[[], None] | None = None
        #: The savepoint that the job is ending with.
        self.ending: SnapshotTrigger | None = None
        #: Another parallelism that was asked for.
        self.rescaling: Rescaling | None = None

    def cancel(self) -> None:
        with self._wake:
            self._cancelled = True
            self._wake.notify_all()
            interrupt = self._interrupt
        if interrupt is not None:
            interrupt()

    @contextmanager
    def interrupted_by_cancel(self, interrupt: Callable[[], None] | None) -> Iterator[None]:
        """While the block runs, whoever cancels the job calls ``interrupt`` too, so that the block comes to its end."""
        with self._wake:
            self._interrupt = interrupt
            cancelled = self._cancelled
        try:
            if cancelled and interrupt is not None:
                self.check()
            yield
        finally:
            with self._wake:
                self._interrupt = None

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def check(self) -> None:
        if self._cancelled:
            raise JobCancelled("The job was cancelled.")

    def ask_to_rescale(self, rescaling: Rescaling) -> bool:
        """False when something else was asked for before."""
        with self._wake:
            if self.rescaling is not None:
                return False
            self.rescaling = rescaling
            self._wake.notify_all()
            return True

    def take_rescaling(self) -> Rescaling | None:
        """Whoever has it answers it."""
        with self._wake:
            rescaling, self.rescaling = self.rescaling, None
            return rescaling

    def pause(self, seconds: float) -> None:
        """Wait; JobCancelled as soon as the job is cancelled."""
        self.sleep(seconds)
        self.check()

    def wake(self) -> None:
        """Something was asked for."""
        with self._wake:
            self._wake.notify_all()

    def sleep(self, seconds: float, unless: Callable[[], bool] = lambda: False) -> None:
        """Wait, unless the job is cancelled or ``unless`` holds, or somebody asks for something meanwhile."""
        if seconds <= 0:
            return
        with self._wake:
            if not self._cancelled and not unless():
                self._wake.wait(seconds)
