"""Executors are watched while an epoch runs.

Spark itself notices a lost executor at once, and yet the epoch may go on for minutes: other executors try again and
again to fetch from it. An epoch that has lost a slot cannot count, so it is interrupted.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from holdfast.errors import EpochError
from holdfast.job.engine import EpochRunner

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.25


class ExecutorWatch:
    """Watches the executors of one attempt. Where it cannot be known who holds slots nothing is watched."""

    def __init__(self, runner: EpochRunner, executors: Callable[[], frozenset[str]]) -> None:
        self._runner = runner
        self._executors = executors
        #: The executors with slots, once they are known.
        self._holders: frozenset[str] = frozenset()
        self._changed = threading.Condition()
        self._running = self._closed = False
        self._lost: frozenset[str] = frozenset()
        #: Whether the engine has ever told of one of them: a scheduler that tells of none has not lost all.
        self._told = False
        #: Why they could not be asked for, the last time; and whether it was said.
        self._unknown: Exception | None = None
        self._warned = False
        self._thread: threading.Thread | None = None

    @contextmanager
    def during_epoch(self) -> Iterator[None]:
        """EpochError, in the place of what Spark makes of it, when an executor is lost while the block runs."""
        if self._runner.watched and self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="holdfast-executors", daemon=True)
            self._thread.start()
        self._run(True)
        try:
            yield
        except Exception as error:
            # An error of the loss may come before the loss was looked for.
            if self._look():
                raise self._failure() from error
            raise
        else:
            self._warn()
        finally:
            self._run(False)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _run(self, running: bool) -> None:
        with self._changed:
            self._running = running
            self._changed.notify_all()

    def _failure(self) -> EpochError:
        lost = ", ".join(sorted(self._lost))
        return EpochError(
            f"Of the {len(self._holders)} executors with slots of the job these were lost while an epoch ran: {lost}. "
            "The epoch was interrupted."
        )

    def _warn(self) -> None:
        """When an epoch counts all the same: the application is there, and a loss would not be seen."""
        if self._unknown is not None and not self._warned:
            self._warned = True
            logger.warning(
                "Executors are not watched, because the engine does not tell of them: %s. A lost one is noticed when "
                "the engine gives up to fetch from it, which may take minutes.",
                self._unknown,
            )

    def _watch(self) -> None:
        while self._await_epoch():
            if self._look():
                # Again and again: the job of the epoch may not have begun yet.
                self._runner.interrupt()

    def _look(self) -> bool:
        """Whether an executor with slots is lost. None comes back under its id."""
        if not self._runner.watched:
            return False
        try:
            self._holders = self._holders or self._runner.holders()
            there = self._executors()
            self._told = self._told or bool(self._holders & there)
            if self._told:
                self._lost |= self._holders - there
        except Exception as error:
            # If the application is gone, whoever runs the epoch learns that by itself.
            self._unknown = error
        return bool(self._lost)

    def _await_epoch(self) -> bool:
        """Until it is time to look again, while an epoch runs; False when the attempt is over."""
        with self._changed:
            self._changed.wait(_POLL_SECONDS)
            self._changed.wait_for(lambda: self._running or self._closed)
            return not self._closed
