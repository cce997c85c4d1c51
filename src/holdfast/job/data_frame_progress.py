"""Which bounded DataFrames were read. One is read in one epoch, whole; that it was is operator state of its source."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.errors import RestoreError
from holdfast.runtime.data_frame_input import DataFrameInput
from holdfast.state.handles import FileHandle, OperatorRecord, SubtaskSnapshot
from holdfast.storage.checksum import checksum

_READ = b"read"
_MARKER = FileHandle(path="", size=len(_READ), checksum=checksum(_READ), inline=_READ)


class DataFrameProgress:
    """Kept by the driver, which acknowledges for these sources."""

    def __init__(self, data_frames: Iterable[DataFrameInput], restored: Iterable[OperatorRecord]) -> None:
        self._all = tuple(data_frames)
        records = {record.operator_id: record for record in restored}
        self._read = {s.operator_id for s in self._all if _was_read(s, records.get(s.operator_id))}

    def unread(self) -> tuple[DataFrameInput, ...]:
        return tuple(source for source in self._all if source.operator_id not in self._read)

    @property
    def read(self) -> frozenset[str]:
        """The operator ids of what was read."""
        return frozenset(self._read)

    def mark_read(self, sources: Iterable[DataFrameInput]) -> None:
        self._read |= {source.operator_id for source in sources}

    def snapshots(self) -> list[SubtaskSnapshot]:
        return [self._snapshot(source.operator_id, source.operator_id in self._read) for source in self._all]

    def _snapshot(self, operator_id: str, read: bool) -> SubtaskSnapshot:
        return SubtaskSnapshot(operator_id, 0, operator_state=_MARKER if read else None, finished=read)


def refuse_state(name: str, record: OperatorRecord) -> str | None:
    """Why a DataFrame cannot go on from what is stored under its id: it is the state of something else."""
    if all(snapshot.operator_state in (None, _MARKER) for snapshot in record.subtasks):
        return None
    return (
        f"the snapshot has state of another operator under the id of the DataFrame '{name}' ({record.operator_id}), "
        "which cannot go on from it and would not be read. Give the DataFrame another uid."
    )


def _was_read(source: DataFrameInput, record: OperatorRecord | None) -> bool:
    if record is None:
        return False
    refusal = refuse_state(source.name, record)
    if refusal is not None:
        raise RestoreError(refusal)
    return any(snapshot.operator_state is not None for snapshot in record.subtasks)
