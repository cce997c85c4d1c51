"""The asynchronous part of a snapshot: a thread of the worker stores what the task has pinned.

The task waits for it a moment. An upload that takes longer goes on alone while the next epochs run: it leaves its
result in the checkpoint's folder, under a name that the task's acknowledgement gives, and says there every second that
it is alive. It ends when it finds that the checkpoint was given up.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import msgspec

from holdfast.errors import CheckpointError, StorageError
from holdfast.runtime.prepared import PreparedSubtask
from holdfast.state.handles import SubtaskSnapshot
from holdfast.state.snapshot_io import CheckpointNotes, SnapshotWriter

#: What keeps a snapshot from being stored: the checkpoint is aborted, and the job goes on.
STORING_ERRORS = (StorageError, CheckpointError, OSError)

#: How often an upload that goes on alone says that it is alive.
BEAT_SECONDS = 1.0


class UploadResult(msgspec.Struct, frozen=True):
    """What the subtasks of a task wrote, or why they could not."""

    snapshots: tuple[SubtaskSnapshot, ...] = ()
    failure: str | None = None

    @classmethod
    def failed(cls, error: Exception) -> UploadResult:
        return cls(failure=f"{type(error).__name__}: {error}")


class _Cancelled(Exception):
    """The checkpoint was given up."""


class Upload:
    """Stores the snapshots of one execution of a task. ``name`` is that execution's own."""

    def __init__(self, name: str, parts: Sequence[PreparedSubtask], writer: SnapshotWriter) -> None:
        self.name = name
        self._parts = parts
        self._writer = writer
        self._result: UploadResult | None = None
        self._changed = threading.Condition()
        self._alone = False
        self._cancelled = False
        self._thread = threading.Thread(target=self._run, name=f"upload-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wait(self, seconds: float | None) -> UploadResult | None:
        """The result, if it is there within ``seconds`` (None: whenever it is). Otherwise the upload goes on alone."""
        notes = self._writer.notes()
        with self._changed:
            self._changed.wait_for(lambda: self._result is not None, None if notes is None else seconds)
            if self._result is not None or notes is None:
                return self._result
            self._alone = True
        threading.Thread(target=self._stay_alive, args=(notes,), name=f"beat-{self.name}", daemon=True).start()
        return None

    def cancel(self) -> None:
        """Nobody wants the result any more."""
        self._cancelled = True

    def _run(self) -> None:
        try:
            result = UploadResult(tuple(part.write(self._writer, self._check) for part in self._parts))
        except _Cancelled:
            return
        except Exception as error:  # nobody else hears of it in this thread
            result = UploadResult.failed(error)
        with self._changed:
            self._result = result
            self._changed.notify_all()

    def _check(self) -> None:
        if self._cancelled:
            raise _Cancelled

    def _stay_alive(self, notes: CheckpointNotes) -> None:
        """Say so until the result is there, and leave it. A storage that fails for a moment is tried again."""
        beats = 0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._result is not None, BEAT_SECONDS)
                result = self._result
            try:
                if notes.given_up():
                    self._cancelled = True
                    return
                if result is not None:
                    notes.leave(self.name, msgspec.msgpack.encode(result))
                    return
                beats += 1
                notes.leave(beat_of(self.name), str(beats).encode())
            except (StorageError, OSError):
                threading.Event().wait(BEAT_SECONDS)


def beat_of(name: str) -> str:
    """The note in which the upload of this name says that it is alive."""
    return f"{name}-beat"
