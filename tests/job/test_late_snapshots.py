"""What the driver makes of uploads that go on behind their epoch."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest

from holdfast.errors import StorageError
from holdfast.job.late_snapshots import LateSnapshots
from holdfast.runtime.upload import UploadResult, beat_of
from holdfast.state.handles import CheckpointRequest, SnapshotType, SubtaskSnapshot
from holdfast.state.snapshot_files import FileNotes
from holdfast.storage.patience import Patience

REQUEST = CheckpointRequest(7, SnapshotType.CHECKPOINT, 0, 1, 3)
RESULT = UploadResult((SubtaskSnapshot("op", 0),))


class Clock:
    now = 0

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def notes(tmp_path: Path) -> FileNotes:
    return FileNotes(str(tmp_path), 7, 1)


@pytest.fixture
def late(clock: Clock, notes: FileNotes) -> LateSnapshots:
    late = LateSnapshots(5_000, clock)
    late.expect(REQUEST, notes, ["0-0-mine", "0-1-mine"])
    return late


def leave(notes: FileNotes, name: str, result: UploadResult = RESULT) -> None:
    notes.leave(name, msgspec.msgpack.encode(result))


def test_results_are_taken_once_and_their_notes_removed(late: LateSnapshots, notes: FileNotes, tmp_path: Path) -> None:
    assert late.arrived() == [] and late.outstanding
    notes.leave(beat_of("0-0-mine"), b"1")
    leave(notes, "0-0-mine")
    assert late.arrived() == [(REQUEST, RESULT)]
    leave(notes, "0-1-mine")
    assert late.arrived() == [(REQUEST, RESULT)]
    assert not late.outstanding and late.arrived() == []
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize("silent", [False, True], ids=["all arrive", "one falls silent"])
def test_nothing_is_kept_of_a_checkpoint_without_uploads_left(
    late: LateSnapshots, notes: FileNotes, clock: Clock, silent: bool
) -> None:
    leave(notes, "0-0-mine")
    assert len(late.arrived()) == 1
    assert set(late._patience) == {7}, "whoever hangs there is still known"
    if silent:
        clock.now = 5_000
    else:
        leave(notes, "0-1-mine")
    assert len(late.arrived()) == 1
    assert not late._patience


def test_the_result_of_an_execution_that_was_not_accepted_does_not_count(late: LateSnapshots, notes: FileNotes) -> None:
    leave(notes, "0-0-another")
    assert late.arrived() == []


def test_an_upload_that_falls_silent_has_failed(late: LateSnapshots, notes: FileNotes, clock: Clock) -> None:
    for beat in range(10):
        clock.now += 4_000
        notes.leave(beat_of("0-0-mine"), b"%d" % beat)
        notes.leave(beat_of("0-1-mine"), b"%d" % beat)
        assert late.arrived() == []
    clock.now += 4_000
    notes.leave(beat_of("0-0-mine"), b"once more")
    assert late.arrived() == []
    clock.now += 1_000
    [(request, result)] = late.arrived()
    assert request is REQUEST and result.failure is not None
    assert "0-1-mine has not been heard of for 5000 ms" in result.failure
    assert late.outstanding


def test_one_that_never_said_anything_has_failed_after_the_same_time(late: LateSnapshots, clock: Clock) -> None:
    clock.now = 4_999
    assert late.arrived() == []
    clock.now = 5_000
    assert len(late.arrived()) == 2


def test_uploads_of_checkpoints_that_ended_are_told_to_stop(late: LateSnapshots, notes: FileNotes) -> None:
    assert late.give_up_others({7}) == [] and not notes.given_up()
    assert late.give_up_others({8}) == [REQUEST]
    assert notes.given_up() and not late.outstanding


def test_a_savepoint_whose_storage_hangs_does_not_keep_checkpoints_back(
    late: LateSnapshots, notes: FileNotes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Patience, "SECONDS", 0.2)
    released = threading.Event()

    class Hanging(FileNotes):
        def find(self, name: str) -> bytes | None:
            released.wait(20)
            return None

        def give_up(self) -> None:
            released.wait(20)

    savepoint = CheckpointRequest(6, SnapshotType.SAVEPOINT, 0, 1, 3)
    late.expect(savepoint, Hanging(str(tmp_path / "mount"), 6, 1), ["0-0-savepoint"])
    try:
        for name in ("0-0-mine", "0-1-mine"):
            leave(notes, name)
            assert late.arrived() == [(REQUEST, RESULT)]
        with pytest.raises(StorageError, match="still does not answer"):
            late.arrived()
        late.expect(REQUEST, notes, ["0-2-mine"])
        assert late.give_up_others(()) == [REQUEST]
        assert notes.given_up() and not late.outstanding
    finally:
        released.set()
