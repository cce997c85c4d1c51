"""Snapshots that are still being stored when their epoch is over: what the driver waits for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from holdfast.errors import StorageError
from holdfast.runtime.upload import UploadResult, beat_of
from holdfast.state.handles import CheckpointRequest
from holdfast.state.snapshot_io import CheckpointNotes
from holdfast.storage.patience import Patience

T = TypeVar("T")

_decode_result = msgspec.msgpack.Decoder(UploadResult).decode


@dataclass
class _Upload:
    request: CheckpointRequest
    notes: CheckpointNotes
    name: str
    beat: bytes | None
    alive_at: int


class LateSnapshots:
    """Finds the results that uploads leave in the folder of their checkpoint, and those that stopped without one.

    Only names that accepted acknowledgements gave are looked for: another execution of the same subtask leaves its
    result under another name.
    """

    def __init__(self, heartbeat_timeout_ms: int, clock: Callable[[], int]) -> None:
        self._timeout = heartbeat_timeout_ms
        self._clock = clock
        self._uploads: list[_Upload] = []
        #: By checkpoint, while uploads of it are left: a savepoint may be in another storage than the others.
        self._patience: defaultdict[int, Patience] = defaultdict(Patience)

    def expect(self, request: CheckpointRequest, notes: CheckpointNotes | None, names: Iterable[str]) -> None:
        for name in names:
            assert notes is not None, "what comes late comes as a note"
            self._uploads.append(_Upload(request, notes, name, None, self._clock()))

    @property
    def outstanding(self) -> bool:
        return bool(self._uploads)

    def arrived(self) -> list[tuple[CheckpointRequest, UploadResult]]:
        """Results since the last call. An upload that has not said for too long that it is alive has failed.

        StorageError when a storage cannot tell, or takes too long for it, and no other has a result.
        """
        return _each({upload.request.checkpoint_id: None for upload in self._uploads}, self._arrived_of)

    def _arrived_of(self, checkpoint_id: int) -> list[tuple[CheckpointRequest, UploadResult]]:
        patience = self._patience[checkpoint_id]
        looking = [upload for upload in self._uploads if upload.request.checkpoint_id == checkpoint_id]
        notes = patience.ask("look for late snapshots", lambda: [_notes_of(upload) for upload in looking])
        found: list[tuple[_Upload, UploadResult]] = []
        for upload, (result, beat) in zip(looking, notes, strict=True):
            told = _decode_result(result) if result is not None else self._silence_of(upload, beat)
            if told is not None:
                self._uploads.remove(upload)
                found.append((upload, told))
        if len(found) == len(looking):
            del self._patience[checkpoint_id]
        if found:
            # What stays goes with the folder.
            with suppress(StorageError):
                patience.ask("remove notes", lambda: _remove_notes([upload for upload, _ in found]))
        return [(upload.request, told) for upload, told in found]

    def give_up_others(self, pending: Collection[int]) -> list[CheckpointRequest]:
        """Tell uploads of checkpoints that are not pending any more to stop, and forget them. Those checkpoints whose
        uploads were told; StorageError when none could be.
        """
        dropped = {u.request.checkpoint_id: u for u in self._uploads if u.request.checkpoint_id not in pending}
        self._uploads = [upload for upload in self._uploads if upload.request.checkpoint_id in pending]

        def tell(checkpoint_id: int) -> list[CheckpointRequest]:
            upload = dropped[checkpoint_id]
            self._patience.pop(checkpoint_id, Patience()).ask("tell uploads to stop", upload.notes.give_up)
            return [upload.request]

        return _each(dropped, tell)

    def _silence_of(self, upload: _Upload, beat: bytes | None) -> UploadResult | None:
        """None while it is known to live."""
        now = self._clock()
        if beat != upload.beat:
            upload.beat, upload.alive_at = beat, now
        if now - upload.alive_at < self._timeout:
            return None
        return UploadResult(
            failure=f"the upload {upload.name} has not been heard of for {now - upload.alive_at} ms: its worker is gone"
        )


def _each(checkpoints: Iterable[int], ask: Callable[[int], list[T]]) -> list[T]:
    """What all of them give. One whose storage fails does not keep the others back; if nothing came, that is told."""
    found: list[T] = []
    failure: StorageError | None = None
    for checkpoint_id in checkpoints:
        try:
            found += ask(checkpoint_id)
        except StorageError as error:
            failure = error
    if failure is not None and not found:
        raise failure
    return found


def _notes_of(upload: _Upload) -> tuple[bytes | None, bytes | None]:
    """What an upload left: its result, or else that it lives."""
    result = upload.notes.find(upload.name)
    return result, upload.notes.find(beat_of(upload.name)) if result is None else None


def _remove_notes(uploads: list[_Upload]) -> None:
    for upload in uploads:
        upload.notes.remove(upload.name)
        upload.notes.remove(beat_of(upload.name))
