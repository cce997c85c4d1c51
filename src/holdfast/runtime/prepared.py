"""What one subtask has pinned for a snapshot, before it is stored."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from holdfast.failpoints import failpoint
from holdfast.state.canonical.keyed_tables import write_keyed_tables
from holdfast.state.canonical.operator_tables import write_operator_tables, write_raw_table
from holdfast.state.canonical.places import TablePlace
from holdfast.state.entry_strategies import PreparedEntries
from holdfast.state.handles import (
    CheckpointRequest,
    FileHandle,
    ListStateSnapshot,
    RawKeyedSnapshot,
    SavepointFormat,
    SubtaskSnapshot,
)
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.operator_state_file import encode_operator_state
from holdfast.state.snapshot_io import SnapshotWriter
from holdfast.state.snapshots import async_write
from holdfast.state.strategies import PreparedSnapshot


@dataclass(frozen=True)
class PreparedSubtask:
    """Later epochs change nothing of it: any thread may store it, at any time."""

    request: CheckpointRequest
    operator_id: str
    operator_name: str
    subtask: int
    #: What the names of its files begin with; unique for the execution.
    name: str
    key_groups: KeyGroupRange
    keyed: PreparedSnapshot | None
    operator_state: tuple[ListStateSnapshot, ...]
    raw_keyed: bytes | None
    raw_operator: bytes | None
    watermark: int | None
    finished: bool
    sync_millis: int
    #: Of the execution.
    nonce: str = ""
    #: As the barriers of the execution brought it.
    trigger_id: str = ""
    #: From the trigger to the first barrier that came here, and from that to the last.
    start_delay_millis: int = 0
    alignment_millis: int = 0
    uid: str | None = None

    def write(self, writer: SnapshotWriter, heartbeat: Callable[[], None]) -> SubtaskSnapshot:
        """Store it. ``heartbeat`` is called before every file; what it raises cancels the rest."""
        started = time.monotonic()
        canonical = self.request.savepoint_format is SavepointFormat.CANONICAL
        written = self._write_tables(writer, heartbeat) if canonical else self._write_files(writer, heartbeat)
        return msgspec.structs.replace(
            written,
            watermark=self.watermark,
            finished=self.finished,
            nonce=self.nonce,
            trigger_id=self.trigger_id,
            start_delay_millis=self.start_delay_millis,
            alignment_millis=self.alignment_millis,
            sync_millis=self.sync_millis,
            async_millis=round((time.monotonic() - started) * 1000),
            bytes_written=sum(handle.size for handle in written.written_by(self.request.checkpoint_id)),
        )

    def release(self) -> None:
        """It was stored, or will not be: let go of what was kept for it."""
        if self.keyed is not None:
            self.keyed.release()

    def _write_files(self, writer: SnapshotWriter, heartbeat: Callable[[], None]) -> SubtaskSnapshot:
        """As a checkpoint, and a savepoint in the native format."""
        keyed = None if self.keyed is None else async_write(self.keyed, writer, self.name, heartbeat=heartbeat)
        self._uploading()
        lists = encode_operator_state(self.operator_state) if self.operator_state else None
        parts = {"operator": lists, "raw-keyed": self.raw_keyed, "raw-operator": self.raw_operator}
        written: dict[str, FileHandle | None] = {}
        for part, data in parts.items():
            heartbeat()
            written[part] = None if data is None else writer.write(f"{self.name}-{part}", data)
        return SubtaskSnapshot(
            self.operator_id,
            self.subtask,
            keyed,
            written["operator"],
            raw_keyed=self._raw_keyed(written["raw-keyed"]),
            raw_operator=written["raw-operator"],
        )

    def _write_tables(self, writer: SnapshotWriter, heartbeat: Callable[[], None]) -> SubtaskSnapshot:
        place = TablePlace.of(self.operator_id, self.uid, self.operator_name, self.subtask, self.nonce)
        keyed = None
        if self.keyed is not None:
            assert isinstance(self.keyed, PreparedEntries), "what becomes tables was pinned as entries"
            keyed = write_keyed_tables(self.keyed, writer, place, heartbeat)
        self._uploading()
        raw = {
            keyed_state: None if data is None else write_raw_table(data, keyed_state, writer, place, heartbeat)
            for keyed_state, data in ((True, self.raw_keyed), (False, self.raw_operator))
        }
        return SubtaskSnapshot(
            self.operator_id,
            self.subtask,
            keyed,
            operator_tables=write_operator_tables(self.operator_state, writer, place, heartbeat),
            raw_keyed=self._raw_keyed(raw[True]),
            raw_operator=raw[False],
        )

    def _uploading(self) -> None:
        asked = self.request
        failpoint(
            "task.uploading",
            epoch=asked.epoch,
            attempt=asked.attempt,
            subtask=self.subtask,
            operator=self.operator_name,
        )

    def _raw_keyed(self, handle: FileHandle | None) -> RawKeyedSnapshot | None:
        return None if handle is None else RawKeyedSnapshot(self.key_groups.start, self.key_groups.end, handle)
