"""Numbers about a job, for REST and for Prometheus: Flink's, under its names, and how much state was migrated."""

from __future__ import annotations

import time

from holdfast.job.job import JobStatus
from holdfast.server.served_job import ServedJob
from holdfast.server.views_checkpoint import tracker_of
from holdfast.server.views_job import job_ended

#: Not a number: Prometheus does not get it.
EXTERNAL_PATH = "lastCheckpointExternalPath"


def job_metrics(job: ServedJob) -> dict[str, int | str]:
    history, tracker = job.gateway.master.history, tracker_of(job)
    counts, last = tracker.counts, tracker.latest_completed
    up, down = _up_and_down_time(job)
    return {
        "numRestarts": history.restarts,
        "numberOfMigratedEntries": sum(migrated.entries for migrated in history.migrations),
        "uptime": up,
        "downtime": down,
        "totalNumberOfCheckpoints": counts.total,
        "numberOfCompletedCheckpoints": counts.completed,
        "numberOfFailedCheckpoints": counts.failed,
        "numberOfInProgressCheckpoints": counts.in_progress,
        "lastCheckpointDuration": -1 if last is None or last.duration is None else last.duration,
        "lastCheckpointSize": -1 if last is None else last.bytes_written,
        "lastCheckpointFullSize": -1 if last is None else last.state_size,
        "lastCompletedCheckpointId": -1 if last is None else last.checkpoint_id,
        EXTERNAL_PATH: "n/a" if last is None or last.location is None else last.location,
        "lastCheckpointRestoreTimestamp": (
            -1 if tracker.latest_restored is None else tracker.latest_restored.restore_timestamp
        ),
        "lastCheckpointCompletedTimestamp": -1 if last is None or last.end_timestamp is None else last.end_timestamp,
        "lastCheckpointProcessedData": 0 if last is not None else -1,
        "lastCheckpointPersistedData": 0 if last is not None else -1,
    }


def _up_and_down_time(job: ServedJob) -> tuple[int, int]:
    """Milliseconds since the job runs, and since it does not; -1 for both when it has ended."""
    history = job.gateway.master.history
    if job_ended(history):
        return -1, -1
    since = round(1_000 * (time.time() - history.timestamps.get(history.status, time.time())))
    return (since, 0) if history.status is JobStatus.RUNNING else (0, since)
