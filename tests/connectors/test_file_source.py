"""What holds for every format: exactness, discovery, ownership, files that change."""

from __future__ import annotations

import csv
import json
import logging
import os
import random
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.connectors.files.reader import Discovery
from holdfast.connectors.files.source import FileSource, StreamFormat
from holdfast.errors import ConfigurationError, ProgramError, StorageError
from holdfast.types.row import Row
from holdfast.types.typeinfo import Types
from tests.connectors.driving import limit_of, positions_of, read_all, read_epoch, readers_of, run_with_failures

SCHEMA = "id BIGINT, name STRING"
row = Row("id", "name")


def write_file(path: Path, ids: list[int]) -> None:
    """A file of the format that its extension names, complete when it appears."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"_draft-{path.name}")
    names = [f"n\u00e4me,{i}" for i in ids]
    if path.suffix == ".parquet":
        table = pa.table({"id": pa.array(ids, pa.int64()), "name": pa.array(names, pa.string())})
        pq.write_table(table, draft, row_group_size=7)
    elif path.suffix == ".json":
        lines = [json.dumps({"id": i, "name": name}) for i, name in zip(ids, names, strict=True)]
        draft.write_text("\n".join(lines), encoding="utf-8")
    elif path.suffix == ".csv":
        with draft.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows([["id", "name"], *zip(ids, names, strict=True)])
    else:
        draft.write_text("".join(f"{i}\n" for i in ids))
    draft.rename(path)


def source_of(directory: Path, kind: str, bounded: bool = True) -> FileSource:
    if kind == "parquet":
        return FileSource.parquet(str(directory), SCHEMA, bounded=bounded)
    if kind == "json":
        return FileSource.json(str(directory), SCHEMA, bounded=bounded)
    if kind == "csv":
        return FileSource.csv(str(directory), SCHEMA, bounded=bounded)
    return FileSource.text(str(directory), bounded=bounded)


def ids_of(rows: list) -> list[int]:
    return sorted(int(value) if isinstance(value, str) else value.id for value in rows)


@pytest.mark.parametrize("kind", ["parquet", "json", "csv", "txt"])
@pytest.mark.parametrize("seed", range(8))
def test_a_static_file_set_is_read_exactly_once_whatever_fails(tmp_path, kind, seed):
    rng = random.Random(f"{kind}{seed}")
    next_id = 0
    for number in range(rng.randint(0, 9)):
        count = rng.choice([0, 1, 5, 60])
        write_file(tmp_path / rng.choice(["", "deeper/"]) / f"{number}.{kind}", list(range(next_id, next_id + count)))
        next_id += count

    rows = run_with_failures(source_of(tmp_path, kind), rng, epoch_rows=25)

    assert ids_of(rows) == list(range(next_id))


@pytest.mark.parametrize("kind", ["parquet", "json", "csv", "txt"])
@pytest.mark.parametrize("seed", range(4))
def test_files_that_appear_while_the_job_runs_are_found(tmp_path, kind, seed):
    rng = random.Random(f"{kind}{seed}")
    total = epochs = 0

    def add_files(epoch: int) -> None:
        nonlocal total, epochs
        epochs = epoch
        if epoch < 12 and rng.random() < 0.6:
            count = rng.randint(0, 40)
            # Names are not in the order of time.
            write_file(tmp_path / f"{rng.random()}-{epoch}.{kind}", list(range(total, total + count)))
            total += count

    source = source_of(tmp_path, kind, bounded=False).monitor_continuously(0)
    rows = run_with_failures(
        source, rng, epoch_rows=30, between=add_files, enough=lambda rows: epochs > 12 and len(rows) == total
    )

    assert ids_of(rows) == list(range(total))


def test_every_file_has_one_owner(tmp_path):
    for number in range(20):
        write_file(tmp_path / "here" / f"{number}.txt", [number])
    shares = [ids_of(read_epoch(reader)) for reader in readers_of(source_of(tmp_path / "here", "txt"), 4)]

    assert sorted(number for share in shares for number in share) == list(range(20))
    assert sum(bool(share) for share in shares) > 1


def test_a_subtask_reads_in_the_order_of_names_but_ends_what_it_began(tmp_path):
    write_file(tmp_path / "b.txt", [10, 11, 12])
    write_file(tmp_path / "c.txt", [20])
    (reader,) = readers_of(source_of(tmp_path, "txt", bounded=False).monitor_continuously(0), 1)
    first = read_epoch(reader, 1)
    write_file(tmp_path / "a.txt", [0])

    assert first + read_epoch(reader) == ["10", "11", "12", "0", "20"]


def test_names_that_begin_with_underscore_or_dot_are_left_out(tmp_path):
    for name in ("_SUCCESS.txt", ".hidden.txt", "_staging/deep/a.txt", ".git/b.txt", "good/c.txt"):
        write_file(tmp_path / name, [1 if name.startswith("good") else 2])
    (reader,) = readers_of(source_of(tmp_path, "txt"), 1)

    assert read_epoch(reader) == ["1"]


def test_paths_may_be_files_and_lists(tmp_path):
    write_file(tmp_path / "one.txt", [1])
    write_file(tmp_path / "two/a.txt", [2])
    write_file(tmp_path / "ignored.txt", [3])
    source = FileSource.text([str(tmp_path / "one.txt"), f"file://{tmp_path}/two"], bounded=True)
    rows = run_with_failures(source, random.Random(1), epoch_rows=1)

    assert ids_of(rows) == [1, 2]


def test_files_given_one_by_one_are_spread_over_subtasks(tmp_path):
    for number in range(20):
        write_file(tmp_path / f"{number}.txt", [number])
    source = FileSource.text([str(tmp_path / f"{number}.txt") for number in range(20)], bounded=True)
    shares = [read_epoch(reader) for reader in readers_of(source, 2)]

    assert all(shares)
    assert ids_of(shares[0] + shares[1]) == list(range(20))


def test_a_bounded_source_does_not_see_what_comes_later(tmp_path):
    write_file(tmp_path / "a.txt", [1])
    (reader,) = readers_of(source_of(tmp_path, "txt"), 1)
    write_file(tmp_path / "b.txt", [2])
    positions = positions_of([reader])
    (restored,) = readers_of(source_of(tmp_path, "txt"), 1, positions)

    assert read_epoch(reader) == read_epoch(restored) == ["1"]
    assert reader.ended
    assert restored.ended


def test_a_source_that_gets_an_end_reads_what_was_found_before_and_not_begun(tmp_path):
    for number in range(4):
        write_file(tmp_path / f"{number}.txt", [2 * number, 2 * number + 1])
    source = source_of(tmp_path, "txt", bounded=False)
    (reader,) = readers_of(source, 1)
    rows = read_epoch(reader, 3)
    write_file(tmp_path / "4.txt", [8, 9])
    readers = readers_of(source.process_static_file_set(), 2, positions_of([reader]))
    write_file(tmp_path / "5.txt", [10])
    again = readers_of(source.process_static_file_set(), 3, positions_of(readers))

    assert ids_of(rows + read_all(readers)) == ids_of(rows + read_all(again)) == list(range(10))
    assert all(reader.ended for reader in readers + again)


def test_an_empty_directory_ends_a_bounded_source_at_once(tmp_path):
    (reader,) = readers_of(source_of(tmp_path, "txt"), 1)

    assert read_epoch(reader) == []
    assert reader.ended


class HandClock:
    now = 0.0

    def __call__(self) -> float:
        return HandClock.now


def test_the_directory_is_listed_at_most_once_per_interval(tmp_path):
    HandClock.now = 0.0
    discovery = Discovery(10_000, HandClock())
    source = FileSource(str(tmp_path), StreamFormat.text_line_format(), discovery=discovery)
    (reader,) = readers_of(source, 1)
    assert read_epoch(reader) == []
    write_file(tmp_path / "a.txt", [1])
    HandClock.now = 9.9
    assert read_epoch(reader) == []
    HandClock.now = 10.0

    assert read_epoch(reader) == ["1"]


def test_positions_tell_how_far_each_file_was_read(tmp_path):
    write_file(tmp_path / "a.txt", [10, 11])
    write_file(tmp_path / "b.txt", [20, 21])
    (reader,) = readers_of(source_of(tmp_path, "txt"), 1)
    read_epoch(reader, 3)

    file, rest = positions_of([reader])
    assert (file.path, file.size, file.offset) == (f"{tmp_path}/b.txt", 6, 3)
    assert len(rest.seen) == 32


def test_a_restored_job_with_other_paths_reads_its_old_files_to_the_end(tmp_path):
    write_file(tmp_path / "old/a.txt", [1, 2])
    write_file(tmp_path / "new/b.txt", [3])
    (reader,) = readers_of(source_of(tmp_path / "old", "txt", bounded=False), 1)
    read_epoch(reader, 1)
    readers = readers_of(source_of(tmp_path / "new", "txt", bounded=False), 3, positions_of([reader]))

    assert ids_of(read_all(readers)) == [2, 3]


@pytest.mark.parametrize("kind", ["parquet", "txt"])
def test_a_file_that_changed_before_it_was_read_is_an_error(tmp_path, kind):
    path = tmp_path / f"a.{kind}"
    write_file(path, list(range(50)))
    (reader,) = readers_of(source_of(tmp_path, kind), 1)
    size = path.stat().st_size
    write_file(path, list(range(70)))

    with pytest.raises(StorageError, match=rf"a\.{kind} had {size} bytes.*has {path.stat().st_size} now.*move them"):
        read_epoch(reader)


def test_a_file_that_grew_while_it_was_read_is_an_error(tmp_path):
    path = tmp_path / "a.txt"
    write_file(path, [1, 2])
    (reader,) = readers_of(source_of(tmp_path, "txt"), 1)
    read_epoch(reader, 1)
    with path.open("a") as stream:
        stream.write("3\n")

    with pytest.raises(StorageError, match=r"had 4 bytes when it was found and has 6 now"):
        read_epoch(reader)
    assert positions_of([reader])[1].seen == b""


def test_a_file_that_was_cut_while_it_was_read_is_an_error(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"id": 1}\n' * 1_000_000)
    (reader,) = readers_of(source_of(tmp_path, "json"), 1)
    read_epoch(reader, 1)
    os.truncate(path, 5_000_000)

    with pytest.raises(StorageError, match=r"a\.json had 10000000 bytes.*has 5000000 now"):
        read_epoch(reader)


def test_a_file_that_vanished_before_it_was_read_is_an_error(tmp_path):
    write_file(tmp_path / "a.txt", [1, 2])
    (reader,) = readers_of(source_of(tmp_path, "txt"), 1)
    (tmp_path / "a.txt").unlink()

    with pytest.raises(StorageError, match=r"a\.txt is gone.*Put it back"):
        read_epoch(reader)


def test_a_file_that_was_read_may_go_and_one_that_changed_then_is_reported_once(tmp_path, caplog):
    write_file(tmp_path / "a.txt", [1])
    write_file(tmp_path / "b.txt", [2])
    (reader,) = readers_of(source_of(tmp_path, "txt", bounded=False).monitor_continuously(0), 1)
    read_epoch(reader)
    (tmp_path / "a.txt").unlink()
    write_file(tmp_path / "b.txt", [2, 3])
    with caplog.at_level(logging.WARNING):
        assert read_epoch(reader) + read_epoch(reader) == []

    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path}/b.txt had 2 bytes when it was read and has 4 now; what was added is not read. Files must not "
        "change: write them elsewhere and move them into the directory when they are complete."
    ]


def test_a_path_that_does_not_exist_is_an_error(tmp_path):
    with pytest.raises(StorageError, match=r"nowhere does not exist. Create it"):
        readers_of(source_of(tmp_path / "nowhere", "txt"), 1)


def test_no_path_is_an_error():
    with pytest.raises(ProgramError, match="no path"):
        FileSource.text([])


def test_pyflinks_builder(tmp_path):
    write_file(tmp_path / "a.txt", [1])
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path), str(tmp_path))
    assert builder.build().bounded
    assert read_epoch(readers_of(builder.build(), 1)[0]) == ["1"]

    assert not builder.monitor_continuously(timedelta(seconds=1)).build().bounded
    assert builder.process_static_file_set().build().bounded
    assert builder.build().output_type() == Types.STRING()


class Duration:
    def to_millis(self) -> int:
        return 7


@pytest.mark.parametrize("duration", [timedelta(milliseconds=7), 7, Duration()])
def test_lengths_of_time(tmp_path, duration):
    source = FileSource.text(str(tmp_path), bounded=True).monitor_continuously(duration)

    assert not source.bounded


@pytest.mark.parametrize("duration", ["1 s", -1, None, True])
def test_wrong_lengths_of_time(tmp_path, duration):
    with pytest.raises(ConfigurationError, match="length of time"):
        FileSource.text(str(tmp_path)).monitor_continuously(duration)


def test_rows_are_columns_too(tmp_path):
    write_file(tmp_path / "a.csv", [1])
    (batch,) = readers_of(source_of(tmp_path, "csv"), 1)[0].read(limit_of(5))

    assert batch.arrow.column("id").to_pylist() == [1]
    assert batch.values == [row(1, "n\u00e4me,1")]


def test_a_relative_path_is_one_of_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers have another working directory."""
    write_file(tmp_path / "here" / "in" / "1.json", [1, 2])
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    source = FileSource.json("in", SCHEMA, bounded=True)
    monkeypatch.chdir(tmp_path / "there")
    assert ids_of(read_all(readers_of(source, 2))) == [1, 2]
