"""What outlives the driver of a job: who leads it, its completed checkpoints, their numbers."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.checkpoint.completed_store import CompletedCheckpointStore
from holdfast.checkpoint.ids import CheckpointIdCounter, LocalCheckpointIdCounter
from holdfast.checkpoint.leadership import Leadership, SoleLeadership
from holdfast.checkpoint.storage import CheckpointStorage


@dataclass(frozen=True)
class JobServices:
    """The three contracts by which drivers of one job follow one another, all of one kind: in the driver's memory, in
    the checkpoint directory, or in ZooKeeper.
    """

    leadership: Leadership
    store: CompletedCheckpointStore
    ids: CheckpointIdCounter

    @classmethod
    def local(
        cls, storage: CheckpointStorage, store: CompletedCheckpointStore, leadership: Leadership | None = None
    ) -> JobServices:
        """For a driver that leads already, and for as long as it lives."""
        return cls(leadership or SoleLeadership(), store, LocalCheckpointIdCounter(storage.seen_ids()))
