"""Numbers about checkpoints, for people, REST and metrics."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from enum import StrEnum

from holdfast.checkpoint.completed import CompletedCheckpoint
from holdfast.checkpoint.reasons import CheckpointFailureReason
from holdfast.state.handles import CheckpointRequest, SavepointFormat, SnapshotType, SubtaskSnapshot

#: Completed checkpoints whose sizes and durations are summed up.
_SUMMED_UP = 1_000


class CheckpointStatus(StrEnum):
    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


@dataclass(frozen=True)
class SubtaskStatistics:
    """One acknowledgement; times in milliseconds. ``state_size`` is known when the checkpoint is complete."""

    acknowledged_at: int
    duration: int
    start_delay_millis: int
    alignment_millis: int
    sync_millis: int
    async_millis: int
    bytes_written: int
    state_size: int = 0


@dataclass
class CheckpointStatistics:
    """One checkpoint. ``bytes_written`` is what it added, ``state_size`` what a restore of it reads."""

    checkpoint_id: int
    checkpoint_type: SnapshotType
    epoch: int
    trigger_timestamp: int
    num_subtasks: int
    full: bool
    savepoint_format: SavepointFormat | None = None
    status: CheckpointStatus = CheckpointStatus.IN_PROGRESS
    end_timestamp: int | None = None
    bytes_written: int = 0
    state_size: int = 0
    location: str | None = None
    failure_reason: CheckpointFailureReason | None = None
    failure_message: str | None = None
    subtasks: dict[tuple[str, int], SubtaskStatistics] = field(default_factory=dict)

    @property
    def duration(self) -> int | None:
        """From trigger to the end; None while in progress."""
        return None if self.end_timestamp is None else self.end_timestamp - self.trigger_timestamp

    @property
    def latest_acknowledgement(self) -> int | None:
        # From a copy: the job goes on acknowledging while others look.
        return max((entry.acknowledged_at for entry in dict(self.subtasks).values()), default=None)


@dataclass(frozen=True)
class CheckpointCounts:
    restored: int = 0
    total: int = 0
    in_progress: int = 0
    completed: int = 0
    failed: int = 0


@dataclass(frozen=True)
class RestoredCheckpoint:
    checkpoint_id: int
    restore_timestamp: int
    location: str
    is_savepoint: bool = False


@dataclass(frozen=True)
class CompletedNumbers:
    """What is summed up of a completed checkpoint."""

    bytes_written: int
    state_size: int
    duration: int


class CheckpointStatsTracker:
    """Follows checkpoints through their life; keeps the last ``history_size``, oldest first."""

    def __init__(self, history_size: int = 10) -> None:
        self.counts = CheckpointCounts()
        self.history: deque[CheckpointStatistics] = deque(maxlen=history_size)
        self.completed_numbers: deque[CompletedNumbers] = deque(maxlen=_SUMMED_UP)
        self.latest_completed: CheckpointStatistics | None = None
        self.latest_savepoint: CheckpointStatistics | None = None
        self.latest_failed: CheckpointStatistics | None = None
        self.latest_restored: RestoredCheckpoint | None = None
        self._running: dict[int, CheckpointStatistics] = {}

    def triggered(self, request: CheckpointRequest, num_subtasks: int) -> None:
        entry = CheckpointStatistics(
            checkpoint_id=request.checkpoint_id,
            checkpoint_type=request.checkpoint_type,
            epoch=request.epoch,
            trigger_timestamp=request.timestamp,
            num_subtasks=num_subtasks,
            full=request.base_epoch is None,
            savepoint_format=request.savepoint_format,
        )
        self._running[request.checkpoint_id] = entry
        self.history.append(entry)
        self.counts = replace(self.counts, total=self.counts.total + 1, in_progress=self.counts.in_progress + 1)

    def acknowledged(self, checkpoint_id: int, snapshot: SubtaskSnapshot, now: int) -> None:
        entry = self._running[checkpoint_id]
        entry.bytes_written += snapshot.bytes_written
        entry.subtasks[snapshot.operator_id, snapshot.subtask] = SubtaskStatistics(
            acknowledged_at=now,
            duration=now - entry.trigger_timestamp,
            start_delay_millis=snapshot.start_delay_millis,
            alignment_millis=snapshot.alignment_millis,
            sync_millis=snapshot.sync_millis,
            async_millis=snapshot.async_millis,
            bytes_written=snapshot.bytes_written,
        )

    def completed(self, checkpoint: CompletedCheckpoint, now: int) -> None:
        entry = self._end(checkpoint.checkpoint_id, CheckpointStatus.COMPLETED, now)
        for operator in checkpoint.metadata.operators:
            for snapshot in operator.subtasks:
                self._add_state(entry, snapshot)
        entry.location = checkpoint.location
        self.completed_numbers.append(
            CompletedNumbers(entry.bytes_written, entry.state_size, now - entry.trigger_timestamp)
        )
        if entry.checkpoint_type.is_savepoint:
            self.latest_savepoint = entry
        else:
            self.latest_completed = entry
        self.counts = replace(self.counts, completed=self.counts.completed + 1)

    def failed(self, checkpoint_id: int, reason: CheckpointFailureReason, message: str, now: int) -> None:
        entry = self._end(checkpoint_id, CheckpointStatus.FAILED, now)
        entry.failure_reason = reason
        entry.failure_message = message
        self.latest_failed = entry
        self.counts = replace(self.counts, failed=self.counts.failed + 1)

    def restored(self, checkpoint: CompletedCheckpoint, now: int) -> None:
        is_savepoint = checkpoint.metadata.checkpoint_type.is_savepoint
        self.latest_restored = RestoredCheckpoint(checkpoint.checkpoint_id, now, checkpoint.location, is_savepoint)
        self.counts = replace(self.counts, restored=self.counts.restored + 1)

    @staticmethod
    def _add_state(entry: CheckpointStatistics, snapshot: SubtaskSnapshot) -> None:
        size = sum(handle.size for handle in snapshot.handles())
        entry.state_size += size
        subtask = (snapshot.operator_id, snapshot.subtask)
        if subtask in entry.subtasks:
            entry.subtasks[subtask] = replace(entry.subtasks[subtask], state_size=size)

    def _end(self, checkpoint_id: int, status: CheckpointStatus, now: int) -> CheckpointStatistics:
        entry = self._running.pop(checkpoint_id)
        entry.status = status
        entry.end_timestamp = now
        self.counts = replace(self.counts, in_progress=self.counts.in_progress - 1)
        return entry
