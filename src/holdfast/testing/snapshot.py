"""What a harness stores, and another one starts from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from holdfast.errors import RestoreError
from holdfast.runtime.epoch import RestoredJob
from holdfast.runtime.plan import OperatorSpec
from holdfast.state.handles import CheckpointMetadata, CheckpointRequest, OperatorRecord, SubtaskSnapshot
from holdfast.state.snapshot_files import InlineSnapshotReader
from holdfast.state.snapshot_io import SnapshotReader


@dataclass(frozen=True)
class HarnessSnapshot:
    """The state of one subtask, or of several, at a checkpoint. It stays valid whatever becomes of its harness."""

    checkpoint_id: int
    epoch: int
    attempt: int
    record: OperatorRecord
    reader: SnapshotReader
    #: The jobs that wrote it: each harness is one.
    job_ids: tuple[str, ...] = ()

    @classmethod
    def of_one(
        cls, operator: OperatorSpec, request: CheckpointRequest, snapshot: SubtaskSnapshot, *job_ids: str
    ) -> HarnessSnapshot:
        """What one subtask wrote into the driver's memory."""
        record = OperatorRecord(
            operator.operator_id,
            operator.uid,
            operator.name,
            operator.parallelism,
            operator.max_parallelism,
            (snapshot,),
        )
        return cls(request.checkpoint_id, request.epoch, request.attempt, record, InlineSnapshotReader(), job_ids)

    @classmethod
    def of_checkpoint(cls, metadata: CheckpointMetadata, reader: SnapshotReader, operator_id: str) -> HarnessSnapshot:
        """The part of a completed checkpoint that belongs to one operator."""
        record = next((r for r in metadata.operators if r.operator_id == operator_id), None)
        if record is None:
            raise RestoreError(f"Checkpoint {metadata.checkpoint_id} has no state of operator {operator_id}.")
        return cls(metadata.checkpoint_id, metadata.epoch, metadata.attempt, record, reader)

    @classmethod
    def merged(cls, taken: HarnessSnapshot | Sequence[HarnessSnapshot]) -> HarnessSnapshot:
        """One snapshot of all subtasks, from one of each."""
        snapshots = [taken] if isinstance(taken, HarnessSnapshot) else taken
        if not snapshots:
            raise RestoreError("There is no snapshot to start from; give one of every subtask.")
        first = snapshots[0]
        subtasks = sorted((s for snapshot in snapshots for s in snapshot.record.subtasks), key=lambda s: s.subtask)
        layouts = {(s.record.parallelism, s.record.max_parallelism) for s in snapshots}
        found = [s.subtask for s in subtasks]
        if len(layouts) > 1 or found != list(range(first.record.parallelism)):
            raise RestoreError(
                f"The snapshots are of subtasks {found} with (parallelism, maximum parallelism) {sorted(layouts)}; "
                "expected one of every subtask, all with the same."
            )
        record = msgspec.structs.replace(first.record, subtasks=tuple(subtasks))
        checkpoint_id = max(s.checkpoint_id for s in snapshots)
        epoch, attempt = max(s.epoch for s in snapshots), max(s.attempt for s in snapshots)
        job_ids = tuple(job_id for s in snapshots for job_id in s.job_ids)
        return cls(checkpoint_id, epoch, attempt, record, first.reader, job_ids)

    @property
    def layout(self) -> dict[str, int]:
        """The options of a harness that has the same subtasks."""
        return {"parallelism": self.record.parallelism, "max_parallelism": self.record.max_parallelism}

    @property
    def bytes_written(self) -> int:
        """How much was written for this snapshot alone, without the files that it shares with earlier ones."""
        return sum(subtask.bytes_written for subtask in self.record.subtasks)

    def of_subtask(self, subtask: int, parallelism: int, max_parallelism: int, backend: str) -> SubtaskSnapshot | None:
        """What deltas of a subtask may build on: None where its key groups moved or the backend changed."""
        if (self.record.parallelism, self.record.max_parallelism) != (parallelism, max_parallelism):
            return None
        found = next(s for s in self.record.subtasks if s.subtask == subtask)
        return found if found.keyed is None or found.keyed.backend == backend else None

    def restored_job(self) -> RestoredJob:
        return RestoredJob(self.checkpoint_id, self.epoch, (self.record,))
