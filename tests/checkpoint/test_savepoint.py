"""The folder of a savepoint: made, written, completed, moved, discarded, disposed of."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import msgspec
import pytest

from holdfast.checkpoint.savepoint import SavepointLocation, dispose_savepoint
from holdfast.checkpoint.storage import FileCheckpointStorage, open_snapshot
from holdfast.errors import CheckpointError, StorageError
from holdfast.state.canonical.operator_tables import write_operator_tables
from holdfast.state.canonical.places import TablePlace
from holdfast.state.handles import (
    CheckpointMetadata,
    CheckpointRequest,
    DistributionMode,
    FileHandle,
    ListStateSnapshot,
    OperatorRecord,
    SavepointFormat,
    SnapshotType,
    StateMeta,
    SubtaskSnapshot,
)
from holdfast.state.operator_state_file import encode_operator_state, restore_operator_state
from holdfast.state.serializers import serializer_for
from holdfast.types.typeinfo import Types

REQUEST = CheckpointRequest(3, SnapshotType.SAVEPOINT, 0, 2, 9, savepoint_format=SavepointFormat.CANONICAL)
_NUMBERS = serializer_for(Types.LONG())
LISTS = (
    ListStateSnapshot(
        "numbers", DistributionMode.UNION, {"value": _NUMBERS.snapshot()}, tuple(_NUMBERS.encode_many([1, 2]))
    ),
)


def snapshot_of(location: SavepointLocation, written_as: SavepointFormat) -> SubtaskSnapshot:
    writer = pickle.loads(pickle.dumps(location.writer(REQUEST)))
    if written_as is SavepointFormat.CANONICAL:
        place = TablePlace.of("op-id", "my op", "Op", 0, "nonce")
        return SubtaskSnapshot("op", 0, operator_tables=write_operator_tables(LISTS, writer, place, lambda: None))
    handle = writer.write("op-0-nonce-operator", encode_operator_state(LISTS), shared=True)
    return SubtaskSnapshot("op", 0, operator_state=handle)


def metadata_of(*snapshots: SubtaskSnapshot, kind: SnapshotType = SnapshotType.SAVEPOINT) -> CheckpointMetadata:
    records = (OperatorRecord("op-id", "my op", "Op", 1, 128, snapshots),)
    return CheckpointMetadata(3, kind, "0123456789", "my job", 2, 9, 0, 0, "h", records)


def savepoint(root: Path, written_as: SavepointFormat = SavepointFormat.CANONICAL) -> Path:
    location = SavepointLocation.create(str(root), "0123456789")
    return Path(location.write_metadata(metadata_of(snapshot_of(location, written_as))))


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("written_as", SavepointFormat)
def test_it_can_be_copied_and_moved_anywhere(tmp_path: Path, written_as: SavepointFormat) -> None:
    folder = savepoint(tmp_path / "target", written_as)
    assert folder.parent == tmp_path / "target"
    assert folder.name.startswith("savepoint-012345-") and len(folder.name) == len("savepoint-012345-") + 12
    copied = Path(shutil.copytree(folder, tmp_path / "else where" / "copy"))
    moved = Path(shutil.move(folder, tmp_path / "moved"))
    for place in (copied, moved, copied / "_metadata"):
        metadata, reader = open_snapshot(str(place))
        assert metadata.properties["relocatable"] is True and metadata.properties["format"] == written_as
        found = restore_operator_state(metadata.operators[0].subtasks, 0, 1, reader)
        assert found.lists["numbers"].restored == list(LISTS)


def test_what_it_holds_can_be_read(tmp_path: Path) -> None:
    folder = savepoint(tmp_path)
    assert files_in(folder) == ["_metadata", "my%20op/list/numbers/part-0-nonce-0.parquet"]
    header, _, body = (folder / "_metadata").read_text().partition("\n")
    assert header.startswith("holdfast-metadata 1 ")
    states = json.loads(body)["properties"]["states"]
    assert states == [
        {
            "operator": "Op",
            "uid": "my op",
            "operator_id": "op-id",
            "state": "numbers",
            "kind": "union",
            "types": {"value": "LONG"},
            "rows": 2,
            "files": ["my%20op/list/numbers/part-0-nonce-0.parquet"],
        }
    ]
    assert len(body.splitlines()) > 20


def test_states_of_one_name_do_not_meet(tmp_path: Path) -> None:
    """A keyed state, a list and a broadcast map may be called the same."""
    place = TablePlace.of("id", None, "Op", 0, "nonce")
    keyed = StateMeta("x", 0, "value", {})
    paths = {
        place.path_of_keyed(keyed, 0),
        place.path_of_keyed(msgspec.structs.replace(keyed, kind="timers", name="_timers/event_time/x"), 0),
        *(place.path_of_list("x", mode, number) for number, mode in enumerate(DistributionMode)),
        place.path_of_raw(keyed=True),
        place.path_of_raw(keyed=False),
    }
    assert paths == {
        "id/keyed/x/part-0-nonce-0.parquet",
        "id/timers/event_time.x/part-0-nonce-0.parquet",
        "id/list/x/part-0-nonce-0.parquet",
        "id/list/x/part-0-nonce-1.parquet",
        "id/broadcast/x/part-0-nonce-2.parquet",
        "id/raw-keyed/part-0-nonce-0.parquet",
        "id/raw-operator/part-0-nonce-0.parquet",
    }


def test_two_savepoints_do_not_meet(tmp_path: Path) -> None:
    assert SavepointLocation.create(str(tmp_path), "job").path != SavepointLocation.create(str(tmp_path), "job").path


def test_a_target_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match=r"no savepoint can be written to .*file: .*Give a directory"):
        SavepointLocation.create(str(tmp_path / "file"), "job")


def test_before_its_metadata_it_is_no_savepoint(tmp_path: Path) -> None:
    location = SavepointLocation.create(str(tmp_path), "job")
    snapshot = snapshot_of(location, SavepointFormat.CANONICAL)
    with pytest.raises(CheckpointError, match="is not a completed checkpoint or savepoint"):
        open_snapshot(location.path)
    with pytest.raises(CheckpointError, match="is not a savepoint"):
        dispose_savepoint(location.path)
    location.write_metadata(metadata_of(snapshot))
    with pytest.raises(StorageError, match="exists already"):
        location.write_metadata(metadata_of(snapshot))


@pytest.mark.parametrize("path", ["../other", "/etc/passwd", "a/../../b", ""])
def test_it_refers_to_nothing_outside(tmp_path: Path, path: str) -> None:
    location = SavepointLocation.create(str(tmp_path), "job")
    with pytest.raises(ValueError, match="expected a path inside"):
        location.writer(REQUEST).write(path, b"x")
    if path:
        with pytest.raises(CheckpointError, match="not in its folder"):
            location.write_metadata(metadata_of(SubtaskSnapshot("op", 0, operator_state=FileHandle(path, 1, "0"))))


def test_what_failed_is_removed(tmp_path: Path) -> None:
    location = SavepointLocation.create(str(tmp_path), "job")
    snapshot_of(location, SavepointFormat.CANONICAL)
    notes = location.writer(REQUEST).notes()
    assert not notes.given_up()
    location.discard()
    assert list(tmp_path.iterdir()) == []
    assert notes.given_up(), "whoever still writes finds it out"


def test_notes_of_late_uploads(tmp_path: Path) -> None:
    location = SavepointLocation.create(str(tmp_path), "job")
    notes = pickle.loads(pickle.dumps(location.writer(REQUEST).notes()))
    assert notes.find("upload") is None
    notes.leave("upload", b"result")
    notes.leave("upload-beat", b"1")
    assert notes.find("upload") == b"result"
    notes.remove("upload")
    notes.remove("upload")
    assert notes.find("upload") is None and not notes.given_up()
    notes.give_up()
    assert notes.given_up()
    handle = location.writer(REQUEST).write("some/file", b"x")
    notes.discard([handle.path])
    location.write_metadata(metadata_of())
    assert files_in(Path(location.path)) == ["_metadata"], "notes have gone when it is complete"


def test_what_was_not_accepted_is_no_part_of_it(tmp_path: Path) -> None:
    """Another execution of the same subtask wrote its tables too."""
    location = SavepointLocation.create(str(tmp_path), "job")
    place = TablePlace.of("op-id", "my op", "Op", 0, "other")
    write_operator_tables(LISTS, location.writer(REQUEST), place, lambda: None)
    location.write_metadata(metadata_of(snapshot_of(location, SavepointFormat.CANONICAL)))
    assert files_in(Path(location.path)) == ["_metadata", "my%20op/list/numbers/part-0-nonce-0.parquet"]


def test_disposal_leaves_nothing(tmp_path: Path) -> None:
    for written_as in SavepointFormat:
        folder = savepoint(tmp_path / "target", written_as)
        dispose_savepoint(str(folder))
        assert not folder.exists()
    dispose_savepoint(str(savepoint(tmp_path / "target") / "_metadata"))
    assert list((tmp_path / "target").iterdir()) == []


def test_disposal_spares_what_somebody_else_put_there(tmp_path: Path) -> None:
    folder = savepoint(tmp_path)
    (folder / "notes.txt").write_text("mine")
    (folder / "my%20op" / "list" / "numbers" / "extra.parquet").write_text("mine")
    dispose_savepoint(str(folder))
    assert files_in(folder) == ["my%20op/list/numbers/extra.parquet", "notes.txt"]


def test_only_savepoints_are_disposed_of(tmp_path: Path) -> None:
    storage = FileCheckpointStorage(str(tmp_path), "job", inline_threshold=0)
    handle = storage.writer(3, 2).write("state", b"state")
    path = storage.write_metadata(
        metadata_of(SubtaskSnapshot("op", 0, operator_state=handle), kind=SnapshotType.CHECKPOINT)
    )
    (tmp_path / "folder" / "deep").mkdir(parents=True)
    (tmp_path / "folder" / "deep" / "file").write_text("mine")
    before = files_in(tmp_path)
    with pytest.raises(CheckpointError, match=r"is checkpoint 3 of job 0123456789 and not a savepoint"):
        dispose_savepoint(path)
    for other in (tmp_path / "folder", tmp_path / "nothing", tmp_path / "folder" / "deep" / "file"):
        with pytest.raises(CheckpointError, match="is not a savepoint"):
            dispose_savepoint(str(other))
    assert files_in(tmp_path) == before


def test_metadata_that_leads_elsewhere_deletes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "precious").write_text("mine")
    folder = savepoint(tmp_path)
    metadata, _ = open_snapshot(str(folder))
    stray = SubtaskSnapshot("op", 1, raw_operator=FileHandle("../precious", 4, "0"))
    record = msgspec.structs.replace(metadata.operators[0], subtasks=(*metadata.operators[0].subtasks, stray))
    monkeypatch.setattr(
        "holdfast.checkpoint.savepoint.decode_metadata",
        lambda *_: msgspec.structs.replace(metadata, operators=(record,)),
    )
    with pytest.raises(CheckpointError, match="not in its folder; nothing was deleted"):
        dispose_savepoint(str(folder))
    assert (tmp_path / "precious").exists() and (folder / "_metadata").exists()
