"""The asynchronous part of a snapshot: a thread of the worker stores what the task has pinned.

The task waits for it a moment. An upload that takes longer goes on alone while the next epochs run: it leaves its
result in the checkpoint's folder, under a name that the task's acknowledgement gives, and says there every second that
it is alive. It ends when it finds that the checkpoint was given up.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from holdfast.errors import CheckpointError, StorageError
from holdfast.runtime.prepared import PreparedSubtask
from holdfast.state.handles import FileHandle, SubtaskSnapshot
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


class _Noting(SnapshotWriter):
    """Remembers the files that were written through it."""

    def __init__(self, writer: SnapshotWriter) -> None:
        self._writer = writer
        self.paths: list[str] = []

    def write(self, name: str, data: bytes, shared: bool = False) -> FileHandle:
        handle = self._writer.write(name, data, shared)
        if handle.inline is None:
            self.paths.append(handle.path)
        return handle

    def notes(self) -> CheckpointNotes | None:
        return self._writer.notes()


class Upload:
    """Stores the snapshots of one execution of a task. ``name`` is that execution's own."""

    def __init__(self, name: str, parts: Sequence[PreparedSubtask], writer: SnapshotWriter) -> None:
        self.name = name
        self._parts = parts
        self._writer = _Noting(writer)
        self._result: UploadResult | None = None
        self._changed = threading.Condition()
        self._cancelled = False
        self._told = False
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
        threading.Thread(target=self._stay_alive, args=(notes,), name=f"beat-{self.name}", daemon=True).start()
        return None

    def cancel(self) -> None:
        """Nobody wants the result: nothing more is stored, and what was stored is deleted."""
        with self._changed:
            self._cancelled = True
            running = self._result is None
            self._changed.notify_all()
        if not running:
            self._discard()

    def _run(self) -> None:
        try:
            result = UploadResult(tuple(part.write(self._writer, self._check) for part in self._parts))
        except Exception as error:  # nobody else hears of it in this thread
            result = UploadResult.failed(error)
        for part in self._parts:
            part.release()
        with self._changed:
            cancelled = self._cancelled
            self._result = None if cancelled else result
            self._changed.notify_all()
        if cancelled:
            self._discard()

    def _discard(self) -> None:
        """Best effort: what cannot be deleted now is swept when the next attempt begins."""
        notes = self._writer.notes()
        if notes is not None:
            with suppress(StorageError, OSError):
                notes.discard(self._writer.paths)
                notes.remove(beat_of(self.name))

    def _check(self) -> None:
        if self._cancelled:
            raise _Cancelled

    def _stay_alive(self, notes: CheckpointNotes) -> None:
        """Say so until the result is there, and leave it. A storage that fails for a moment is tried again."""
        beats = 0
        while not self._cancelled:
            with self._changed:
                self._changed.wait_for(lambda: self._result is not None or self._cancelled, BEAT_SECONDS)
                result = self._result
            try:
                if notes.given_up():
                    if not self._told:
                        self.cancel()
                    return
                if result is not None:
                    # From now on the coordinator may have it, also when this call fails: nothing is deleted any more.
                    self._told = True
                    notes.leave(self.name, msgspec.msgpack.encode(result))
                    return
                beats += 1
                notes.leave(beat_of(self.name), str(beats).encode())
            except (StorageError, OSError):
                threading.Event().wait(BEAT_SECONDS)


def beat_of(name: str) -> str:
    """The note in which the upload of this name says that it is alive."""
    return f"{name}-beat"
