"""Sources and sinks in a harness: positions over restores, and the life of transactions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.common import Types
from holdfast.datastream import (
    CheckpointedFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    SinkFunction,
    SourceFunction,
)
from holdfast.datastream.connectors import NumberSequenceSource
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.state import ListStateDescriptor
from holdfast.errors import FunctionError, ProgramError, TransactionError
from holdfast.runtime.batch import Batch
from holdfast.runtime.sink import TransactionName, TwoPhaseCommitSink
from holdfast.runtime.source import ReadLimit
from holdfast.testing import SinkHarness, SourceHarness, TestSource

# -- sources -----------------------------------------------------------------------------------------------------------


def test_a_source_is_read_epoch_by_epoch_and_goes_on_from_its_position() -> None:
    harness = SourceHarness(NumberSequenceSource(0, 9))
    assert (harness.read(4), harness.ended) == ([0, 1, 2, 3], False)
    snapshot = harness.snapshot()
    assert harness.read(2) == [4, 5]
    with harness.restored(snapshot) as again:
        assert again.read(3) == [4, 5, 6]
        again.forget_live_objects()
        assert (again.read(), again.ended) == ([7, 8, 9], True)


def test_subtasks_of_a_source_divide_what_is_left() -> None:
    harness = SourceHarness(NumberSequenceSource(0, 9))
    read = harness.read(4)
    with harness.rescaled(3) as subtasks:
        shares = [subtask.read() for subtask in subtasks]
    assert all(shares) and sorted(read + [row for share in shares for row in share]) == list(range(10))


OFFSET = ListStateDescriptor("offset", Types.LONG())


class Counting(SourceFunction, CheckpointedFunction):
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        self.state = context.get_operator_state_store().get_list_state(OFFSET)
        self.next = next(iter(self.state.get()), 0)

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.state.update([self.next])

    def read(self, limit: ReadLimit) -> Iterable[list[Any]]:
        if self.next == 7:
            raise OSError("the disk is gone")
        rows = list(range(self.next, self.next + limit.rows))
        self.next += len(rows)
        yield rows


def test_a_source_function_and_one_that_fails() -> None:
    harness = SourceHarness(Counting())
    assert harness.read(3) == [0, 1, 2]
    harness = harness.restored()
    assert harness.operator_state(OFFSET) == [3]
    with harness:
        assert harness.read(4) == [3, 4, 5, 6]
        with pytest.raises(FunctionError, match="the disk is gone"):
            harness.read(1)


def test_a_test_source() -> None:
    items = ["a", "b", TestSource.PAUSE, "c", TestSource.ABORT, "d", TestSource.END]
    with SourceHarness(TestSource(items)) as harness:
        assert harness.read(1) == ["a"]
        assert harness.read() == ["b"]
        with pytest.raises(FunctionError, match="item 4: the source fails here once"):
            harness.read()
        harness.take_output()
        assert (harness.read(), harness.ended) == (["c", "d"], True)


def test_a_pause_lasts_for_its_time_and_without_an_end_the_source_stays() -> None:
    source = TestSource(["a", TestSource.pause(80), "b"])
    assert not source.bounded and TestSource([TestSource.END]).bounded
    with SourceHarness(source) as harness:
        assert (harness.read(), harness.read()) == (["a"], [])
        found: list[Any] = []
        for _ in range(1_000_000):
            found = harness.read()
            if found:
                break
        assert (found, harness.read(), harness.ended) == (["b"], [], False)


def test_items_of_a_test_source_are_checked() -> None:
    with pytest.raises(ProgramError, match=r"behind TestSource\.END, which is item 0"):
        TestSource([TestSource.END, "a"])
    with pytest.raises(ProgramError, match="cannot last -1 ms"):
        TestSource.pause(-1)


# -- sinks -------------------------------------------------------------------------------------------------------------


class Folder(TwoPhaseCommitSink):
    """A file for every transaction, named after it, and renamed when it is committed. The handle is the name."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def begin(self, name: TransactionName) -> Any:
        return msgspec.json.encode(name), []

    def write(self, transaction: Any, batch: Batch) -> None:
        if "bad" in batch.values:
            raise ValueError("a bad row")
        transaction[1].extend(batch.values)

    def pre_commit(self, transaction: Any) -> bytes:
        handle, rows = transaction
        self._file(handle, "open").write_text(json.dumps(rows))
        return bytes(handle)

    def discard(self, transaction: Any) -> None:
        (self.path / f"{len(transaction[1])}.discarded").touch()

    def commit(self, handles: Sequence[bytes]) -> None:
        for handle in handles:
            if self._file(handle, "open").exists():
                self._file(handle, "open").rename(self._file(handle, "done"))
            elif not self._file(handle, "done").exists():
                raise TransactionError("lost")

    def open_transactions(self, job_id: str) -> Iterable[TransactionName]:
        names = [name_of_file(file) for file in self.path.glob("*.open")]
        return [name for name in names if name.job_id == job_id]

    def abort(self, name: TransactionName) -> None:
        self._file(msgspec.json.encode(name), "open").unlink(missing_ok=True)

    def name_of(self, handle: bytes) -> TransactionName:
        return msgspec.json.decode(handle, type=TransactionName)

    def _file(self, handle: bytes, state: str) -> Path:
        parts = msgspec.structs.astuple(self.name_of(handle))
        return self.path / f"{'~'.join(map(str, parts))}.{state}"

    def rows(self, state: str = "done") -> list[str]:
        return sorted(row for file in self.path.glob(f"*.{state}") for row in json.loads(file.read_text()))


def name_of_file(file: Path) -> TransactionName:
    job_id, operator_id, subtask, attempt, epoch, nonce = file.stem.split("~")
    return TransactionName(job_id, operator_id, int(subtask), int(attempt), int(epoch), nonce)


def test_rows_are_pre_committed_by_epoch_and_published_by_a_checkpoint(tmp_path: Path) -> None:
    sink = Folder(tmp_path)
    with SinkHarness(sink) as harness:
        harness.push("a").push("b").end_epoch()
        assert (sink.rows("open"), sink.rows(), len(harness.pre_committed)) == (["a", "b"], [], 1)
        harness.push("c").snapshot()
        assert (sink.rows("open"), sink.rows()) == ([], ["a", "b", "c"])
        harness.end_epoch()
        assert harness.pre_committed == []


def test_what_no_checkpoint_holds_is_aborted_at_a_restore(tmp_path: Path) -> None:
    sink = Folder(tmp_path)
    harness = SinkHarness(sink)
    snapshot = harness.push("a").snapshot()
    harness.push("b").end_epoch()
    assert sink.rows("open") == ["b"]
    with harness.restored(snapshot) as again:
        assert (sink.rows("open"), sink.rows()) == ([], ["a"])
        again.push("b").snapshot()
    assert sink.rows() == ["a", "b"]


def test_a_driver_that_is_lost_before_it_commits_is_made_up_for_by_the_next(tmp_path: Path) -> None:
    sink = Folder(tmp_path)
    harness = SinkHarness(sink).push("a")
    snapshot = harness.snapshot(commit=False)
    assert (sink.rows("open"), sink.rows()) == (["a"], [])
    harness = harness.restored(snapshot)
    assert (sink.rows("open"), sink.rows()) == ([], ["a"])
    # And once more, when all of it was committed before.
    with harness.restored(snapshot):
        assert sink.rows() == ["a"]


def test_a_lost_transaction_is_an_error(tmp_path: Path) -> None:
    harness = SinkHarness(Folder(tmp_path)).push("a")
    snapshot = harness.snapshot(commit=False)
    for file in tmp_path.iterdir():
        file.unlink()
    with pytest.raises(TransactionError, match="lost"):
        harness.restored(snapshot)


def test_a_task_that_fails_discards_its_transaction(tmp_path: Path) -> None:
    sink = Folder(tmp_path)
    with SinkHarness(sink) as harness:
        harness.push("a").push("b").fail()
        assert [file.name for file in tmp_path.iterdir()] == ["2.discarded"]
        with pytest.raises(FunctionError, match="a bad row"):
            harness.push("a").push("bad")
        harness.push("c").snapshot()
    assert (sink.rows(), len(list(tmp_path.glob("*.discarded")))) == (["c"], 2)


def test_sinks_over_a_rescale_commit_once(tmp_path: Path) -> None:
    sink = Folder(tmp_path)
    harness = SinkHarness(sink).push("a")
    with harness.rescaled(2) as subtasks:
        subtasks.push("b").push("c").snapshot()
        with subtasks.rescaled(3) as three:
            three.push("d").snapshot()
    assert sink.rows() == ["a", "b", "c", "d"] and sink.rows("open") == []


def test_holdfasts_own_file_sink(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with SinkHarness(FileSink.json(str(path)), input_type="n bigint") as harness:
        harness.push((1,)).end_epoch()
        assert not list(path.glob("*.json"))
        harness.push((2,)).snapshot()
    assert sorted(json.loads(line)["n"] for file in path.glob("*.json") for line in file.read_text().splitlines()) == [
        1,
        2,
    ]


class ToFile(SinkFunction):
    def __init__(self, path: Path) -> None:
        self.path = path

    def invoke(self, value: Any, context: Any) -> None:
        with self.path.open("a") as file:
            file.write(f"{value} at {context.timestamp()}\n")


def test_a_sink_function(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    with SinkHarness(ToFile(path)) as harness:
        harness.push("a", 7).snapshot()
        with pytest.raises(ProgramError, match="A sink has no output"):
            harness.output()
    assert path.read_text() == "a at 7\n"
