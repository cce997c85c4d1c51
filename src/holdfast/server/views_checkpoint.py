"""From the statistics of checkpoints to Flink's answers about them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from holdfast.checkpoint.statistics import (
    CheckpointStatistics,
    CheckpointStatsTracker,
    CheckpointStatus,
    RestoredCheckpoint,
    SubtaskStatistics,
)
from holdfast.job.execution_graph import ExecutionVertex
from holdfast.server import models_checkpoint as models
from holdfast.server.served_job import ServedJob
from holdfast.types.clock import wall_clock
from holdfast.types.settings import Retention

#: What Flink gives as the interval of a job without periodic checkpoints.
DISABLED_INTERVAL = 2**63 - 1


def checkpointing_enabled(job: ServedJob) -> bool:
    return job.gateway.job.checkpoint.enabled or tracker_of(job).counts.total > 0


def tracker_of(job: ServedJob) -> CheckpointStatsTracker:
    return job.gateway.master.checkpoints.coordinator.statistics


def statistics(job: ServedJob) -> models.CheckpointingStatistics:
    tracker, vertices = tracker_of(job), job.gateway.master.execution_graph.vertices

    def shown(entry: CheckpointStatistics | None) -> models.Checkpoint | None:
        return None if entry is None else checkpoint(entry, vertices)

    counts = tracker.counts
    return models.CheckpointingStatistics(
        counts=models.Counts(counts.restored, counts.total, counts.in_progress, counts.completed, counts.failed),
        summary=_summary(tracker),
        latest=models.Latest(
            completed=shown(tracker.latest_completed),
            savepoint=shown(tracker.latest_savepoint),
            failed=shown(tracker.latest_failed),
            restored=_restored(tracker.latest_restored),
        ),
        history=[checkpoint(entry, vertices) for entry in reversed(list(tracker.history))],
    )


def known(job: ServedJob) -> list[CheckpointStatistics]:
    """Checkpoints that can be asked for one by one."""
    tracker = tracker_of(job)
    entries = [*tracker.history, tracker.latest_completed, tracker.latest_savepoint, tracker.latest_failed]
    return list({entry.checkpoint_id: entry for entry in entries if entry is not None}.values())


def checkpoint(
    entry: CheckpointStatistics, vertices: Sequence[ExecutionVertex], with_tasks: bool = False
) -> models.Checkpoint:
    parts = [_Part(entry, vertex) for vertex in vertices]
    completed, failed = entry.status is CheckpointStatus.COMPLETED, entry.status is CheckpointStatus.FAILED
    return models.Checkpoint(
        class_name=entry.status.value.lower(),
        id=entry.checkpoint_id,
        status=entry.status.value,
        is_savepoint=entry.checkpoint_type.is_savepoint,
        savepoint_format=entry.savepoint_format.value if entry.savepoint_format else None,
        trigger_timestamp=entry.trigger_timestamp,
        latest_ack_timestamp=-1 if entry.latest_acknowledgement is None else entry.latest_acknowledgement,
        checkpointed_size=entry.bytes_written,
        state_size=entry.state_size or entry.bytes_written,
        end_to_end_duration=_duration(entry),
        alignment_buffered=0,
        processed_data=0,
        persisted_data=0,
        num_subtasks=sum(vertex.parallelism for vertex in vertices),
        num_acknowledged_subtasks=sum(len(part.acknowledged) for part in parts),
        checkpoint_type=entry.checkpoint_type.value,
        tasks={part.vertex.vertex_id: _task(entry, part) for part in parts} if with_tasks else {},
        external_path=entry.location if completed else None,
        discarded=False if completed else None,
        failure_timestamp=entry.end_timestamp if failed else None,
        failure_message=entry.failure_message if failed else None,
    )


def task_details(entry: CheckpointStatistics, vertex: ExecutionVertex) -> models.TaskCheckpointDetails:
    part = _Part(entry, vertex)
    task, acknowledged = _task(entry, part), list(part.acknowledged.values())
    none = distribution([0] if acknowledged else [])
    return models.TaskCheckpointDetails(
        **{field: getattr(task, field) for field in task.__struct_fields__},
        summary=models.SubtaskSummary(
            checkpointed_size=distribution([s.bytes_written for s in acknowledged]),
            state_size=distribution([s.state_size for s in acknowledged]),
            end_to_end_duration=distribution([s.duration for s in acknowledged]),
            checkpoint_duration=models.CheckpointDuration(
                sync=distribution([s.sync_millis for s in acknowledged]),
                asynchronous=distribution([s.async_millis for s in acknowledged]),
            ),
            alignment=models.Alignment(none, none, none, distribution([s.alignment_millis for s in acknowledged])),
            start_delay=distribution([s.start_delay_millis for s in acknowledged]),
        ),
        subtasks=[_subtask(part, index) for index in range(vertex.parallelism)],
    )


def configuration(job: ServedJob) -> models.CheckpointConfiguration:
    settings = job.gateway.job.checkpoint
    return models.CheckpointConfiguration(
        mode=settings.mode.value.lower(),
        interval=DISABLED_INTERVAL if settings.interval_ms is None else settings.interval_ms,
        timeout=settings.timeout_ms,
        min_pause=settings.min_pause_ms,
        max_concurrent=settings.max_concurrent,
        externalization=models.Externalization(
            enabled=settings.retention is not Retention.NO_EXTERNALIZED_CHECKPOINTS,
            delete_on_cancellation=settings.retention is not Retention.RETAIN_ON_CANCELLATION,
        ),
        state_backend=job.gateway.job.facts.backend or "",
        checkpoint_storage=settings.storage.value,
        unaligned_checkpoints=False,
        tolerable_failed_checkpoints=settings.tolerable_failures,
        aligned_checkpoint_timeout=0,
        checkpoints_after_tasks_finish=True,
        state_changelog_enabled=False,
        changelog_periodic_materialization_interval=0,
        changelog_storage="",
    )


def distribution(values: Iterable[int]) -> models.Distribution:
    """All 0 where there are no values."""
    ordered = sorted(values)
    if not ordered:
        return models.Distribution(0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0)
    mean = sum(ordered) // len(ordered)
    quantiles = [_quantile(ordered, share) for share in (0.5, 0.9, 0.95, 0.99, 0.999)]
    return models.Distribution(ordered[0], ordered[-1], mean, *quantiles)


def _quantile(ordered: Sequence[int], share: float) -> float:
    """Between the two values around it, as Flink's statistics estimate it."""
    position = share * (len(ordered) + 1)
    if position < 1:
        return float(ordered[0])
    if position >= len(ordered):
        return float(ordered[-1])
    below = math.floor(position)
    return ordered[below - 1] + (position - below) * (ordered[below] - ordered[below - 1])


class _Part:
    """What the subtasks of one vertex acknowledged: a subtask has when all operators of its chain have."""

    def __init__(self, entry: CheckpointStatistics, vertex: ExecutionVertex) -> None:
        self.vertex = vertex
        told = dict(entry.subtasks)
        self.acknowledged: dict[int, SubtaskStatistics] = {}
        for subtask in range(vertex.parallelism):
            of_chain = [told.get((operator_id, subtask)) for operator_id in vertex.operator_ids]
            present = [one for one in of_chain if one is not None]
            if len(present) == len(of_chain):
                self.acknowledged[subtask] = SubtaskStatistics(
                    acknowledged_at=max(one.acknowledged_at for one in present),
                    duration=max(one.duration for one in present),
                    start_delay_millis=max(one.start_delay_millis for one in present),
                    alignment_millis=max(one.alignment_millis for one in present),
                    sync_millis=max(one.sync_millis for one in present),
                    async_millis=max(one.async_millis for one in present),
                    bytes_written=sum(one.bytes_written for one in present),
                    state_size=sum(one.state_size for one in present),
                )


def _task(entry: CheckpointStatistics, part: _Part) -> models.TaskCheckpoint:
    acknowledged = list(part.acknowledged.values())
    all_of_them = len(acknowledged) == part.vertex.parallelism
    status = CheckpointStatus.COMPLETED if all_of_them else entry.status
    return models.TaskCheckpoint(
        id=entry.checkpoint_id,
        status=status.value,
        latest_ack_timestamp=max((one.acknowledged_at for one in acknowledged), default=-1),
        checkpointed_size=sum(one.bytes_written for one in acknowledged),
        state_size=sum(one.state_size or one.bytes_written for one in acknowledged),
        end_to_end_duration=max((one.duration for one in acknowledged), default=-1),
        alignment_buffered=0,
        processed_data=0,
        persisted_data=0,
        num_subtasks=part.vertex.parallelism,
        num_acknowledged_subtasks=len(acknowledged),
    )


def _subtask(part: _Part, index: int) -> models.SubtaskCheckpoint:
    told = part.acknowledged.get(index)
    if told is None:
        return models.SubtaskCheckpoint("pending", index, "pending_or_failed")
    return models.SubtaskCheckpoint(
        class_name="completed",
        index=index,
        status="completed",
        ack_timestamp=told.acknowledged_at,
        end_to_end_duration=told.duration,
        checkpointed_size=told.bytes_written,
        state_size=told.state_size or told.bytes_written,
        checkpoint=models.CheckpointDuration(told.sync_millis, told.async_millis),
        alignment=models.Alignment(0, 0, 0, told.alignment_millis),
        start_delay=told.start_delay_millis,
        unaligned_checkpoint=False,
        aborted=False,
    )


def _summary(tracker: CheckpointStatsTracker) -> models.Summary:
    numbers = list(tracker.completed_numbers)
    none = distribution(0 for _ in numbers)
    return models.Summary(
        checkpointed_size=distribution(n.bytes_written for n in numbers),
        state_size=distribution(n.state_size for n in numbers),
        end_to_end_duration=distribution(n.duration for n in numbers),
        alignment_buffered=none,
        processed_data=none,
        persisted_data=none,
    )


def _restored(restored: RestoredCheckpoint | None) -> models.Restored | None:
    if restored is None:
        return None
    return models.Restored(
        restored.checkpoint_id, restored.restore_timestamp, restored.is_savepoint, restored.location
    )


def _duration(entry: CheckpointStatistics) -> int:
    return max(0, wall_clock() - entry.trigger_timestamp) if entry.duration is None else entry.duration
