"""Batches of staged rows without Spark: rows are read with Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from holdfast.common import Row, Types, WatermarkStrategy
from holdfast.errors import ProgramError, TransactionError
from holdfast.runtime.batch import Batch
from holdfast.runtime.sink import TransactionName
from holdfast.spark import for_each_batch
from holdfast.spark.for_each_batch import ForEachBatchSink, batch_id_of
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import Scripted, environment
from tests.job.counting import settings

ROW = Types.ROW_NAMED(["n"], [Types.LONG()])
Calls = list[tuple[int, list[int]]]


@pytest.fixture(autouse=True)
def read_with_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(files: Sequence[str]) -> list[int]:
        return [value for file in files for value in pq.read_table(file).column("n").to_pylist()]

    monkeypatch.setattr(for_each_batch, "read_rows", read)


class Recorded:
    """A sink whose function notes its calls, and raises when told to."""

    def __init__(self, directory: Path) -> None:
        self.calls: Calls = []
        self.failing = False
        self.sink = ForEachBatchSink(self._call, None)
        self.sink.bind_type(ROW)
        self.sink.bind_checkpoint_directory(str(directory))

    def _call(self, rows: Any, batch_id: int) -> None:
        self.calls.append((batch_id, rows))
        if self.failing:
            raise ValueError("the table is locked")

    def staged(self, epoch: int, values: list[int], subtask: int = 0, attempt: int = 1) -> bytes:
        name = TransactionName("job", "batches", subtask, attempt, epoch, f"nonce{subtask}")
        transaction = self.sink.begin(name)
        self.sink.write(transaction, Batch([row_of(value) for value in values]))
        handle = self.sink.pre_commit(transaction)
        assert handle is not None
        return handle


def row_of(value: int) -> Row:
    return Row(n=value)


def id_of(epoch: int, attempt: int = 1) -> int:
    return batch_id_of(TransactionName("job", "batches", 0, attempt, epoch, "n"))


def test_all_rows_of_an_epoch_are_one_batch_and_epochs_come_in_order(tmp_path: Path) -> None:
    batches = Recorded(tmp_path)
    late = batches.staged(7, [5])
    handles = [late, batches.staged(6, [3, 4], subtask=1), batches.staged(6, [1, 2])]
    batches.sink.commit(handles)
    assert batches.calls == [(id_of(6), [1, 2, 3, 4]), (id_of(7), [5])]
    batches.sink.recover_and_commit(handles)
    assert len(batches.calls) == 2, "what was delivered came again"
    assert list(batches.sink.open_transactions("job")) == []


def test_a_batch_whose_function_raised_comes_again_as_it_was(tmp_path: Path) -> None:
    batches = Recorded(tmp_path)
    handles = [batches.staged(3, [1]), batches.staged(3, [2], subtask=1)]
    batches.failing = True
    with pytest.raises(ValueError, match="locked"):
        batches.sink.commit(handles)
    # Another process, in which the program made its sink anew.
    again = Recorded(tmp_path)
    again.sink.recover_and_commit(handles)
    assert batches.calls == again.calls == [(id_of(3), [1, 2])]


def test_ids_grow_with_epochs_and_are_not_used_again_by_another_attempt() -> None:
    ids = [id_of(1), id_of(2), id_of(2, attempt=2), id_of(3, attempt=2), id_of(4, attempt=1)]
    assert ids == sorted(set(ids))


def test_lost_rows_are_not_taken_for_delivered_ones(tmp_path: Path) -> None:
    batches = Recorded(tmp_path)
    handle = batches.staged(3, [1])
    batches.sink.abort(batches.sink.name_of(handle))
    with pytest.raises(TransactionError, match=f"The rows of batch {id_of(3)} are lost"):
        batches.sink.commit([handle])


def test_rows_that_were_damaged_meanwhile_are_not_handed_over(tmp_path: Path) -> None:
    """By a recovery, which cannot know what has happened to their file."""
    batches = Recorded(tmp_path)
    handle = batches.staged(3, [1])
    (path,) = tmp_path.rglob("*.parquet")
    content = path.read_bytes()
    path.write_bytes(content[:20] + bytes([content[20] ^ 1]) + content[21:])
    with pytest.raises(TransactionError, match=f"{path.name}: the checksum of the content is"):
        batches.sink.recover_and_commit([handle])
    assert batches.calls == []


def test_rows_need_a_directory_that_is_reached_from_everywhere() -> None:
    sink = ForEachBatchSink(lambda rows, batch_id: None, None)
    sink.bind_type(ROW)
    with pytest.raises(ProgramError, match=r"set execution.checkpointing.dir, or give it a staging_path"):
        sink.bind_checkpoint_directory(None)


def test_a_whole_job_hands_over_every_row_once_over_a_failure(tmp_path: Path, in_process: InProcessEngine) -> None:
    calls: Calls = []

    def write(rows: Any, batch_id: int) -> None:
        calls.append((batch_id, sorted(rows)))
        if len(calls) == 2:
            raise ValueError("the table is locked")

    env = environment(**settings(tmp_path))
    rows = env.from_source(Scripted([[1, 2], [3], [4, 5], []]), WatermarkStrategy.no_watermarks(), "script")
    rows.map(lambda value: row_of(value), ROW).for_each_batch(write)
    env.execute("batches")
    assert calls[1] == calls[2], "the batch did not come again as it was"
    assert sorted(value for _, values in dict(calls).items() for value in values) == [1, 2, 3, 4, 5]
