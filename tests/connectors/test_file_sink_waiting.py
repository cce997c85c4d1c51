"""Files that wait in staging and are joined."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import fs

from holdfast.connectors.encoder import Encoder
from holdfast.connectors.file_sink.compaction import (
    ConcatFileCompactor,
    FileCompactor,
    FileCompactStrategy,
    IdenticalFileCompactor,
)
from holdfast.connectors.file_sink.held import HeldFile, Moment, due_count, packed
from holdfast.connectors.file_sink.options import BucketAssigner, FileSinkOptions
from holdfast.connectors.file_sink.rolling import DefaultRollingPolicy, RollingPolicy
from holdfast.connectors.file_sink.sink import FileSink
from holdfast.errors import ConfigurationError, ProgramError, TransactionError
from holdfast.runtime.epoch import EpochEnd
from holdfast.state.handles import SnapshotType
from holdfast.storage.remote import ArrowStorage
from holdfast.testing.contracts.sinks import JOB, transaction_name
from tests.connectors.directories import committed_files, staged_files
from tests.connectors.sink_subtask import HandClock, Subtask

NEVER = DefaultRollingPolicy(1 << 30, 1 << 40, 1 << 40)


@pytest.fixture(autouse=True)
def clock() -> None:
    HandClock.now = 1_000_000.0


def strategy(checkpoints: int = 2) -> FileCompactStrategy:
    return FileCompactStrategy.builder().enable_compaction_on_checkpoint(checkpoints).build()


def lines(path: Path) -> FileSink:
    return FileSink.for_row_format(str(path), Encoder.simple_string_encoder()).build()


def contents(path: Path) -> list[str]:
    return [file.read_text() for file in committed_files(path)]


# -- decisions


@given(st.lists(st.tuples(st.integers(1, 50), st.sampled_from("ab"))), st.none() | st.integers(1, 120))
def test_files_are_packed_in_their_order_below_the_size(files: list[tuple[int, str]], part_size: int | None) -> None:
    held = [HeldFile("/", str(number), "", size, "", layout, "", 0, 0) for number, (size, layout) in enumerate(files)]
    groups = packed(held, part_size)

    assert [file for group in groups for file in group] == held
    assert all(len({file.layout for file in group}) == 1 for group in groups)
    for group in groups:
        assert part_size is None or len(group) == 1 or sum(file.size for file in group) <= part_size
    # No two neighbours could have been one.
    for left, right in itertools.pairwise(groups):
        fits = part_size is None or sum(f.size for f in left) + right[0].size <= part_size
        assert not fits or left[0].layout != right[0].layout


@pytest.mark.parametrize(
    ("size", "first", "last", "due"),
    [(10, 1, 99, False), (100, 99, 99, True), (10, 0, 99, True), (10, 90, 95, True), (10, 90, 96, False)],
)
def test_the_rolling_policy_looks_at_size_age_and_idleness(size: int, first: int, last: int, due: bool) -> None:
    options = FileSinkOptions(rolling=RollingPolicy.default_rolling_policy(100, 100, 5))
    held = [HeldFile("/", "a", "", size, "", "", "", first, last)]

    assert due_count(held, options, Moment(100)) == due
    assert due_count(held, options, Moment(0, flush=True)) == 1


# -- rolling


def test_a_part_goes_on_over_checkpoints_until_it_is_old_enough(tmp_path: Path) -> None:
    task = Subtask(lines(tmp_path).with_rolling_policy(RollingPolicy.default_rolling_policy(1 << 20, 10_000, 60_000)))
    for values in ([1], [2]):
        task.sink.commit([task.epoch(values, seconds=4)])
    assert contents(tmp_path) == []
    task.sink.commit([task.epoch([3], seconds=4)])

    assert contents(tmp_path) == ["1\n2\n3\n"]
    assert staged_files(tmp_path) == []


def test_a_part_without_new_rows_is_published_by_an_epoch_without_rows(tmp_path: Path) -> None:
    task = Subtask(lines(tmp_path).with_rolling_policy(RollingPolicy.default_rolling_policy(1 << 20, 1 << 40, 5_000)))
    task.sink.commit([task.epoch([1])])
    assert task.epoch(end=EpochEnd()) is None
    HandClock.now += 5
    handle = task.epoch(end=EpochEnd())
    assert handle is not None
    task.sink.commit([handle])

    assert contents(tmp_path) == ["1\n"]
    assert staged_files(tmp_path) == []


def test_parts_end_by_size_and_age_within_an_epoch(tmp_path: Path) -> None:
    """Several files of one transaction."""
    policy = RollingPolicy.default_rolling_policy(4, 10_000, 1 << 40)
    task = Subtask(lines(tmp_path).with_rolling_policy(policy))
    handle = task.epoch(["aaaa"], ["b"], ["c"], ["d"], end=EpochEnd(ended=True), seconds=9)
    assert handle is not None
    task.sink.commit([handle])

    assert sorted(contents(tmp_path)) == ["aaaa\n", "b\nc\n", "d\n"]
    assert len({path.name.rpartition("-n0")[0] for path in committed_files(tmp_path)}) == 1


def test_a_part_that_is_old_enough_within_an_epoch_ends_what_waited_before_it(tmp_path: Path) -> None:
    """What comes behind it waits anew."""
    task = Subtask(lines(tmp_path).with_rolling_policy(RollingPolicy.default_rolling_policy(1 << 20, 10_000, 1 << 40)))
    handles = [task.epoch([1], seconds=1), task.epoch([2], [3], [4], [5], seconds=8)]
    task.sink.commit([handle for handle in handles if handle is not None])
    assert contents(tmp_path) == ["1\n2\n3\n4\n"]
    rest = task.epoch(end=EpochEnd(ended=True))
    assert rest is not None
    task.sink.commit([rest])

    assert sorted(contents(tmp_path)) == ["1\n2\n3\n4\n", "5\n"]
    assert staged_files(tmp_path) == []


def test_the_folder_of_the_moment_may_change_within_an_epoch(tmp_path: Path) -> None:
    sink = lines(tmp_path).with_bucket_assigner(BucketAssigner.date_time_bucket_assigner("yyyy-MM-dd--HH-mm", "UTC"))
    task = Subtask(sink)
    task.sink.commit([task.epoch([1], [2], [3], seconds=30)])

    assert [(path.parent.name, path.read_text()) for path in committed_files(tmp_path)] == [
        ("1970-01-12--13-46", "1\n"),
        ("1970-01-12--13-47", "2\n3\n"),
    ]


SAVEPOINTS = [EpochEnd(SnapshotType.SAVEPOINT), EpochEnd(SnapshotType.SYNC_SAVEPOINT)]


@pytest.mark.parametrize("end", [EpochEnd(ended=True), *SAVEPOINTS])
def test_nothing_waits_behind_savepoints_and_the_end(tmp_path: Path, end: EpochEnd) -> None:
    task = Subtask(lines(tmp_path).with_rolling_policy(NEVER))
    first, second = task.epoch([1]), task.epoch([2], end=end)
    assert first is not None and second is not None
    task.sink.commit([first, second])

    assert contents(tmp_path) == ["1\n2\n"]
    assert task.sink._kept.elements() == []


# -- joining


@pytest.mark.parametrize("remote", [False, True], ids=["local", "remote"])
@pytest.mark.parametrize("kind", ["json", "csv", "csv without header", "parquet", "lines"])
def test_files_of_a_format_are_joined_into_one_of_it(tmp_path: Path, kind: str, remote: bool) -> None:
    sinks = {
        "json": FileSink.json(str(tmp_path)),
        "csv": FileSink.csv(str(tmp_path)),
        "csv without header": FileSink.csv(str(tmp_path), header=False),
        "parquet": FileSink.parquet(str(tmp_path)),
        "lines": lines(tmp_path),
    }
    task = Subtask(sinks[kind].enable_compact(strategy(3)))
    if remote:
        task.sink._storage = ArrowStorage(str(tmp_path), fs.LocalFileSystem(), str(tmp_path), atomic_rename=False)
    for values in ([1, 2], [3], [4]):
        task.sink.commit([task.epoch(values)])

    (path,) = committed_files(tmp_path)
    if kind == "parquet":
        assert pq.read_table(path).column("value").to_pylist() == [1, 2, 3, 4]
        assert pq.ParquetFile(path).num_row_groups == 1
    elif kind == "json":
        assert [json.loads(line)["value"] for line in path.read_text().splitlines()] == [1, 2, 3, 4]
    else:
        expected = "1\n2\n3\n4\n"
        assert path.read_text() == ('"value"\n' if kind == "csv" else "") + expected
    assert staged_files(tmp_path) == []


class Shouting(FileCompactor):
    def compact(self, inputs: Any, output: Any) -> None:
        output.write(b"!".join(stream.read() for stream in inputs))


@pytest.mark.parametrize(
    ("compactor", "expected"),
    [
        (ConcatFileCompactor(b"--\n"), ["1\n--\n2\n"]),
        (IdenticalFileCompactor(), ["1\n", "2\n"]),
        (Shouting(), ["1\n!2\n"]),
    ],
)
def test_compactors(tmp_path: Path, compactor: FileCompactor, expected: list[str]) -> None:
    task = Subtask(lines(tmp_path).enable_compact(strategy(), compactor))
    handles = [task.epoch([1]), task.epoch([2])]
    task.sink.commit([handle for handle in handles if handle is not None])

    assert sorted(contents(tmp_path)) == expected
    assert staged_files(tmp_path) == []


def test_compaction_by_size(tmp_path: Path) -> None:
    by_size = FileCompactStrategy.builder().set_size_threshold(6).build()
    task = Subtask(lines(tmp_path).enable_compact(by_size))
    handles = [task.epoch(values, end=EpochEnd()) for values in ([1], [2], [3], [4])]
    task.sink.commit([handle for handle in handles if handle is not None])

    assert contents(tmp_path) == ["1\n2\n3\n"]
    assert len(staged_files(tmp_path)) == 2  # the fourth, and what says that it stays


def test_what_cannot_be_joined_is_refused(tmp_path: Path) -> None:
    for sink in (FileSink.parquet(str(tmp_path)), FileSink.csv(str(tmp_path))):
        with pytest.raises(ProgramError, match="cannot be joined byte by byte"):
            sink.enable_compact(strategy(), ConcatFileCompactor())
    with pytest.raises(ConfigurationError, match="says when files are joined"):
        FileCompactStrategy.builder().build()
    for wrong in ("enable_compaction_on_checkpoint", "set_size_threshold"):
        with pytest.raises(ConfigurationError, match="0"):
            getattr(FileCompactStrategy.builder(), wrong)(0)


def test_files_of_an_earlier_version_of_the_program_stay_as_they_are(tmp_path: Path) -> None:
    """It wrote another format, to another path."""
    old = Subtask(FileSink.json(str(tmp_path / "old")).enable_compact(strategy(9)))
    handle = old.epoch([1])
    assert handle is not None
    old.sink.commit([handle])
    new = Subtask(FileSink.parquet(str(tmp_path / "new")).enable_compact(strategy(1)))
    new.sink._kept.restore(old.sink._kept.elements())
    new.sink.commit([new.epoch([2])])

    kinds = {path.suffix: path for path in committed_files(tmp_path / "new")}
    assert kinds[".json"].read_text() == '{"value":1}\n'
    assert pq.read_table(kinds[".parquet"]).column("value").to_pylist() == [2]
    assert staged_files(tmp_path / "old") == staged_files(tmp_path / "new") == []


# -- the driver


def test_commits_may_be_repeated_in_any_order_of_crashes(tmp_path: Path) -> None:
    """A file waits with the first commit and is joined with the second; each is done again, alone and together."""
    task = Subtask(lines(tmp_path).enable_compact(strategy(3)))
    first, second = task.epoch([1]), task.epoch([2])
    assert first is not None and second is not None
    for _ in range(2):
        task.sink.recover_and_commit([first])
        task.sink.commit([first, second])
        assert list(task.sink.open_transactions(JOB)) == []
        task.sink.abort(transaction_name(1))
    third = task.epoch([3])
    assert third is not None
    for handles in ([third], [second, third], [first, second, third], [third]):
        task.sink.recover_and_commit(handles)
        assert contents(tmp_path) == ["1\n2\n3\n"]
        assert staged_files(tmp_path) == []


def test_what_is_in_no_checkpoint_is_aborted_and_what_is_stays(tmp_path: Path) -> None:
    task = Subtask(lines(tmp_path).enable_compact(strategy(9)))
    kept = task.epoch([1])
    assert kept is not None
    task.epoch([2])
    task.sink.commit([kept])
    (stray,) = task.sink.open_transactions(JOB)
    assert stray.epoch == 2
    task.sink.abort(stray)

    assert sorted(path.name for path in staged_files(tmp_path)) == ["0-1-0-n0.txt", "0-1-0-n0.txt.held"]


def test_a_waiting_file_that_is_lost_or_cut_is_noticed(tmp_path: Path) -> None:
    task = Subtask(lines(tmp_path).enable_compact(strategy(2)))
    handle = task.epoch([1])
    assert handle is not None
    staged_files(tmp_path)[0].write_text("")
    with pytest.raises(TransactionError, match=r"0-1-0-n0.txt: the file has 0 bytes, 2 were written"):
        task.epoch([2])
    staged_files(tmp_path)[0].unlink()
    with pytest.raises(TransactionError, match="is lost, though"):
        task.sink.commit([handle])


@pytest.mark.parametrize("compactor", [None, IdenticalFileCompactor()], ids=["joined", "as they are"])
@pytest.mark.parametrize("kind", ["json", "csv", "lines"])
def test_a_digit_that_changed_while_its_file_waited_is_not_published(
    tmp_path: Path, kind: str, compactor: FileCompactor | None
) -> None:
    sinks = {"json": FileSink.json(str(tmp_path)), "csv": FileSink.csv(str(tmp_path)), "lines": lines(tmp_path)}
    task = Subtask(sinks[kind].enable_compact(strategy(2), compactor))
    task.sink.commit([task.epoch([1111, 2222])])
    (waiting,) = (path for path in staged_files(tmp_path) if path.suffix != ".held")
    waiting.write_text(waiting.read_text().replace("2222", "2322"))

    with pytest.raises(TransactionError, match=f"{waiting.name}: the checksum of the content is .*put back the file"):
        task.epoch([3])
    assert contents(tmp_path) == []


def test_the_handles_of_a_checkpoint_name_everything_that_waits(tmp_path: Path) -> None:
    """So that no marker is needed to know it; those of epochs without a checkpoint name what is new."""
    task = Subtask(lines(tmp_path).enable_compact(strategy(9)))
    first, between, last = task.epoch([1]), task.epoch([2], end=EpochEnd()), task.epoch()
    assert first is not None and between is not None and last is not None

    assert sorted(task.sink.needs(between)) == [transaction_name(2)]
    assert sorted(task.sink.needs(last)) == [transaction_name(1), transaction_name(2), transaction_name(3)]


def test_handles_of_the_version_before_are_committed(tmp_path: Path) -> None:
    """They do not say what waits in all."""
    task = Subtask(lines(tmp_path).enable_compact(strategy(9)))
    handle = task.epoch([1])
    assert handle is not None
    fields = msgspec.msgpack.decode(handle)
    del fields["waiting"]
    old = msgspec.msgpack.encode(fields)
    task.sink.recover_and_commit([old])

    assert list(task.sink.needs(old)) == [transaction_name(1)]
    assert list(task.sink.open_transactions(JOB)) == []
