"""What an attempt starts from: a completed checkpoint, or a savepoint, matched with the operators of the job."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.checkpoint.completed import CompletedCheckpoint
from holdfast.checkpoint.restore_rules import RestoreRules
from holdfast.runtime.epoch import RestoredJob
from holdfast.state.handles import CheckpointMetadata, OperatorRecord
from holdfast.state.keys import KEY_HASH
from holdfast.state.snapshot_io import SnapshotReader
from holdfast.types.settings import RecoverySettings


@dataclass(frozen=True)
class RestorePoint:
    """What an attempt starts from."""

    completed: CompletedCheckpoint
    reader: SnapshotReader
    operators: tuple[OperatorRecord, ...]
    #: True for a savepoint, and for a checkpoint of another job: it is none of those that the job keeps, and no file of
    #: it may be referenced by later ones.
    foreign: bool

    @property
    def metadata(self) -> CheckpointMetadata:
        return self.completed.metadata

    @property
    def relabelled(self) -> bool:
        """Whether an operator took over what is stored under another id. A delta would then build on the wrong one."""
        return any(record not in self.metadata.operators for record in self.operators)

    def restored_job(self) -> RestoredJob:
        return RestoredJob(self.metadata.checkpoint_id, self.metadata.epoch, self.operators)


def restore_rules(recovery: RecoverySettings) -> RestoreRules:
    return RestoreRules(KEY_HASH, recovery.ignore_unclaimed, recovery.change_max_parallelism)
