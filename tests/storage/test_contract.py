"""One contract, run on a local disk, on both ways of ``pyarrow.fs``, and on servers of S3, GCS and HDFS."""

from __future__ import annotations

import io
import os
import pickle
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from holdfast.errors import StorageError
from holdfast.storage.checksum import check_file, checksum
from holdfast.storage.filesystem import Storage, is_missing, temporary_path
from holdfast.storage.remote import ArrowStorage

pytestmark = pytest.mark.slow


SERVERS = ["s3", "gs", "hdfs"]


@pytest.fixture(params=["local", "arrow-rename", "arrow-put", *SERVERS])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param in SERVERS:
        folder = request.getfixturevalue(request.param)
        return Storage.for_uri(f"{folder}/root")
    root = tmp_path / "root"
    if request.param == "local":
        return Storage.for_uri(str(root))
    return ArrowStorage(str(root), fs.LocalFileSystem(), str(root), atomic_rename=request.param == "arrow-rename")


class TestContract:
    def test_what_was_written_is_read(self, storage: Storage) -> None:
        storage.write_atomic("a/b/file", b"0123456789")
        assert storage.read("a/b/file") == b"0123456789"
        assert storage.read("a/b/file", 3, 4) == b"3456"
        assert storage.read("a/b/file", 8, 10) == b"89"
        assert storage.read("a/b/file", 20, 10) == b""
        assert storage.read("a/b/file", 7) == b"789"

    def test_a_second_write_replaces_the_first(self, storage: Storage) -> None:
        storage.write_atomic("file", b"long content")
        storage.write_atomic("file", b"new")
        assert storage.read("file") == b"new"

    def test_exclusive_creation_keeps_the_first_content(self, storage: Storage) -> None:
        assert storage.create_exclusive("d/name", b"first")
        assert not storage.create_exclusive("d/name", b"second")
        assert storage.read("d/name") == b"first"

    def test_listing_shows_files_and_folders_with_sizes(self, storage: Storage) -> None:
        storage.write_atomic("d/one", b"1")
        storage.write_atomic("d/sub/two", b"22")
        assert [(entry.path, entry.size, entry.is_dir) for entry in storage.list("d")] == [
            ("d/one", 1, False),
            ("d/sub", 0, True),
        ]
        assert [entry.path for entry in storage.list("d", recursive=True)] == ["d/one", "d/sub", "d/sub/two"]
        assert [entry.path for entry in storage.list()] == ["d"]
        assert storage.list("d")[0].modified_ms > 1_500_000_000_000

    def test_a_missing_folder_is_empty(self, storage: Storage) -> None:
        assert storage.list("nowhere") == []

    def test_unfinished_writes_are_left_out_of_listings(self, storage: Storage) -> None:
        storage.write_atomic("d/done", b"1")
        leftover = temporary_path("d/unfinished")
        storage.write_atomic(leftover, b"half")
        assert [entry.path for entry in storage.list("d")] == ["d/done"]
        assert leftover in [entry.path for entry in storage.list("d", temporaries=True)]

    def test_a_stream_that_fails_publishes_nothing(self, storage: Storage) -> None:
        storage.write_atomic("d/file", b"before")
        with pytest.raises(RuntimeError), storage.open_output("d/file") as stream:
            stream.write(b"half")
            raise RuntimeError("in the middle")
        assert storage.read("d/file") == b"before"
        assert [entry.path for entry in storage.list("d", temporaries=True)] == ["d/file"]

    def test_streams_give_back_what_they_took(self, storage: Storage) -> None:
        with storage.open_output("d/file") as stream:
            stream.write(b"abc")
            assert not storage.exists("d/file")
            stream.write(b"def")
        with storage.open_input("d/file") as stream:
            assert stream.read(2) + stream.read() == b"abcdef"

    def test_move_replaces_the_target(self, storage: Storage) -> None:
        storage.write_atomic("a/source", b"new")
        storage.write_atomic("b/target", b"old")
        storage.move("a/source", "b/target")
        assert storage.read("b/target") == b"new"
        assert not storage.exists("a/source")

    def test_moving_a_missing_file_names_it(self, storage: Storage) -> None:
        with pytest.raises(StorageError, match="nothing-here"):
            storage.move("nothing-here", "target")

    def test_deleting_twice_is_no_error(self, storage: Storage) -> None:
        storage.write_atomic("d/sub/file", b"1")
        for _ in range(2):
            storage.delete("d/sub/file")
            assert not storage.exists("d/sub/file")
        storage.write_atomic("d/sub/file", b"1")
        for _ in range(2):
            storage.delete_dir("d")
            assert storage.list() == []

    def test_a_missing_file_is_recognised(self, storage: Storage) -> None:
        with pytest.raises(StorageError, match=r"cannot read .*root/absent.*check the path") as caught:
            storage.read("absent")
        assert is_missing(caught.value)

    def test_a_file_where_a_folder_is_expected(self, storage: Storage) -> None:
        storage.write_atomic("file", b"1")
        if storage.uri.startswith(("s3:", "gs:")):
            storage.write_atomic("file/below", b"2")  # an object store has names, and no folders
            assert storage.read("file") + storage.read("file/below") == b"12"
            return
        with pytest.raises(StorageError, match="file/below") as caught:
            storage.write_atomic("file/below", b"2")
        assert not is_missing(caught.value)
        assert not storage.exists("file/below")

    @pytest.mark.parametrize("storage", ["local", "arrow-rename", "arrow-put", "s3", "hdfs"], indirect=True)
    def test_large_files_are_read_from_any_place(self, storage: Storage) -> None:
        """The emulator of GCS takes no uploads in parts."""
        content = os.urandom(5 << 20)
        with storage.open_output("large") as stream:
            for start in range(0, len(content), 700_000):
                stream.write(content[start : start + 700_000])
        check_file(storage, "large", len(content), checksum(content))
        assert storage.read("large", (3 << 20) - 7, 20) == content[(3 << 20) - 7 : (3 << 20) + 13]
        with storage.open_input("large") as stream:
            stream.seek(-5, io.SEEK_END)
            assert stream.read() == content[-5:]
            stream.seek(4 << 20)
            assert stream.tell() == 4 << 20
            assert stream.read(100_000) == content[4 << 20 : (4 << 20) + 100_000]

    def test_tables_are_written_to_streams_and_read_from_them(self, storage: Storage) -> None:
        table = pa.table({"n": list(range(100_000))})
        with storage.open_output("t.parquet") as stream:
            pq.write_table(table, stream, row_group_size=10_000)
        with storage.open_input("t.parquet") as stream:
            assert pq.ParquetFile(stream).read_row_group(7).equals(table.slice(70_000, 10_000))

    def test_an_empty_file_is_a_file(self, storage: Storage) -> None:
        storage.write_atomic("empty", b"")
        assert storage.exists("empty")
        assert storage.read("empty") == b""
        assert [(entry.path, entry.size) for entry in storage.list()] == [("empty", 0)]

    @pytest.mark.parametrize("name", ["with space", "100%", "ä", "a+b", "a=b&c", "#1?"])
    def test_names_are_taken_as_they_are(self, storage: Storage, name: str) -> None:
        storage.write_atomic(f"d/{name}", b"1")
        assert [entry.path for entry in storage.list("d")] == [f"d/{name}"]
        assert storage.read(f"d/{name}") == b"1"
        storage.move(f"d/{name}", f"e/{name}")
        storage.delete(f"e/{name}")
        assert not storage.exists(f"e/{name}")

    def test_an_emptied_folder_can_be_deleted(self, storage: Storage) -> None:
        storage.write_atomic("chk-1/file", b"1")
        storage.delete("chk-1/file")
        assert storage.list("chk-1", temporaries=True) == []
        storage.delete_dir("chk-1")
        assert storage.list() == []

    @pytest.mark.parametrize("storage", ["local", *SERVERS], indirect=True)
    def test_of_many_that_create_one_wins(self, storage: Storage) -> None:
        assert storage.exclusive_create
        barrier = threading.Barrier(6)
        results: list[bool] = []

        def create(number: int) -> None:
            barrier.wait()
            results.append(storage.create_exclusive("d/name", str(number).encode() * 1000))

        threads = [threading.Thread(target=create, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(results) == [False] * 5 + [True]
        assert len(set(storage.read("d/name"))) == 1
        assert [entry.path for entry in storage.list("d", temporaries=True)] == ["d/name"]

    @pytest.mark.parametrize("storage", ["local", "s3", "hdfs"], indirect=True)
    def test_readers_see_the_old_content_or_the_new_one(self, storage: Storage) -> None:
        """Each content has a length of its own, so that a part of one cannot be taken for another. The emulator of GCS
        does not give the version that it is asked for.
        """
        storage.write_atomic("file", b"9" * 10_000)
        seen: list[bytes | BaseException] = []
        done = threading.Event()

        def look() -> None:
            while not done.is_set():
                try:
                    seen.append(storage.read("file"))
                except BaseException as error:
                    seen.append(error)

        reader = threading.Thread(target=look)
        reader.start()
        for number in range(20):
            storage.write_atomic("file", str(number % 10).encode() * (number % 10 * 1_000 + 1_000))
        done.set()
        reader.join()
        assert seen
        whole = {str(number).encode() * (number * 1_000 + 1_000) for number in range(10)}
        assert [one for one in seen if one not in whole] == []

    def test_a_child_and_a_copy_in_another_process_reach_the_same_files(self, storage: Storage) -> None:
        storage.child("job").write_atomic("x", b"1")
        assert storage.read("job/x") == b"1"
        copied = pickle.loads(pickle.dumps(storage))
        assert copied.read("job/x") == b"1"
