"""What a checkpoint's metadata says, put together from the acknowledgements. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.checkpoint.completed import CompletedCheckpoint
from holdfast.checkpoint.job_facts import JobFacts
from holdfast.checkpoint.pending import PendingCheckpoint
from holdfast.checkpoint.rebase import compose
from holdfast.state.handles import CheckpointMetadata, OperatorRecord, SubtaskSnapshot


def assemble(
    pending: PendingCheckpoint, job: JobFacts, completion_timestamp: int, properties: Mapping[str, Any]
) -> CheckpointMetadata:
    """Deltas are joined to the files that they continue."""
    request = pending.request
    bases = _subtasks_of(pending.base)
    operators = tuple(
        OperatorRecord(
            operator_id=operator.operator_id,
            uid=operator.uid,
            name=operator.name,
            parallelism=operator.parallelism,
            max_parallelism=operator.max_parallelism,
            subtasks=tuple(
                compose(
                    pending.snapshot_of(operator.operator_id, subtask),
                    bases.get((operator.operator_id, subtask)),
                    full_wanted=request.base_epoch_for(operator.operator_id, subtask) is None,
                )
                for subtask in range(operator.parallelism)
            ),
        )
        for operator in job.operators
    )
    return CheckpointMetadata(
        checkpoint_id=request.checkpoint_id,
        checkpoint_type=request.checkpoint_type,
        job_id=job.job_id,
        job_name=job.job_name,
        attempt=request.attempt,
        epoch=request.epoch,
        trigger_timestamp=request.timestamp,
        completion_timestamp=completion_timestamp,
        key_hash=job.key_hash,
        operators=operators,
        properties=dict(properties),
    )


def _subtasks_of(checkpoint: CompletedCheckpoint | None) -> dict[tuple[str, int], SubtaskSnapshot]:
    if checkpoint is None:
        return {}
    return {
        (operator.operator_id, snapshot.subtask): snapshot
        for operator in checkpoint.metadata.operators
        for snapshot in operator.subtasks
    }
