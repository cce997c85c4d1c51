"""Snapshots that are still being stored when their epoch is over: what the driver waits for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

import msgspec

from holdfast.runtime.upload import UploadResult, beat_of
from holdfast.state.handles import CheckpointRequest
from holdfast.state.snapshot_io import CheckpointNotes

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

    def expect(self, request: CheckpointRequest, notes: CheckpointNotes | None, names: Iterable[str]) -> None:
        for name in names:
            assert notes is not None, "what comes late comes as a note"
            self._uploads.append(_Upload(request, notes, name, None, self._clock()))

    @property
    def outstanding(self) -> bool:
        return bool(self._uploads)

    def arrived(self) -> list[tuple[CheckpointRequest, UploadResult]]:
        """Results since the last call. An upload that has not said for too long that it is alive has failed."""
        found: list[tuple[CheckpointRequest, UploadResult]] = []
        waiting: list[_Upload] = []
        for upload in self._uploads:
            result = self._result_of(upload)
            if result is None:
                waiting.append(upload)
            else:
                found.append((upload.request, result))
        self._uploads = waiting
        return found

    def give_up_others(self, pending: Collection[int]) -> list[CheckpointRequest]:
        """Tell uploads of checkpoints that are not pending any more to stop, and forget them. Their checkpoints."""
        dropped = [upload for upload in self._uploads if upload.request.checkpoint_id not in pending]
        self._uploads = [upload for upload in self._uploads if upload.request.checkpoint_id in pending]
        given_up = {upload.request.checkpoint_id: upload for upload in dropped}
        for upload in given_up.values():
            upload.notes.give_up()
        return [upload.request for upload in given_up.values()]

    def _result_of(self, upload: _Upload) -> UploadResult | None:
        data = upload.notes.find(upload.name)
        if data is not None:
            upload.notes.remove(upload.name)
            upload.notes.remove(beat_of(upload.name))
            return _decode_result(data)
        now, beat = self._clock(), upload.notes.find(beat_of(upload.name))
        if beat != upload.beat:
            upload.beat, upload.alive_at = beat, now
        if now - upload.alive_at < self._timeout:
            return None
        return UploadResult(
            failure=f"the upload {upload.name} has not been heard of for {now - upload.alive_at} ms: its worker is gone"
        )
