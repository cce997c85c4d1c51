"""The thread that stores what a task has pinned, while the task waits and after it has gone on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import pytest

from holdfast.checkpoint.job_directory import JobDirectory
from holdfast.checkpoint.savepoint import SavepointLocation
from holdfast.errors import StorageError
from holdfast.runtime import upload as upload_module
from holdfast.runtime.prepared import PreparedSubtask
from holdfast.runtime.upload import Upload, UploadResult, beat_of
from holdfast.state.handles import (
    CheckpointRequest,
    DistributionMode,
    FileHandle,
    ListStateSnapshot,
    SavepointFormat,
    SnapshotType,
)
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.operator_state_file import encode_operator_state
from holdfast.state.savepoint_files import SavepointWriter
from holdfast.state.serializers import serializer_for
from holdfast.state.snapshot_files import FileNotes, FileSnapshotWriter, MemorySnapshotWriter
from holdfast.types.typeinfo import Types

REQUEST = CheckpointRequest(7, SnapshotType.CHECKPOINT, 0, 1, 3)


LISTS = (ListStateSnapshot("list", DistributionMode.SPLIT_DISTRIBUTE, {}, (b"state",)),)
RAW = b"raw"
SIZE = len(encode_operator_state(LISTS)) + len(RAW)


def prepared(subtask: int = 0) -> PreparedSubtask:
    return PreparedSubtask(
        REQUEST, "op", "Op", subtask, f"op-{subtask}-n", KeyGroupRange(0, 3), None, LISTS, None, RAW, 5, False, 1
    )


@dataclass(frozen=True)
class GatedWriter(FileSnapshotWriter):
    """Writes when the gate is open."""

    gate: threading.Event = field(default_factory=threading.Event)
    started: threading.Event = field(default_factory=threading.Event)

    def write(self, name: str, data: bytes, shared: bool = False) -> FileHandle:
        self.started.set()
        assert self.gate.wait(30)
        return super().write(name, data, shared)


@pytest.fixture
def writer(tmp_path: Path) -> GatedWriter:
    return GatedWriter(str(tmp_path / "job"), 7, 1, 0)


@pytest.fixture(autouse=True)
def quick_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload_module, "BEAT_SECONDS", 0.01)


def begun(writer: FileSnapshotWriter | MemorySnapshotWriter, *parts: PreparedSubtask) -> Upload:
    upload = Upload("0-0-n", parts or (prepared(),), writer)
    upload.start()
    return upload


def eventually(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_quick_upload_answers_at_once(writer: GatedWriter, tmp_path: Path) -> None:
    writer.gate.set()
    result = begun(writer, prepared(0), prepared(1)).wait(30)
    assert result is not None and result.failure is None
    assert [(one.subtask, one.watermark, one.bytes_written) for one in result.snapshots] == [(0, 5, SIZE), (1, 5, SIZE)]
    assert not list(tmp_path.rglob("*note*")), "nothing came late"


def test_a_slow_one_goes_on_alone_and_leaves_its_result(writer: GatedWriter) -> None:
    upload = begun(writer)
    assert upload.wait(0.01) is None
    notes = writer.notes()
    eventually(lambda: notes.find(beat_of(upload.name)))
    first = notes.find(beat_of(upload.name))
    eventually(lambda: notes.find(beat_of(upload.name)) != first)
    assert notes.find(upload.name) is None
    writer.gate.set()
    eventually(lambda: notes.find(upload.name))
    result = msgspec.msgpack.decode(notes.find(upload.name) or b"", type=UploadResult)
    assert [one.bytes_written for one in result.snapshots] == [SIZE]


def give_up(writer: GatedWriter) -> None:
    writer.notes().give_up()


def begin_another_attempt(writer: GatedWriter) -> None:
    directory = JobDirectory(str(Path(writer.directory).parent), Path(writer.directory).name)
    assert directory.record_attempt(directory.last_attempt() + 1)


@pytest.mark.parametrize("end", [give_up, begin_another_attempt])
def test_one_that_nobody_waits_for_stops_and_leaves_nothing(
    end: Callable[[GatedWriter], None], writer: GatedWriter, tmp_path: Path
) -> None:
    begin_another_attempt(writer)  # its own
    upload = begun(writer, prepared(0), prepared(1))
    assert upload.wait(0.01) is None
    eventually(lambda: writer.notes().find(beat_of(upload.name)))
    assert not upload._cancelled
    end(writer)
    eventually(lambda: upload._cancelled)
    writer.gate.set()
    upload._thread.join(30)
    assert upload._writer.paths == ["chk-7/1-op-0-n-operator"], "the file that was being written, and nothing after it"
    assert not list(tmp_path.rglob("1-op-*"))
    assert writer.notes().find(upload.name) is None and writer.notes().find(beat_of(upload.name)) is None


def test_one_that_is_cancelled_when_everything_is_stored_deletes_it(writer: GatedWriter, tmp_path: Path) -> None:
    writer.gate.set()
    upload = begun(writer)
    assert upload.wait(30) is not None and list(tmp_path.rglob("1-op-*"))
    upload.cancel()
    assert not list(tmp_path.rglob("1-op-*"))


def test_what_the_coordinator_may_have_been_told_of_is_not_deleted(
    writer: GatedWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The note arrives, but its writer does not hear of that; then another attempt begins."""
    notes = type(writer.notes())
    leave = notes.leave

    def deaf(self: FileNotes, name: str, data: bytes) -> None:
        leave(self, name, data)
        if name == upload.name:
            begin_another_attempt(writer)
            raise StorageError("no answer")

    monkeypatch.setattr(notes, "leave", deaf)
    begin_another_attempt(writer)
    upload = begun(writer)
    assert upload.wait(0.0) is None
    writer.gate.set()
    eventually(lambda: writer.notes().given_up())
    eventually(lambda: not [one for one in threading.enumerate() if one.name == f"beat-{upload.name}"])
    assert writer.notes().find(upload.name) is not None
    assert len(list(tmp_path.rglob("1-op-*"))) == 2


def test_why_it_failed_is_the_result(writer: GatedWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object, *arguments: object, **named: object) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(FileSnapshotWriter, "write", fail)
    writer.gate.set()
    assert begun(writer).wait(30) == UploadResult(failure="StorageError: the disk is full")
    slow = GatedWriter(writer.directory, 7, 1, 0)
    upload = begun(slow)
    assert upload.wait(0.01) is None
    slow.gate.set()
    eventually(lambda: slow.notes().find(upload.name))
    data = slow.notes().find(upload.name) or b""
    assert msgspec.msgpack.decode(data, type=UploadResult).failure == "StorageError: the disk is full"


def test_an_error_that_nobody_expects_does_not_leave_the_task_waiting(writer: GatedWriter) -> None:
    broken = replace(prepared(), raw_operator="text")  # type: ignore[arg-type]  # what must fail
    writer.gate.set()
    result = begun(writer, broken).wait(30)
    assert result is not None and result.failure is not None and "TypeError" in result.failure


def test_without_a_place_for_notes_the_task_waits_for_the_end() -> None:
    result = begun(MemorySnapshotWriter()).wait(0.0)
    assert result is not None and len(result.snapshots) == 1


def test_a_storage_that_fails_for_a_moment_gets_the_result_in_the_end(
    writer: GatedWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = begun(writer)
    notes = type(writer.notes())
    leave, failures = notes.leave, [StorageError("not now")] * 3

    def unsteady(self: object, name: str, data: bytes) -> None:
        if failures:
            raise failures.pop()
        leave(self, name, data)  # type: ignore[arg-type]  # all that is asked

    monkeypatch.setattr(notes, "leave", unsteady)
    assert upload.wait(0.0) is None
    writer.gate.set()
    eventually(lambda: writer.notes().find(upload.name))
    assert not failures


# -- savepoints


class GatedSavepoint(SavepointWriter):
    """Waits before each file until it may go on."""

    gate = threading.Event()

    def write(self, name: str, data: bytes, shared: bool = False) -> FileHandle:
        assert self.gate.wait(30)
        return super().write(name, data, shared)


@pytest.fixture
def savepoint(tmp_path: Path) -> Iterator[tuple[SavepointLocation, GatedSavepoint]]:
    location = SavepointLocation.create(str(tmp_path / "savepoints"), "job")
    GatedSavepoint.gate.clear()
    yield location, GatedSavepoint(location.path, 7, 1)
    GatedSavepoint.gate.set()


def canonical() -> PreparedSubtask:
    request = msgspec.structs.replace(
        REQUEST, checkpoint_type=SnapshotType.SAVEPOINT, savepoint_format=SavepointFormat.CANONICAL
    )
    numbers = serializer_for(Types.LONG())
    lists = tuple(
        ListStateSnapshot(name, DistributionMode.UNION, {"value": numbers.snapshot()}, (numbers.encode(5),))
        for name in ("first", "second")
    )
    return replace(prepared(), request=request, operator_state=lists, raw_operator=None, nonce="n", uid="my op")


def test_a_savepoint_that_comes_late(savepoint: tuple[SavepointLocation, GatedSavepoint]) -> None:
    location, writer = savepoint
    upload = Upload("0-0-n", (canonical(),), writer)
    upload.start()
    assert upload.wait(0.01) is None
    notes = writer.notes()
    eventually(lambda: notes.find(beat_of(upload.name)))
    writer.gate.set()
    eventually(lambda: notes.find(upload.name))
    result = msgspec.msgpack.decode(notes.find(upload.name) or b"", type=UploadResult)
    (snapshot,) = result.snapshots
    paths = [table.handle.path for table in snapshot.operator_tables if table.handle is not None]
    assert paths == [f"my%20op/list/{name}/part-0-n-{n}.parquet" for n, name in enumerate(("first", "second"))]
    assert snapshot.bytes_written == sum((Path(location.path) / path).stat().st_size for path in paths)


@pytest.mark.parametrize("how", ["given up", "discarded"])
def test_a_savepoint_that_nobody_wants_any_more(savepoint: tuple[SavepointLocation, GatedSavepoint], how: str) -> None:
    location, writer = savepoint
    upload = Upload("0-0-n", (canonical(),), writer)
    upload.start()
    assert upload.wait(0.01) is None
    eventually(lambda: writer.notes().find(beat_of(upload.name)))
    if how == "given up":
        writer.notes().give_up()
    else:
        location.discard()
    eventually(lambda: upload._cancelled)
    writer.gate.set()
    upload._thread.join(30)
    eventually(lambda: not list(Path(location.path).rglob("*.parquet")))
    assert writer.notes().find(upload.name) is None
