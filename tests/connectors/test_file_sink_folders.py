"""Columns that are folders, and markers of finished folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.connectors.encoder import Encoder
from holdfast.connectors.file_sink import transaction
from holdfast.connectors.file_sink.compaction import FileCompactStrategy
from holdfast.connectors.file_sink.naming import FileHandle
from holdfast.connectors.file_sink.options import BucketAssigner
from holdfast.connectors.file_sink.partitions import PartitionSplitter
from holdfast.connectors.file_sink.sink import FileSink
from holdfast.errors import ProgramError
from holdfast.runtime.batch import Batch
from holdfast.runtime.epoch import EpochEnd
from holdfast.state.handles import SnapshotType
from holdfast.types.resolve import resolve
from tests.connectors.directories import committed_files
from tests.connectors.sink_subtask import CHECKPOINT, HandClock, Subtask

PAIR = "k STRING, n BIGINT"


@pytest.fixture(autouse=True)
def clock() -> None:
    HandClock.now = 1_000_000.0


def lines(path: Path) -> FileSink:
    return FileSink.for_row_format(str(path), Encoder.simple_string_encoder()).build()


@given(st.lists(st.tuples(st.sampled_from(["a", "", None, "x/y=1%", "\u00e4 b"]), st.integers(0, 3)), max_size=30))
def test_rows_are_split_by_their_values_in_their_order(rows: list[tuple[str | None, int]]) -> None:
    splitter = PartitionSplitter(resolve("k STRING, d INT, n BIGINT"), ["k", "d"])
    given_rows = [(k, d, n) for n, (k, d) in enumerate(rows)]
    folders = {"a": "a", "": "__HIVE_DEFAULT_PARTITION__", None: "__HIVE_DEFAULT_PARTITION__"}
    folders |= {"x/y=1%": "x%2Fy%3D1%25", "\u00e4 b": "\u00e4 b"}
    found: dict[str, list[int]] = {}
    if not given_rows:
        return
    for folder, batch in splitter.split(Batch(given_rows)):
        assert batch.arrow is not None and batch.arrow.schema.names == ["n"]
        found.setdefault(folder, []).extend(row.n for row in batch.values)
    expected: dict[str, list[int]] = {}
    for k, d, n in given_rows:
        expected.setdefault(f"k={folders[k]}/d={d}", []).append(n)
    assert {folder: sorted(numbers) for folder, numbers in found.items()} == expected


@pytest.mark.parametrize("limit", [100, 1 << 20])
def test_many_folders_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    """More than may be open: the others' rows are collected, up to a limit."""
    monkeypatch.setattr(transaction, "MAX_OPEN_PARTS", 20)
    monkeypatch.setattr(transaction, "MAX_COLLECTED_BYTES", limit)
    task = Subtask(FileSink.json(str(tmp_path)).partition_by("n"), "n BIGINT, k STRING")
    rows = [(n % 50, str(n)) for n in range(500)]
    columns = pa.RecordBatch.from_pydict({"n": [n for n, _ in rows], "k": [k for _, k in rows]})
    handle = task.epoch(columns.slice(0, 250), columns.slice(250))
    assert handle is not None
    task.sink.commit([handle])

    found = [
        (int(path.parent.name.removeprefix("n=")), json.loads(line)["k"])
        for path in committed_files(tmp_path)
        for line in path.read_text().splitlines()
    ]
    assert sorted(found) == sorted(rows)
    assert len(list(tmp_path.glob("n=*"))) == 50
    assert len(committed_files(tmp_path)) == (80 if limit == 100 else 50)


@pytest.mark.parametrize(
    ("columns", "type_info", "problem"),
    [
        (("x",), PAIR, "names the column 'x'; the stream has"),
        (("k", "n"), PAIR, "leaves no column"),
        (("k", "k"), PAIR, "one twice"),
        ((), PAIR, "no column"),
        (("f",), "f DOUBLE, n INT", "double, which cannot be the name of a folder"),
        (("_k",), "_k STRING, n INT", "cannot be a folder"),
        (("k",), int, "needs a stream of rows with declared columns"),
        (("k",), None, "needs a stream of rows with declared columns"),
    ],
)
def test_columns_that_cannot_be_folders(tmp_path: Path, columns: tuple[str, ...], type_info: Any, problem: str) -> None:
    with pytest.raises(ProgramError, match=problem):
        FileSink.json(str(tmp_path)).partition_by(*columns).bind_type(type_info)
    with pytest.raises(ProgramError, match="have no columns"):
        lines(tmp_path).partition_by("k")


def test_spark_and_arrow_find_the_columns_again(tmp_path: Path) -> None:
    task = Subtask(FileSink.parquet(str(tmp_path)).partition_by("k"), PAIR)
    rows = [("a", 1), (None, 2), ("x/y", 3)]
    task.sink.commit([task.epoch(rows)])

    table = pq.read_table(tmp_path, partitioning="hive")
    found = zip(table.column("k").cast(pa.string()).to_pylist(), table.column("n").to_pylist(), strict=True)
    assert sorted(found, key=lambda row: row[1]) == rows


# -- markers


def marked(path: Path) -> set[str]:
    return {str(marker.parent.relative_to(path)) for marker in path.rglob("_SUCCESS")}


def test_a_folder_is_finished_when_all_subtasks_are_done_with_it(tmp_path: Path) -> None:
    sink = FileSink.json(str(tmp_path)).partition_by("k").with_success_markers(10_000)
    tasks = [Subtask(sink, PAIR, number, 2) for number in range(2)]

    def checkpoint(*rows: list[Any], end: EpochEnd = CHECKPOINT) -> None:
        handles = [task.epoch(*([own] if own else []), end=end) for task, own in zip(tasks, rows, strict=True)]
        sink.commit([handle for handle in handles if handle is not None])

    checkpoint([("a", 1)], [("a", 2), ("b", 3)])
    assert marked(tmp_path) == set()
    HandClock.now += 9
    checkpoint([], [("a", 4)])
    # The first subtask is done with a, the second with b only.
    assert marked(tmp_path) == {"k=b"}
    HandClock.now += 10
    checkpoint([], [])
    assert marked(tmp_path) == {"k=a", "k=b"}
    checkpoint([("b", 5)], [])
    assert marked(tmp_path) == {"k=a"}
    checkpoint([], [], end=EpochEnd(SnapshotType.CHECKPOINT, ended=True))
    assert marked(tmp_path) == {"k=a", "k=b", "."}


def test_one_subtask_that_ended_does_not_end_the_job(tmp_path: Path) -> None:
    sink = lines(tmp_path).with_success_markers(0)
    tasks = [Subtask(sink, int, number, 2) for number in range(2)]
    ended = EpochEnd(SnapshotType.CHECKPOINT, ended=True)
    handles = [tasks[0].epoch([1], end=ended), tasks[1].epoch([2])]
    sink.commit([handle for handle in handles if handle is not None])
    assert marked(tmp_path) == set()
    handles = [task.epoch(end=ended) for task in tasks]
    sink.commit([handle for handle in handles if handle is not None])

    assert marked(tmp_path) == {"."}


def test_a_folder_of_the_moment_is_not_finished_before_its_time_is_over(tmp_path: Path) -> None:
    assigner = BucketAssigner.date_time_bucket_assigner("yyyy-MM-dd--HH-mm", "UTC")
    task = Subtask(lines(tmp_path).with_bucket_assigner(assigner).with_success_markers(1_000))
    task.sink.commit([task.epoch([1])])
    HandClock.now += 10
    task.sink.commit([task.epoch()])
    assert marked(tmp_path) == set()
    HandClock.now += 60
    task.sink.commit([task.epoch()])

    assert marked(tmp_path) == {"1970-01-12--13-46"}


def test_a_folder_whose_files_wait_is_not_finished(tmp_path: Path) -> None:
    in_threes = FileCompactStrategy.builder().enable_compaction_on_checkpoint(3).build()
    sink = FileSink.json(str(tmp_path)).partition_by("k").with_success_markers(0).enable_compact(in_threes)
    task = Subtask(sink, PAIR)
    for rows in ([("a", 1)], []):
        handle = task.epoch(rows)
        assert handle is not None and FileHandle.decode(handle).files == []
        task.sink.commit([handle])
        assert marked(tmp_path) == set()
    task.sink.commit([task.epoch()])

    assert marked(tmp_path) == {"k=a"}


def test_a_folder_is_not_finished_while_another_subtask_has_its_files_after_rescaling(tmp_path: Path) -> None:
    in_fours = FileCompactStrategy.builder().enable_compaction_on_checkpoint(4).build()
    sink = FileSink.json(str(tmp_path)).partition_by("k").with_success_markers(0).enable_compact(in_fours)
    before = Subtask(sink, PAIR)
    before.sink.commit([before.epoch([("a", 1)])])
    tasks = [Subtask(sink, PAIR, number, 2) for number in range(2)]
    for task, element in zip(tasks, before.sink._kept.elements(), strict=True):
        task.sink._kept.restore([element])

    for _ in range(2):
        sink.commit([handle for task in tasks if (handle := task.epoch()) is not None])
        assert marked(tmp_path) == set()
    sink.commit([handle for task in tasks if (handle := task.epoch()) is not None])
    assert marked(tmp_path) == {"k=a"}
    assert len(committed_files(tmp_path)) == 1
