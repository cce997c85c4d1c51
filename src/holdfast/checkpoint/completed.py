"""A checkpoint that can be restored."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.checkpoint.shared_files import referenced_files
from holdfast.state.handles import CheckpointMetadata


@dataclass(frozen=True)
class CompletedCheckpoint:
    """A completed checkpoint: its metadata and where it is, a path that ``open_snapshot`` takes, or a name for one in
    the driver's memory.
    """

    metadata: CheckpointMetadata
    location: str

    @property
    def checkpoint_id(self) -> int:
        return self.metadata.checkpoint_id

    def files(self) -> frozenset[str]:
        """Every file it needs, those of earlier checkpoints included."""
        return referenced_files(self.metadata)


@dataclass(frozen=True)
class DamagedCheckpoint:
    """A checkpoint whose metadata is there and cannot be read."""

    checkpoint_id: int
    location: str
    error: Exception
