"""A checkpoint that is under way."""

from __future__ import annotations

from enum import Enum

from holdfast.checkpoint.completed import CompletedCheckpoint
from holdfast.checkpoint.savepoint import SavepointLocation
from holdfast.checkpoint.shared_files import snapshot_files
from holdfast.checkpoint.snapshot_triggers import SnapshotTrigger
from holdfast.state.handles import CheckpointRequest, SubtaskSnapshot


class AcknowledgeResult(Enum):
    """What became of an acknowledgement. Only SUCCESS keeps its state."""

    SUCCESS = "SUCCESS"
    DUPLICATE = "DUPLICATE"
    UNKNOWN = "UNKNOWN"
    DISCARDED = "DISCARDED"


class PendingCheckpoint:
    """Collects one acknowledgement from every expected (operator, subtask).

    ``base`` is the completed checkpoint that its deltas lean on: that one's files are needed while this one is pending.
    """

    def __init__(
        self,
        request: CheckpointRequest,
        expected: frozenset[tuple[str, int]],
        base: CompletedCheckpoint | None,
        deadline: int,
    ) -> None:
        self.request = request
        self.expected = expected
        self.base = base
        self.deadline = deadline
        #: Who asked for it.
        self.trigger = SnapshotTrigger()
        #: Its place, where it is a savepoint.
        self.savepoint: SavepointLocation | None = None
        self._acknowledged: dict[tuple[str, int], SubtaskSnapshot] = {}
        self._discarded = False

    @property
    def checkpoint_id(self) -> int:
        return self.request.checkpoint_id

    def acknowledge(self, snapshot: SubtaskSnapshot) -> AcknowledgeResult:
        subtask = (snapshot.operator_id, snapshot.subtask)
        if self._discarded:
            return AcknowledgeResult.DISCARDED
        if subtask not in self.expected:
            return AcknowledgeResult.UNKNOWN
        if subtask in self._acknowledged:
            return AcknowledgeResult.DUPLICATE
        self._acknowledged[subtask] = snapshot
        return AcknowledgeResult.SUCCESS

    def discard(self) -> None:
        """It was aborted: acknowledgements no longer count."""
        self._discarded = True

    @property
    def fully_acknowledged(self) -> bool:
        return not self._discarded and len(self._acknowledged) == len(self.expected)

    def missing(self) -> list[tuple[str, int]]:
        return sorted(self.expected - self._acknowledged.keys())

    def snapshot_of(self, operator_id: str, subtask: int) -> SubtaskSnapshot:
        return self._acknowledged[operator_id, subtask]

    def written_files(self) -> frozenset[str]:
        """Files that were acknowledged so far, without those of the base."""
        return frozenset(path for snapshot in self._acknowledged.values() for path in snapshot_files(snapshot))

    def needed_files(self) -> frozenset[str]:
        """Files that must not be deleted while this checkpoint may complete."""
        return self.written_files() | (self.base.files() if self.base is not None else frozenset())
