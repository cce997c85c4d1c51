"""A directory is tried: what works is told, and what does not is named with the host and the step."""

from __future__ import annotations

import os
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import ConfigurationError, StorageError
from holdfast.storage.check import check_storage, leave_marker, remove_marker
from holdfast.storage.filesystem import Storage
from holdfast.storage.local import LocalStorage
from tests.kit.ports import free_port
from tests.kit.s3 import S3Server

HOST = socket.gethostname()


@contextmanager
def ordinary_user() -> Iterator[None]:
    """Permissions are none to the user root."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


@contextmanager
def refused(*told: str, within: float = 8.0) -> Iterator[None]:
    begun = time.monotonic()
    with pytest.raises(StorageError) as caught:
        yield
    assert time.monotonic() - begun < within
    for text in (f"from host {HOST}", *told):
        assert text in str(caught.value)


class TestLocal:
    def test_a_directory_that_works_is_left_as_it_was(self, tmp_path: Path) -> None:
        (tmp_path / "job").mkdir()
        report = check_storage(str(tmp_path))
        assert (report.uri, report.host, report.exclusive_create) == (str(tmp_path), HOST, True)
        assert os.listdir(tmp_path) == ["job"]

    def test_one_that_does_not_exist_is_created(self, tmp_path: Path) -> None:
        check_storage(f"file://{tmp_path}/new/checkpoints")
        assert os.listdir(tmp_path / "new" / "checkpoints") == []

    def test_a_read_only_directory(self, tmp_path: Path) -> None:
        os.chmod(tmp_path, stat.S_IRUSR | stat.S_IXUSR | stat.S_IROTH | stat.S_IXOTH)
        with ordinary_user(), refused(f"{tmp_path} cannot be used", "could not write a file", "give this user access"):
            check_storage(str(tmp_path))
        os.chmod(tmp_path, stat.S_IRWXU)
        assert os.listdir(tmp_path) == []

    def test_a_file_in_the_place_of_the_directory(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with refused("could not write a file", "choose another directory"):
            check_storage(str(tmp_path / "file"))

    def test_a_directory_that_only_one_host_has(self, tmp_path: Path) -> None:
        """Two folders stand for the same path on two hosts, of which one has not mounted it."""
        mine, others = tmp_path / "mine", tmp_path / "others"
        marker = leave_marker(str(mine))
        check_storage(str(mine), marker=marker)
        with refused("could not see what the driver wrote", marker, "use a file system that all hosts share"):
            check_storage(str(others), marker=marker)
        remove_marker(str(mine), marker)
        assert os.listdir(mine) == os.listdir(others) == []

    def test_a_disk_that_hangs(self, tmp_path: Path) -> None:
        """A pipe that nobody reads hangs whoever opens it to write, as a mount does whose server is gone."""
        os.mkfifo(tmp_path / "pipe")

        class Hanging(LocalStorage):
            def write_atomic(self, path: str, data: bytes) -> None:
                (tmp_path / "pipe").write_bytes(data)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Storage, "for_uri", lambda uri: Hanging(uri))
            with refused("could not write a file", "no answer within 0.5 s", within=3):
                check_storage(str(tmp_path), seconds=0.5)
        os.close(os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK))

    def test_a_scheme_that_nobody_knows(self) -> None:
        with pytest.raises(ConfigurationError, match="ftp:"):
            check_storage("ftp://host/path")


@pytest.mark.slow
class TestS3:
    def test_a_bucket_that_works(self, s3: str) -> None:
        report = check_storage(f"{s3}/checkpoints")
        assert report.exclusive_create
        assert [entry for entry in Storage.for_uri(s3).list(recursive=True) if not entry.is_dir] == []

    def test_a_bucket_that_does_not_exist(self, s3: str) -> None:
        with refused("s3://absent/checkpoints cannot be used", "the bucket does not exist: create it"):
            check_storage("s3://absent/checkpoints")

    def test_a_server_that_is_not_there(self, s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
        with refused("could not write a file", "the server cannot be reached: check AWS_ENDPOINT_URL"):
            check_storage(f"{s3}/checkpoints")

    def test_a_server_that_does_not_answer(self, s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
            with refused("could not write a file", "no answer within 1 s", within=4):
                check_storage(f"{s3}/checkpoints", seconds=1)

    def test_credentials_that_are_not_known(self, tmp_path: Path) -> None:
        with S3Server(tmp_path, guarded=True) as server:
            with server.in_environment():
                server.create_bucket("guarded")
                check_storage("s3://guarded/checkpoints")
            wrong = {"AWS_ACCESS_KEY_ID": "AKIAWRONG", "AWS_SECRET_ACCESS_KEY": "wrong"}
            with server.in_environment(**wrong), refused("could not write a file", "check AWS_ACCESS_KEY_ID"):
                check_storage("s3://guarded/checkpoints")
            bad_secret = {"AWS_SECRET_ACCESS_KEY": "wrong"}
            with server.in_environment(**bad_secret), refused("could not write a file", "check AWS_ACCESS_KEY_ID"):
                check_storage("s3://guarded/checkpoints")


@pytest.mark.slow
class TestHdfs:
    def test_a_folder_that_works(self, hdfs: str) -> None:
        assert check_storage(hdfs).exclusive_create
        assert Storage.for_uri(hdfs).list() == []

    def test_a_folder_of_somebody_else(self, hdfs: str, monkeypatch: pytest.MonkeyPatch) -> None:
        Storage.for_uri(hdfs).write_atomic("mine", b"")
        monkeypatch.setenv("HADOOP_USER_NAME", "somebody-else")
        with refused("could not write a file", "user=somebody-else", "give this user access"):
            check_storage(hdfs)

    def test_a_name_node_that_is_not_there(self) -> None:
        with refused("could not connect", "WebHDFS does not answer at localhost:", "dfs.namenode.http-address"):
            check_storage(f"webhdfs://localhost:{free_port()}/x")

    def test_a_name_node_that_hangs(self, hdfs: str, hdfs_cluster: Any) -> None:
        check_storage(hdfs)
        hdfs_cluster.pause()
        try:
            with refused("could not write a file", "no answer within 1 s", within=4):
                check_storage(hdfs, seconds=1)
        finally:
            hdfs_cluster.resume()
        check_storage(hdfs)
