"""What one epoch asks of its tasks, and what a task answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from holdfast.runtime.envelope import GROUP_SIZE, Barrier
from holdfast.runtime.metric_values import OperatorMetrics
from holdfast.state.handles import CheckpointRequest, OperatorRecord, SnapshotType, StateMigrated, SubtaskSnapshot
from holdfast.state.snapshot_io import SnapshotReader, SnapshotWriter


class NotificationKind(StrEnum):
    COMPLETE = "COMPLETE"
    ABORTED = "ABORTED"


@dataclass(frozen=True, slots=True)
class Notification:
    """The fate of a checkpoint, told to functions with the next epoch."""

    kind: NotificationKind
    checkpoint_id: int


class RestoredJob(msgspec.Struct, frozen=True):
    """A completed checkpoint as the tasks restore it: its records already carry this job's operator ids."""

    checkpoint_id: int
    epoch: int
    operators: tuple[OperatorRecord, ...]

    def record(self, operator_id: str) -> OperatorRecord | None:
        return next((r for r in self.operators if r.operator_id == operator_id), None)


@dataclass(frozen=True, slots=True)
class EpochSpec:
    """One epoch of one attempt. Sent with every task of the epoch, so it stays small."""

    attempt: int
    epoch: int
    #: Nonces that the coordinator accepted for the epoch before, as [level][slot]; empty in the attempt's first epoch.
    accepted: tuple[tuple[str, ...], ...]
    #: The epoch that the attempt began behind: a store may be rebuilt only when the epoch before this one is exactly
    #: that.
    restore_epoch: int
    #: False in an attempt that starts with empty state.
    restored: bool
    rows_per_subtask: int
    max_millis: int
    checkpoint: CheckpointRequest | None = None
    writer: SnapshotWriter | None = None
    reader: SnapshotReader | None = None
    notifications: tuple[Notification, ...] = ()
    #: The epoch of the newest completed checkpoint: change marks up to it are no longer needed.
    durable_epoch: int = -1
    #: Sources are not read: the epoch runs for timers, a checkpoint or a notification.
    read_sources: bool = True
    #: The input counts as ended, though sources may have more: it is for whoever goes on from the savepoint.
    drain: bool = False
    #: Operator ids of the DataFrames that have been read whole by the end of this epoch.
    data_frames_read: frozenset[str] = frozenset()
    #: How many partitions of level 0 Spark reads for each group. In their order, behind the job's own tasks.
    partitions: Mapping[int, int] = field(default_factory=dict)
    #: The last epoch of the attempt: functions are closed at its end and local stores are removed.
    close: bool = False
    #: Drawn by the driver for each attempt: a store that an attempt of the same number of another driver left is not
    #: taken for restored.
    restore_nonce: str = ""
    #: How long a task waits for its snapshot to be stored before it lets the upload go on alone; None is without end.
    upload_wait_seconds: float | None = None
    #: Operator id -> for each subtask the watermark behind which its source stops; of sources that are aligned.
    watermark_bounds: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def barrier(self, nonce: str) -> Barrier:
        """What an execution of this epoch closes its links with; each link adds its count."""
        request = self.checkpoint
        if request is None:
            return Barrier(self.attempt, self.epoch, None, None, nonce, 0)
        number, kind = request.checkpoint_id, request.checkpoint_type
        return Barrier(self.attempt, self.epoch, number, kind, nonce, 0, request.trigger_id)

    def base_nonce(self, level: int, slot: int) -> str:
        """The nonce of the stamp that the task of (level, slot) continues."""
        return self.accepted[level][slot] if self.accepted else f"restore-{self.attempt}-{self.restore_nonce}"


def senders_of(level: int, levels: range, slots: int, partitions: Mapping[int, int]) -> frozenset[int]:
    """Who may send to the tasks of a level: all tasks of the level before, and to level 1 all partitions of
    DataFrames.
    """
    own = range(slots) if level - 1 in levels else ()
    of_data_frames = partitions.items() if level == 1 else ()
    return frozenset((*own, *(group * GROUP_SIZE + index for group, count in of_data_frames for index in range(count))))


@dataclass(frozen=True, slots=True)
class EpochEnd:
    """How an epoch ends for one subtask of a sink."""

    #: The kind of snapshot that is taken behind it; None for an epoch without one.
    snapshot: SnapshotType | None = None
    #: No more rows will come.
    ended: bool = False


class SinkHandle(msgspec.Struct, frozen=True):
    """A transaction that a sink's subtask pre-committed in this epoch."""

    operator_id: str
    subtask: int
    handle: bytes


class OperatorProgress(msgspec.Struct, frozen=True):
    """What one operator's subtask did in the epoch."""

    operator_id: str
    subtask: int
    rows_in: int
    rows_out: int
    watermark: int
    ended: bool
    #: Its rows no longer hold event time back, as nothing has come for so long.
    idle: bool = False


class Consumed(msgspec.Struct, frozen=True, array_like=True):
    """What a task read of one sender: of which execution, and how many envelopes."""

    nonce: str
    envelopes: int


class Acknowledgement(msgspec.Struct, frozen=True, omit_defaults=True):
    """A task's word that it committed its epoch. The coordinator takes an epoch only with one of every task, all
    agreeing on nonces.
    """

    group: int
    level: int
    slot: int
    epoch: int
    nonce: str
    #: By sender; those that sent nothing are not in it.
    consumed: dict[int, Consumed]
    #: How many envelopes the task sent to each slot of the next level, this acknowledgement included.
    sent: dict[int, int] = {}
    progress: tuple[OperatorProgress, ...] = ()
    transactions: tuple[SinkHandle, ...] = ()
    snapshots: tuple[SubtaskSnapshot, ...] = ()
    #: Why no snapshot could be written: the checkpoint is aborted, the epoch counts.
    snapshot_failure: str | None = None
    #: The snapshots are still being stored: the name of the note that will say what became of them.
    late_snapshots: str | None = None
    #: Of the snapshot that somebody asked for, as the barriers brought it.
    trigger_id: str = ""
    #: The earliest processing-time timer of the task's operators, in milliseconds.
    next_timer: int | None = None
    #: Nothing more will come out of any operator of this task.
    ended: bool = False
    #: A source of this task has more than it was to read in this epoch, as far as it knows.
    more: bool = False
    #: Bytes of snapshots that were read to rebuild state, indexes of files and what is inside ``_metadata`` included.
    restored_bytes: int = 0
    #: What became of restored state that had another version or type.
    migrations: tuple[StateMigrated, ...] = ()
    warnings: tuple[str, ...] = ()
    #: What functions have counted since the epoch before.
    metrics: tuple[OperatorMetrics, ...] = ()
    host: str = ""
    executor: str = ""
