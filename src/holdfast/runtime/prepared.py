"""What one subtask has pinned for a checkpoint, before it is stored."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.failpoints import failpoint
from holdfast.state.handles import CheckpointRequest, FileHandle, RawKeyedSnapshot, SubtaskSnapshot
from holdfast.state.keygroups import KeyGroupRange
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
    operator_state: bytes | None
    raw_keyed: bytes | None
    raw_operator: bytes | None
    watermark: int
    finished: bool
    sync_millis: int
    #: Of the execution.
    nonce: str = ""

    def write(self, writer: SnapshotWriter, heartbeat: Callable[[], None]) -> SubtaskSnapshot:
        """Store it. ``heartbeat`` is called before every file; what it raises cancels the rest."""
        started = time.monotonic()
        keyed = None if self.keyed is None else async_write(self.keyed, writer, self.name, heartbeat=heartbeat)
        failpoint("task.uploading", epoch=self.request.epoch, subtask=self.subtask, operator=self.operator_name)
        parts = {"operator": self.operator_state, "raw-keyed": self.raw_keyed, "raw-operator": self.raw_operator}
        written: dict[str, FileHandle | None] = {}
        for part, data in parts.items():
            heartbeat()
            written[part] = None if data is None else writer.write(f"{self.name}-{part}", data)
        files = [] if keyed is None else list(keyed.written_by(self.request.checkpoint_id))
        files += [handle for handle in written.values() if handle is not None]
        raw_keyed, own = written["raw-keyed"], self.key_groups
        return SubtaskSnapshot(
            self.operator_id,
            self.subtask,
            keyed,
            written["operator"],
            None if raw_keyed is None else RawKeyedSnapshot(own.start, own.end, raw_keyed),
            written["raw-operator"],
            watermark=self.watermark,
            finished=self.finished,
            nonce=self.nonce,
            sync_millis=self.sync_millis,
            async_millis=round((time.monotonic() - started) * 1000),
            bytes_written=sum(handle.size for handle in files),
        )
