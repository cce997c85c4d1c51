"""The completed checkpoints that are kept."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable

from holdfast.checkpoint.completed import CompletedCheckpoint, DamagedCheckpoint
from holdfast.checkpoint.lease import OvertakenCheckpoints
from holdfast.checkpoint.storage import CheckpointStorage, FileCheckpointStorage, is_damage
from holdfast.errors import ConfigurationError, StorageError
from holdfast.storage.filesystem import Storage

_log = logging.getLogger(__name__)


class CompletedCheckpointStore(ABC):
    """Keeps the newest ``num_retained`` completed checkpoints of one job, and which of them sinks began to commit.

    Changed by the driver that leads the job; every change of another one is refused with LeadershipLostError where
    more than one may try.
    """

    def __init__(self, storage: CheckpointStorage, num_retained: int = 1) -> None:
        if num_retained < 1:
            raise ConfigurationError(
                f"execution.checkpointing.num-retained is {num_retained}; at least 1 checkpoint must be kept"
            )
        self._storage = storage
        self._num_retained = num_retained
        self._checkpoints: list[CompletedCheckpoint] = []
        #: What ``recover`` found and does not count: drivers completed it when another one had the job.
        self.overtaken: list[CompletedCheckpoint] = []

    @abstractmethod
    def recover(self) -> list[DamagedCheckpoint]:
        """Find what is stored, as after a restart of the driver, and give what is there and cannot be read."""

    def add(self, checkpoint: CompletedCheckpoint) -> list[CompletedCheckpoint]:
        """Keep it, and let go of the oldest beyond the retained number, never of the newest.

        When this returns, the checkpoints it gives back are durably gone: their files may be deleted.
        One that cannot be let go of for now stays, and is tried again with the next.
        """
        self._insert(checkpoint)
        self._checkpoints = sorted([*self._checkpoints, checkpoint], key=lambda kept: kept.checkpoint_id)
        removed: list[CompletedCheckpoint] = []
        while len(self._checkpoints) > self._num_retained:
            oldest = self._checkpoints[0]
            try:
                self.remove(oldest.checkpoint_id)
            except StorageError as error:
                _log.warning("Checkpoint %d could not be let go of: %s", oldest.checkpoint_id, error)
                break
            removed.append(oldest)
        return removed

    def all(self) -> list[CompletedCheckpoint]:
        """Oldest first."""
        return list(self._checkpoints)

    def latest(self) -> CompletedCheckpoint | None:
        return self._checkpoints[-1] if self._checkpoints else None

    def remove(self, checkpoint_id: int) -> None:
        """Let go of a checkpoint, durably, damaged or not. Its snapshot files stay."""
        self._discard(checkpoint_id)
        self._checkpoints = [kept for kept in self._checkpoints if kept.checkpoint_id != checkpoint_id]

    def mark_commit_begun(self, checkpoint_id: int) -> None:
        """Record, durably, that sinks may have published rows of this checkpoint."""
        self._storage.mark_commit_begun(checkpoint_id)

    def mark_committed(self, checkpoint_id: int) -> None:
        """Record that all of its rows are published."""
        self._storage.mark_committed(checkpoint_id)

    def commits_begun(self) -> frozenset[int]:
        """Checkpoints whose commit has begun, also where the checkpoint itself is lost. A damaged record counts."""
        return self._storage.commits_begun()

    @abstractmethod
    def _insert(self, checkpoint: CompletedCheckpoint) -> None:
        """Make it durable that this checkpoint belongs to the store."""

    @abstractmethod
    def _discard(self, checkpoint_id: int) -> None:
        """Make it durable that this one no longer does."""


class FileCompletedCheckpointStore(CompletedCheckpointStore):
    """The checkpoints that are visible in a file storage: ``_metadata`` is the record, and what later attempts began
    from says whether it counts.

    ``confirm`` is called ahead of every change; it raises when this driver does not lead the job any more.
    """

    def __init__(
        self, storage: FileCheckpointStorage, num_retained: int = 1, confirm: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(storage, num_retained)
        self._files = storage
        self._confirm = confirm
        self.recover()

    def recover(self) -> list[DamagedCheckpoint]:
        found, damaged = read_checkpoints(self._files, self._files.completed_ids())
        late = OvertakenCheckpoints(Storage.for_uri(self._files.directory))
        self.overtaken = [each for each in found if late.overtaken_by(each.metadata.attempt, each.checkpoint_id)]
        self._checkpoints = [each for each in found if each not in self.overtaken]
        return damaged

    def mark_commit_begun(self, checkpoint_id: int) -> None:
        self._confirm()
        super().mark_commit_begun(checkpoint_id)

    def mark_committed(self, checkpoint_id: int) -> None:
        self._confirm()
        super().mark_committed(checkpoint_id)

    def _insert(self, checkpoint: CompletedCheckpoint) -> None:
        """The coordinator wrote ``_metadata`` before. What was the newest checkpoint until then is let go of next."""
        self._confirm()

    def _discard(self, checkpoint_id: int) -> None:
        self._confirm()
        self._storage.discard(checkpoint_id)


class MemoryCompletedCheckpointStore(CompletedCheckpointStore):
    """A list in the driver: outlives attempts, not the driver."""

    def recover(self) -> list[DamagedCheckpoint]:
        return []

    def _insert(self, checkpoint: CompletedCheckpoint) -> None:
        """Nothing: the list is the record."""

    def _discard(self, checkpoint_id: int) -> None:
        self._storage.discard(checkpoint_id)


def read_checkpoints(
    storage: FileCheckpointStorage, numbers: Iterable[int]
) -> tuple[list[CompletedCheckpoint], list[DamagedCheckpoint]]:
    """The checkpoints of these numbers, oldest first, and those of them whose metadata cannot be read."""
    found: list[CompletedCheckpoint] = []
    damaged: list[DamagedCheckpoint] = []
    for number in sorted(numbers):
        location = storage.location(number)
        try:
            found.append(CompletedCheckpoint(storage.read_metadata(number), location))
        except StorageError as error:
            if not is_damage(error):
                raise
            damaged.append(DamagedCheckpoint(number, location, error))
    return found, damaged
