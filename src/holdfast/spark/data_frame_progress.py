"""Which DataFrames were read. A bounded DataFrame is read in one epoch, whole; that it was is operator state of its
source.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.spark.job import DataFrameInput
from holdfast.state.handles import FileHandle, OperatorRecord, SubtaskSnapshot
from holdfast.storage.checksum import checksum

_READ = b"read"


class DataFrameProgress:
    """Kept by the driver, which acknowledges for these sources."""

    def __init__(self, data_frames: Iterable[DataFrameInput], restored: Iterable[OperatorRecord]) -> None:
        self._all = tuple(data_frames)
        self._read = {
            record.operator_id for record in restored if any(s.operator_state is not None for s in record.subtasks)
        }

    def unread(self) -> tuple[DataFrameInput, ...]:
        return tuple(source for source in self._all if source.operator_id not in self._read)

    def read_with(self, sources: Iterable[DataFrameInput]) -> frozenset[str]:
        """The operator ids of what will have been read once ``sources`` are."""
        return frozenset(self._read | {source.operator_id for source in sources})

    def mark_read(self, sources: Iterable[DataFrameInput]) -> None:
        self._read |= {source.operator_id for source in sources}

    def snapshots(self) -> list[SubtaskSnapshot]:
        return [
            SubtaskSnapshot(
                source.operator_id, 0, operator_state=self._marker() if source.operator_id in self._read else None
            )
            for source in self._all
        ]

    @staticmethod
    def _marker() -> FileHandle:
        return FileHandle(path="", size=len(_READ), checksum=checksum(_READ), inline=_READ)
