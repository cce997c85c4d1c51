"""One contract, run on the local storage and on both ways of the pyarrow one."""

from __future__ import annotations

import os
import pickle
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from pyarrow import fs

from holdfast.errors import ConfigurationError, StorageError
from holdfast.storage.filesystem import Storage, final_name, is_missing, temporary_path
from holdfast.storage.local import LocalStorage
from holdfast.storage.remote import ArrowStorage


@pytest.fixture(params=["local", "arrow-rename", "arrow-put"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
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
        assert all(entry.modified_ms > 1_500_000_000_000 for entry in storage.list("d"))

    def test_a_missing_folder_is_empty(self, storage: Storage) -> None:
        assert storage.list("nowhere") == []

    def test_unfinished_writes_are_left_out_of_listings(self, storage: Storage) -> None:
        storage.write_atomic("d/done", b"1")
        leftover = temporary_path("d/unfinished")
        (Path(storage.uri) / leftover).write_bytes(b"half")
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
        with pytest.raises(StorageError, match="file/below"):
            storage.write_atomic("file/below", b"2")


class TestUris:
    def test_local_spellings(self, tmp_path: Path) -> None:
        LocalStorage(str(tmp_path / "with space")).write_atomic("x", b"1")
        for uri in (f"{tmp_path}/with space", f"file://{tmp_path}/with%20space", f"file:{tmp_path}/with%20space/"):
            assert Storage.for_uri(uri).read("x") == b"1"

    def test_a_child_is_a_storage_of_its_own(self, tmp_path: Path) -> None:
        Storage.for_uri(str(tmp_path)).child("job").write_atomic("x", b"1")
        assert (tmp_path / "job" / "x").read_bytes() == b"1"

    def test_a_pickled_storage_reaches_the_same_files(self, tmp_path: Path) -> None:
        storage = Storage.for_uri(f"file://{tmp_path}")
        storage.write_atomic("x", b"1")
        assert pickle.loads(pickle.dumps(storage)).read("x") == b"1"

    @pytest.mark.parametrize("uri", ["", "nosuchscheme://host/path"])
    def test_what_is_no_uri_is_refused(self, uri: str) -> None:
        with pytest.raises(ConfigurationError, match=r"empty path|nosuchscheme.*s3:"):
            Storage.for_uri(uri)

    def test_capabilities(self, tmp_path: Path) -> None:
        local = LocalStorage(str(tmp_path))
        assert (local.atomic_rename, local.exclusive_create) == (True, True)
        remote = ArrowStorage("s3://bucket", fs.LocalFileSystem(), str(tmp_path), atomic_rename=False)
        assert (remote.atomic_rename, remote.exclusive_create) == (False, False)


class TestTemporaryNames:
    def test_they_tell_the_final_name(self) -> None:
        path = temporary_path("folder/3-name")
        assert path.startswith("folder/.")
        assert final_name(path.rpartition("/")[2]) == "3-name"
        assert temporary_path("folder/3-name") != path

    @pytest.mark.parametrize("name", ["_metadata", "3-name", ".holdfast-tmp.", ".holdfast-tmp.xyz.name"])
    def test_other_names_are_not_temporary(self, name: str) -> None:
        assert final_name(name) is None


class TestLocalDurability:
    def test_of_many_threads_one_creates(self, tmp_path: Path) -> None:
        storage = LocalStorage(str(tmp_path))
        barrier = threading.Barrier(8)
        results: list[bool] = []

        def create(number: int) -> None:
            barrier.wait()
            results.append(storage.create_exclusive("d/name", str(number).encode() * 1000))

        threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(results) == [False] * 7 + [True]
        assert len(set(storage.read("d/name"))) == 1
        assert len(os.listdir(tmp_path / "d")) == 1

    def test_creation_works_without_hard_links(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def no_links(source: str, target: str) -> None:
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(os, "link", no_links)
        storage = LocalStorage(str(tmp_path))
        assert storage.create_exclusive("name", b"first")
        assert not storage.create_exclusive("name", b"second")
        assert storage.read("name") == b"first"

    def test_a_write_that_does_not_fit_leaves_nothing(self, tmp_path: Path) -> None:
        """The limit of the file size stands for a full disk: write(2) fails in the middle of the file."""
        storage = LocalStorage(str(tmp_path))
        storage.write_atomic("file", b"before")
        script = (
            "import resource, signal, sys\n"
            "from holdfast.errors import StorageError\n"
            "from holdfast.storage.local import LocalStorage\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
            "for write in ('write_atomic', 'create_exclusive'):\n"
            "    try:\n"
            "        name = 'file' if write == 'write_atomic' else 'new'\n"
            "        getattr(LocalStorage(sys.argv[1]), write)(name, b'x' * 10000)\n"
            "    except StorageError as error:\n"
            "        print(error)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", script, str(tmp_path)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.count("raise the limit or choose another directory") == 2, done.stdout
        assert os.listdir(tmp_path) == ["file"]
        assert storage.read("file") == b"before"
        assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 4096


def test_a_folder_that_several_delete_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each finds that the others were faster with some of it, and goes on with the rest."""
    storage = LocalStorage(str(tmp_path / "root"))
    for number in range(4):
        storage.write_atomic(f"d/{number}/file", b"")
    unlink = os.unlink

    def taken(path: str) -> None:
        unlink(path)
        if path.endswith(("0/file", "2/file")):
            raise FileNotFoundError(path)

    monkeypatch.setattr(os, "unlink", taken)
    storage.delete_dir("d")
    assert not (tmp_path / "root" / "d").exists()
