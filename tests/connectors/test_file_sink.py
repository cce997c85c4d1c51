from __future__ import annotations

import csv
import datetime
import json
import pickle
import re
import signal
import time
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from holdfast.connectors.encoder import Encoder
from holdfast.connectors.file_sink.naming import FileHandle
from holdfast.connectors.file_sink.options import BucketAssigner, OutputFileConfig
from holdfast.connectors.file_sink.rolling import DefaultRollingPolicy, RollingPolicy
from holdfast.connectors.file_sink.sink import FileSink
from holdfast.errors import ConfigurationError, StorageError, TransactionError
from holdfast.runtime.batch import Batch
from holdfast.storage.checksum import checksum
from holdfast.storage.remote import ArrowStorage
from holdfast.testing.contracts.sinks import ExternalSinkContract, commit_in_process, pre_commit, transaction_name
from tests.connectors.directories import committed_files, staged_files


class FileSinkContract(ExternalSinkContract):
    def visible(self, tmp_path):
        return [number for path in committed_files(tmp_path / "out") for number in self.numbers(path)]

    def numbers(self, path: Path) -> list[int]:
        raise NotImplementedError


class TestRowFormat(FileSinkContract):
    @pytest.fixture
    def sink(self, tmp_path):
        return FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder()).build()

    def numbers(self, path):
        return [int(line) for line in path.read_text().splitlines()]


class TestJson(FileSinkContract):
    @pytest.fixture
    def sink(self, tmp_path):
        sink = FileSink.json(str(tmp_path / "out"))
        sink.bind_type(int)
        return sink

    def numbers(self, path):
        return [json.loads(line)["value"] for line in path.read_text().splitlines()]


class TestCsv(FileSinkContract):
    @pytest.fixture
    def sink(self, tmp_path):
        sink = FileSink.csv(str(tmp_path / "out"))
        sink.bind_type(int)
        return sink

    def numbers(self, path):
        with path.open() as stream:
            return [int(record["value"]) for record in csv.DictReader(stream)]


class TestParquet(FileSinkContract):
    @pytest.fixture
    def sink(self, tmp_path):
        sink = FileSink.parquet(str(tmp_path / "out"))
        sink.bind_type(int)
        return sink

    def numbers(self, path):
        return pq.read_table(path).column("value").to_pylist()


class TestParquetInAnObjectStore(TestParquet):
    """Through ``pyarrow.fs`` and without the promise of atomic renames."""

    @pytest.fixture
    def sink(self, tmp_path):
        root = tmp_path / "out"
        sink = FileSink.parquet(str(root))
        sink.bind_type(int)
        sink._storage = ArrowStorage(str(root), fs.LocalFileSystem(), str(root), atomic_rename=False)
        return sink


@pytest.fixture
def sink(tmp_path):
    return FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder()).build()


def test_where_files_are_before_and_after_the_commit(tmp_path, sink):
    handle = pre_commit(sink, [1], epoch=7, subtask=2, attempt=3, nonce="beef")
    (staged,) = staged_files(tmp_path)
    assert str(staged.relative_to(tmp_path)) == "_holdfast_staging/job-1/sink%2Fof%20numbers/3-7-2-beef.txt"

    sink.commit([handle])

    assert staged_files(tmp_path) == []
    (final,) = committed_files(tmp_path)
    assert final.parent == tmp_path
    assert re.fullmatch(r"part-[0-9a-f]{8}-3-7-2-beef\.txt", final.name)


def test_the_handle_knows_size_and_checksum(tmp_path, sink):
    handle = FileHandle.decode(pre_commit(sink, ["abc"]))

    assert handle.files[0].size == 4
    assert handle.files[0].checksum == checksum(b"abc\n")


def test_a_commit_that_is_killed_between_move_and_return_is_completed(tmp_path, sink):
    handles = [pre_commit(sink, [1], subtask=0), pre_commit(sink, [2], subtask=1)]
    faults = tmp_path / "_faults.json"
    triggers = [{"id": "crash", "point": "file-sink-moved", "action": "kill"}]
    faults.write_text(json.dumps({"directory": str(tmp_path), "triggers": triggers}))
    code = commit_in_process(sink, handles, tmp_path, HOLDFAST_FAILPOINTS=str(faults))
    assert code == -signal.SIGKILL
    assert len(list(tmp_path.glob("part-*"))) == 1
    assert len(staged_files(tmp_path)) == 1

    sink.recover_and_commit(handles)

    assert sorted(path.read_text() for path in tmp_path.glob("part-*")) == ["1\n", "2\n"]
    assert staged_files(tmp_path) == []


def test_a_commit_that_had_copied_but_not_deleted_is_completed(tmp_path, sink):
    handle = pre_commit(sink, [1])
    file = FileHandle.decode(handle).files[0]
    (tmp_path / file.final).write_bytes((tmp_path / file.staging).read_bytes())

    sink.commit([handle])

    assert [path.read_text() for path in committed_files(tmp_path)] == ["1\n"]
    assert staged_files(tmp_path) == []


def test_a_final_name_with_other_content_is_not_taken_as_committed(tmp_path, sink):
    handle = pre_commit(sink, [1])
    (tmp_path / FileHandle.decode(handle).files[0].final).write_text("something else")

    with pytest.raises(TransactionError, match=r"has 14 bytes, 2 were pre-committed.*move it away"):
        sink.commit([handle])


def test_a_staged_file_that_was_cut_is_not_published(tmp_path, sink):
    handle = pre_commit(sink, [1, 2])
    staged_files(tmp_path)[0].write_text("1\n")

    with pytest.raises(TransactionError, match=r"cannot be committed: .*has 2 bytes, 4 were written"):
        sink.commit([handle])
    assert committed_files(tmp_path) == []


def test_a_staged_file_that_was_damaged_is_not_published_by_a_recovery(tmp_path, sink):
    handle = pre_commit(sink, [1, 2])
    staged_files(tmp_path)[0].write_text("1\n9\n")

    with pytest.raises(TransactionError, match=r"cannot be committed: .*checksum"):
        sink.recover_and_commit([handle])
    assert committed_files(tmp_path) == []


def test_a_lost_file_is_named(tmp_path, sink):
    handle = pre_commit(sink, [1])
    sink.commit([handle])
    (committed,) = committed_files(tmp_path)
    committed.unlink()

    with pytest.raises(TransactionError, match=rf"{committed} is lost.*put it back"):
        sink.recover_and_commit([handle])


def test_a_handle_is_committed_where_it_was_written_when_the_program_writes_elsewhere_now(tmp_path):
    old = FileSink.json(str(tmp_path / "old"))
    handle = pre_commit(old, [{"a": 1}])

    FileSink.json(str(tmp_path / "new")).recover_and_commit([handle])

    assert len(committed_files(tmp_path / "old")) == 1


def test_a_handle_of_another_version_is_refused(sink):
    stored = FileHandle("/x", transaction_name(), [], version=2).encode()

    with pytest.raises(TransactionError, match="version 2"):
        sink.commit([stored])


def test_foreign_files_in_staging_are_neither_listed_nor_deleted(tmp_path, sink):
    pre_commit(sink, [1])
    foreign = staged_files(tmp_path)[0].parent / "notes.txt"
    foreign.write_text("mine")

    assert list(sink.open_transactions("job-1")) == [transaction_name()]
    sink.abort(transaction_name())
    assert staged_files(tmp_path) == [foreign]


def test_a_nonce_that_is_no_file_name_is_refused(sink):
    with pytest.raises(TransactionError, match="nonce"):
        pre_commit(sink, [1], nonce="a.b")


def test_prefix_and_suffix(tmp_path):
    config = OutputFileConfig.builder().with_part_prefix("pre").with_part_suffix(".log").build()
    builder = FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder())
    sink = builder.with_output_file_config(config).with_bucket_check_interval(1000).build()
    sink.commit([pre_commit(sink, ["x"])])

    (path,) = committed_files(tmp_path)
    assert path.name.startswith("pre-")
    assert path.name.endswith("-n0.log")


@pytest.mark.parametrize(("prefix", "suffix"), [("_x", ""), (".x", ""), ("", ""), ("a/b", ""), ("a", "/b")])
def test_names_that_readers_would_not_find(prefix, suffix):
    with pytest.raises(ConfigurationError, match="must not"):
        OutputFileConfig(prefix, suffix)


@pytest.mark.parametrize("kind", ["row", "parquet"])
def test_a_part_size_makes_several_files_of_one_transaction(tmp_path, kind):
    if kind == "row":
        sink = FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder()).build()
    else:
        sink = FileSink.parquet(str(tmp_path))
        sink.bind_type(str)
    sink = sink.with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=4))
    transaction = sink.begin(transaction_name())
    for value in ("aaaa", "bb", "cccc"):
        sink.write(transaction, Batch([value]))
    handle = sink.pre_commit(transaction)
    assert len(staged_files(tmp_path)) == (2 if kind == "row" else 3)
    assert list(sink.open_transactions("job-1")) == [transaction_name()]

    sink.commit([handle])
    sink.commit([handle])

    assert len(committed_files(tmp_path)) == (2 if kind == "row" else 3)
    assert committed_files(tmp_path)[0].name.endswith(f"-n0-1.{'txt' if kind == 'row' else 'parquet'}")


def test_discarding_and_aborting_take_all_files_of_a_transaction(tmp_path, sink):
    sink = sink.with_rolling_policy(DefaultRollingPolicy(1))
    for end in ("discard", "abort"):
        transaction = sink.begin(transaction_name())
        for value in range(3):
            sink.write(transaction, Batch([value]))
        assert len(staged_files(tmp_path)) == 3
        if end == "discard":
            sink.discard(transaction)
        else:
            sink.abort(transaction_name())
        assert staged_files(tmp_path) == []


def test_a_part_size_must_be_positive():
    with pytest.raises(ConfigurationError, match="part size is 0"):
        RollingPolicy.default_rolling_policy(part_size=0)
    assert RollingPolicy.on_checkpoint_rolling_policy().part_size is None


def test_buckets_by_time(tmp_path, sink):
    assigner = BucketAssigner.date_time_bucket_assigner("yyyy-MM-dd--HH", "Asia/Tokyo")
    sink = sink.with_bucket_assigner(assigner)
    before = datetime.datetime.now(ZoneInfo("Asia/Tokyo"))
    sink.commit([pre_commit(sink, [1])])
    after = datetime.datetime.now(ZoneInfo("Asia/Tokyo"))

    (path,) = committed_files(tmp_path)
    assert path.parent.name in {f"{moment:%Y-%m-%d--%H}" for moment in (before, after)}
    assert assigner.bucket(0) == "1970-01-01--09"
    assert BucketAssigner.base_path_bucket_assigner().bucket(time.time()) == ""


@pytest.mark.parametrize(
    ("pattern", "zone"), [("yyyy-QQ", None), ("", None), ("_yyyy", None), ("yyyy", "Mars/Olympus")]
)
def test_wrong_buckets(pattern, zone):
    with pytest.raises(ConfigurationError, match=r"bucket format|time zone"):
        BucketAssigner.date_time_bucket_assigner(pattern, zone)


def test_a_path_that_cannot_be_a_directory_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    sink = FileSink.json(str(tmp_path / "file" / "out"))

    with pytest.raises(StorageError, match=r"file/out.*choose another directory"):
        pre_commit(sink, [1])


def test_options_survive_travel_and_binding(tmp_path):
    sink = FileSink.parquet(str(tmp_path))
    sink.bind_type(int)
    travelled = pickle.loads(pickle.dumps(sink.with_output_file_config(OutputFileConfig("p"))))
    travelled.commit([pre_commit(travelled, [1])])

    assert committed_files(tmp_path)[0].name.startswith("p-")
