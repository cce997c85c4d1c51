"""Snapshots that somebody asked for: what is wanted, and in which order it is taken up."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import StrEnum

from holdfast.checkpoint.completed import CompletedCheckpoint
from holdfast.checkpoint.reasons import CheckpointFailureReason
from holdfast.errors import CheckpointError
from holdfast.state.handles import SavepointFormat, SnapshotType

_QUEUE_LIMIT = 1000


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
    #: Where a savepoint goes, and what it is written in.
    directory: str = ""
    savepoint_format: SavepointFormat = SavepointFormat.CANONICAL
    #: The input counts as ended first: event time comes to its end and functions finish.
    drain: bool = False
    #: The job is cancelled behind the savepoint.
    cancel_job: bool = False
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

    def succeed(self) -> None:
        if not self.outcome.done() and self.completed is not None:
            self.outcome.set_result(self.completed)


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
            trigger.fail(reason)

    def add(self, trigger: SnapshotTrigger) -> None:
        """Wait for an epoch; a request that cannot be taken fails at once."""
        with self._lock:
            if self._open and len(self._waiting) < self._limit:
                self._waiting.append(trigger)
                self._waiting.sort(key=lambda waiting: not waiting.snapshot_type.is_savepoint)
                return
            running = self._open
        reasons = CheckpointFailureReason
        trigger.fail(reasons.TOO_MANY_CHECKPOINT_REQUESTS if running else reasons.NOT_ALL_REQUIRED_TASKS_RUNNING)

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
