"""Answers about checkpoints, with Flink's field names. Sizes are bytes, times milliseconds.

Nothing is buffered or persisted in channels here, so what Flink tells about that is 0.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")


class Counts(msgspec.Struct, frozen=True):
    restored: int
    total: int
    in_progress: int
    completed: int
    failed: int


class Distribution(msgspec.Struct, frozen=True):
    min: int
    max: int
    avg: int
    p50: float
    p90: float
    p95: float
    p99: float
    p999: float


class Summary(msgspec.Struct, frozen=True):
    """Statistics of completed checkpoints."""

    checkpointed_size: Distribution
    state_size: Distribution
    end_to_end_duration: Distribution
    alignment_buffered: Distribution
    processed_data: Distribution
    persisted_data: Distribution


class TaskCheckpoint(msgspec.Struct, frozen=True):
    """The part of one vertex."""

    id: int
    status: str
    latest_ack_timestamp: int
    checkpointed_size: int
    state_size: int
    end_to_end_duration: int
    alignment_buffered: int
    processed_data: int
    persisted_data: int
    num_subtasks: int
    num_acknowledged_subtasks: int


class Checkpoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """``external_path`` and ``discarded`` are those of a completed checkpoint, ``failure_timestamp`` and
    ``failure_message`` those of a failed one."""

    class_name: str = msgspec.field(name="className")
    id: int
    status: str
    is_savepoint: bool
    savepoint_format: str | None = msgspec.field(name="savepointFormat")
    trigger_timestamp: int
    latest_ack_timestamp: int
    checkpointed_size: int
    state_size: int
    end_to_end_duration: int
    alignment_buffered: int
    processed_data: int
    persisted_data: int
    num_subtasks: int
    num_acknowledged_subtasks: int
    checkpoint_type: str
    tasks: dict[str, TaskCheckpoint]
    external_path: str | None = None
    discarded: bool | None = None
    failure_timestamp: int | None = None
    failure_message: str | None = None


class Restored(msgspec.Struct, frozen=True):
    id: int
    restore_timestamp: int
    is_savepoint: bool
    external_path: str


class Latest(msgspec.Struct, frozen=True):
    completed: Checkpoint | None
    savepoint: Checkpoint | None
    failed: Checkpoint | None
    restored: Restored | None


class CheckpointingStatistics(msgspec.Struct, frozen=True):
    counts: Counts
    summary: Summary
    latest: Latest
    history: list[Checkpoint]


class CheckpointDuration(msgspec.Struct, Generic[T], frozen=True, rename={"asynchronous": "async"}):
    sync: T
    asynchronous: T


class Alignment(msgspec.Struct, Generic[T], frozen=True):
    buffered: T
    processed: T
    persisted: T
    duration: T


class SubtaskCheckpoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """All but the first three are left out while the subtask has not acknowledged."""

    class_name: str = msgspec.field(name="className")
    index: int
    status: str
    ack_timestamp: int | None = None
    end_to_end_duration: int | None = None
    checkpointed_size: int | None = None
    state_size: int | None = None
    checkpoint: CheckpointDuration[int] | None = None
    alignment: Alignment[int] | None = None
    start_delay: int | None = None
    unaligned_checkpoint: bool | None = None
    aborted: bool | None = None


class SubtaskSummary(msgspec.Struct, frozen=True):
    checkpointed_size: Distribution
    state_size: Distribution
    end_to_end_duration: Distribution
    checkpoint_duration: CheckpointDuration[Distribution]
    alignment: Alignment[Distribution]
    start_delay: Distribution


class TaskCheckpointDetails(msgspec.Struct, frozen=True):
    """The part of one vertex, with each of its subtasks."""

    id: int
    status: str
    latest_ack_timestamp: int
    checkpointed_size: int
    state_size: int
    end_to_end_duration: int
    alignment_buffered: int
    processed_data: int
    persisted_data: int
    num_subtasks: int
    num_acknowledged_subtasks: int
    summary: SubtaskSummary
    subtasks: list[SubtaskCheckpoint]


class Externalization(msgspec.Struct, frozen=True):
    enabled: bool
    delete_on_cancellation: bool


class CheckpointConfiguration(msgspec.Struct, frozen=True):
    """``interval`` is 2^63-1 where there are no periodic checkpoints."""

    mode: str
    interval: int
    timeout: int
    min_pause: int
    max_concurrent: int
    externalization: Externalization
    state_backend: str
    checkpoint_storage: str
    unaligned_checkpoints: bool
    tolerable_failed_checkpoints: int
    aligned_checkpoint_timeout: int
    checkpoints_after_tasks_finish: bool
    state_changelog_enabled: bool
    changelog_periodic_materialization_interval: int
    changelog_storage: str
