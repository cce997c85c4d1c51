"""Snapshots that somebody asked for: what is wanted, and in which order it is taken up."""

from __future__ import annotations

import logging
import secrets
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import StrEnum

from holdfast.checkpoint.completed import CompletedCheckpoint
from holdfast.checkpoint.reasons import CheckpointFailureReason
from holdfast.checkpoint.savepoint import SavepointLocation
from holdfast.errors import CheckpointError, StorageError
from holdfast.state.handles import SavepointFormat, SnapshotType

_log = logging.getLogger(__name__)
_QUEUE_LIMIT = 1000


def new_trigger_id() -> str:
    return secrets.token_hex(16)


class CheckpointKind(StrEnum):
    """What a checkpoint that is triggered by hand holds: CONFIGURED leaves it to the job's settings."""

    CONFIGURED = "CONFIGURED"
    FULL = "FULL"
    INCREMENTAL = "INCREMENTAL"


@dataclass(eq=False)
class SnapshotTrigger:
    """One request for a snapshot. ``outcome`` has the completed snapshot, or a CheckpointError that says why not; with
    one that ends the job, only when the job has ended.
    """

    snapshot_type: SnapshotType = SnapshotType.CHECKPOINT
    kind: CheckpointKind = CheckpointKind.CONFIGURED
    #: By which whoever asked for it follows it; empty where nobody did.
    trigger_id: str = ""
    #: Where a savepoint goes, and what it is written in.
    location: SavepointLocation | None = None
    savepoint_format: SavepointFormat = SavepointFormat.CANONICAL
    #: The input counts as ended first: event time comes to its end and functions finish.
    drain: bool = False
    #: The job is cancelled behind the savepoint.
    cancel_job: bool = False
    #: Whether its failure is one of those that a job tolerates only so many of; not where the job can do without it.
    counts: bool = True
    outcome: Future[CompletedCheckpoint] = field(default_factory=Future)
    #: The snapshot, once it is there.
    completed: CompletedCheckpoint | None = None

    @property
    def ends_job(self) -> bool:
        """Whether nothing else may happen in the job from this snapshot on, if it completes."""
        return self.cancel_job or self.snapshot_type is SnapshotType.SYNC_SAVEPOINT

    def fail(self, reason: CheckpointFailureReason, message: str = "") -> None:
        if not self.outcome.done():
            self.outcome.set_exception(CheckpointError(f"{reason.text} {message}".rstrip(), reason))

    def refuse(self, reason: CheckpointFailureReason, message: str = "") -> None:
        """It does not begin. The folder that waited for it goes, in a thread: a storage may take its time."""
        self.fail(reason, message)
        if self.location is not None:
            threading.Thread(target=_discard, args=(self.location,), name="holdfast-refused", daemon=True).start()

    def succeed(self) -> None:
        if not self.outcome.done() and self.completed is not None:
            self.outcome.set_result(self.completed)


def _discard(location: SavepointLocation) -> None:
    try:
        location.discard()
    except StorageError as error:
        _log.warning("The folder %s of a savepoint that did not begin stays: %s", location.path, error)


class TriggerQueue:
    """Requests that wait for an epoch to carry them: savepoints first, then checkpoints, each in their order.

    Savepoints go whatever else is pending; a checkpoint waits until fewer than the allowed number are. Periodic
    checkpoints come behind all of these and need no place here. Any thread may add; one takes.
    """

    def __init__(self, limit: int = _QUEUE_LIMIT) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._waiting: list[SnapshotTrigger] = []
        self._open = False

    def open(self) -> None:
        """An attempt runs: requests are taken from now on."""
        with self._lock:
            self._open = True

    def close(self, reason: CheckpointFailureReason) -> None:
        """No attempt runs, for now or for good: what waits fails, and so does what comes."""
        with self._lock:
            self._open = False
            waiting, self._waiting = self._waiting, []
        for trigger in waiting:
            trigger.refuse(reason)

    @property
    def is_open(self) -> bool:
        with self._lock:
            return self._open

    def add(self, trigger: SnapshotTrigger) -> None:
        """Wait for an epoch; a request that cannot be taken fails at once."""
        with self._lock:
            if self._open and len(self._waiting) < self._limit:
                self._waiting.append(trigger)
                self._waiting.sort(key=lambda waiting: not waiting.snapshot_type.is_savepoint)
                return
            running = self._open
        reasons = CheckpointFailureReason
        trigger.refuse(reasons.TOO_MANY_CHECKPOINT_REQUESTS if running else reasons.NOT_ALL_REQUIRED_TASKS_RUNNING)

    def waiting(self, may_checkpoint: bool = True) -> bool:
        """Whether ``take`` would give something."""
        with self._lock:
            return self._head(may_checkpoint) is not None

    def take(self, may_checkpoint: bool) -> SnapshotTrigger | None:
        """The next request; without ``may_checkpoint`` only a savepoint."""
        with self._lock:
            head = self._head(may_checkpoint)
            if head is not None:
                self._waiting.remove(head)
            return head

    def take_last(self) -> SnapshotTrigger | None:
        """The next request if it ends the job: no epoch reads input any more, and nothing comes behind it."""
        with self._lock:
            head = self._head(may_checkpoint=True)
            if head is None or not head.ends_job:
                return None
            self._waiting.remove(head)
            return head

    def _head(self, may_checkpoint: bool) -> SnapshotTrigger | None:
        head = self._waiting[0] if self._waiting else None
        if head is None or head.snapshot_type.is_savepoint or may_checkpoint:
            return head
        return None
