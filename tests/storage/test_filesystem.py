"""Storages by their URI, names of unfinished files, and what a local disk keeps."""

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

from holdfast.errors import ConfigurationError
from holdfast.storage.filesystem import Storage, final_name, temporary_path
from holdfast.storage.local import LocalStorage
from holdfast.storage.remote import ArrowStorage


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

    @pytest.mark.parametrize("scheme", ["abfss", "abfs", "wasbs"])
    def test_azure_is_refused_by_name(self, scheme: str) -> None:
        with pytest.raises(ConfigurationError, match=rf"Azure's storage \({scheme}:\) is not supported.*mounted"):
            Storage.for_uri(f"{scheme}://container@account.dfs.core.windows.net/checkpoints")

    def test_a_bucket_is_needed(self) -> None:
        with pytest.raises(ConfigurationError, match="names no bucket; expected s3a://<bucket>/<path>"):
            Storage.for_uri("s3a:///checkpoints")

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
