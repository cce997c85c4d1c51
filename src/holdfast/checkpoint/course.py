"""Tells in the log what becomes of a snapshot that somebody asked for, all under its trigger id."""

from __future__ import annotations

import logging

from holdfast.checkpoint.completed import CompletedCheckpoint
from holdfast.checkpoint.job_facts import JobFacts
from holdfast.checkpoint.pending import PendingCheckpoint
from holdfast.checkpoint.reasons import CheckpointFailureReason
from holdfast.state.handles import SubtaskSnapshot

_log = logging.getLogger(__name__)


def log_begin(pending: PendingCheckpoint) -> None:
    """Periodic checkpoints have no trigger id, and tell nothing."""
    request = pending.request
    if request.trigger_id:
        _log.info(
            "Trigger %s: it is snapshot %d (%s), whose barrier goes through epoch %d%s",
            request.trigger_id,
            request.checkpoint_id,
            request.checkpoint_type.value,
            request.epoch,
            f", to {pending.savepoint.path}" if pending.savepoint is not None else "",
        )


def log_acknowledged(snapshot: SubtaskSnapshot, job: JobFacts, millis: int) -> None:
    """Note a snapshot under the trigger id that came with it, which it has from its barrier."""
    if snapshot.trigger_id:
        operator = next(each for each in job.operators if each.operator_id == snapshot.operator_id)
        _log.info(
            "Trigger %s: '%s' (%d/%d) acknowledged after %d ms, with %d bytes",
            snapshot.trigger_id,
            operator.name,
            snapshot.subtask + 1,
            operator.parallelism,
            millis,
            snapshot.bytes_written,
        )


def log_completed(pending: PendingCheckpoint, completed: CompletedCheckpoint) -> None:
    if pending.request.trigger_id:
        _log.info(
            "Trigger %s: snapshot %d is complete: %s",
            pending.request.trigger_id,
            completed.checkpoint_id,
            completed.location,
        )


def log_aborted(pending: PendingCheckpoint, reason: CheckpointFailureReason, text: str) -> None:
    told = f"Trigger {pending.request.trigger_id}: " if pending.request.trigger_id else ""
    # That an attempt failed is told by itself, and nobody asked for this checkpoint.
    implied = reason is CheckpointFailureReason.EPOCH_FAILED and not told
    level = logging.INFO if implied else logging.WARNING
    _log.log(level, "%sCheckpoint %d was aborted: %s", told, pending.checkpoint_id, text)
