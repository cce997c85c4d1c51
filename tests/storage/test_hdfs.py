"""How HDFS is reached from a host, and what becomes of requests when servers are gone."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest

from holdfast.checkpoint.job_lock import JobLock
from holdfast.errors import JobLockedError, StorageError
from holdfast.storage.filesystem import Storage
from holdfast.storage.hdfs import HdfsAccessKind, access, user_name
from holdfast.storage.webhdfs import WebHdfsStorage
from holdfast.storage.webhdfs_client import WebHdfsClient
from holdfast.types.settings import LeaseSettings
from tests.kit.ports import free_port

pytestmark = pytest.mark.slow


class TestAccess:
    def test_by_the_http_port(self, hdfs_cluster: Any) -> None:
        found = access(hdfs_cluster.uri("x"))
        assert found.kind is HdfsAccessKind.WEBHDFS
        assert found.reason == (
            f"WebHDFS answers at {hdfs_cluster.http_address} (as the URI says), as user {user_name()}"
        )

    def test_by_the_port_for_programs(self, hdfs_cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HADOOP_CONF_DIR", str(hdfs_cluster.configuration_dir))
        found = access(hdfs_cluster.rpc_uri("x"))
        assert found.kind is HdfsAccessKind.WEBHDFS
        assert f"dfs.namenode.http-address in {hdfs_cluster.configuration_dir}" in found.reason
        storage = Storage.for_uri(hdfs_cluster.rpc_uri("by-rpc"))
        storage.write_atomic("file", b"1")
        assert Storage.for_uri(hdfs_cluster.uri("by-rpc")).read("file") == b"1"

    def test_nothing_that_works_is_told_both_ways(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
        monkeypatch.delenv("HADOOP_HOME", raising=False)
        with pytest.raises(StorageError) as caught:
            access("hdfs://localhost:8020/x")
        for told in ("localhost:9870", "HADOOP_CONF_DIR is not set", "libhdfs cannot be used here", "webhdfs://<name"):
            assert told in str(caught.value)

    def test_a_port_that_speaks_something_else(self, hdfs_cluster: Any) -> None:
        with pytest.raises(StorageError, match="which is no answer of WebHDFS"):
            access(f"webhdfs://localhost:{hdfs_cluster.rpc_port}/x")


class TestServersThatAreGone:
    def test_a_name_node_that_is_gone_is_passed_over(self, hdfs_cluster: Any) -> None:
        client = WebHdfsClient((f"localhost:{free_port()}", hdfs_cluster.http_address), user_name())
        storage = WebHdfsStorage("hdfs://service/passed-over", client, "/passed-over")
        storage.write_atomic("file", b"1")
        assert storage.read("file") == b"1"

    def test_a_rename_whose_answer_is_lost_is_found_out(self, hdfs_cluster: Any) -> None:
        with Forgetful(hdfs_cluster.http_address) as proxy:
            client = WebHdfsClient((proxy.address,), user_name())
            storage = WebHdfsStorage("hdfs://service/lost", client, "/lost")
            assert storage.create_exclusive("file", b"1")
            assert proxy.forgotten == 1
            assert storage.read("file") == b"1"
            assert not storage.create_exclusive("file", b"2")

    def test_a_rename_that_never_arrived_is_an_error(self, hdfs_cluster: Any) -> None:
        with Forgetful(hdfs_cluster.http_address, forwards=False) as proxy:
            client = WebHdfsClient((proxy.address,), user_name())
            storage = WebHdfsStorage("hdfs://service/never", client, "/never")
            with pytest.raises(StorageError, match="cannot create hdfs://service/never/file"):
                storage.create_exclusive("file", b"1")
            assert storage.list(temporaries=True) == []


class TestLock:
    def test_of_drivers_that_begin_at_once_one_goes_on(self, hdfs: str) -> None:
        locks = [JobLock(Storage.for_uri(hdfs), "job", LeaseSettings()) for _ in range(4)]
        barrier, refused = threading.Barrier(4), []

        def begin(lock: JobLock) -> None:
            barrier.wait()
            try:
                lock.acquire(None)
            except JobLockedError as error:
                refused.append(error)

        threads = [threading.Thread(target=begin, args=(lock,)) for lock in locks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(refused) == 3
        assert all("another driver runs job job" in str(error) for error in refused)
        for lock in locks:
            lock.release()
        assert not Storage.for_uri(hdfs).exists("lock")


class Forgetful:
    """Stands between a client and a name node: of the first rename it loses the answer, or the request."""

    def __init__(self, address: str, forwards: bool = True) -> None:
        host, _, port = address.partition(":")
        self._target = (host, int(port))
        self._forwards = forwards
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        self.forgotten = 0

    def __enter__(self) -> Forgetful:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            with client:
                request = client.recv(65536)
                loses = b"op=RENAME" in request and self.forgotten == 0
                if loses:
                    self.forgotten += 1
                    if not self._forwards:
                        continue
                answer = self._ask(request)
                if not loses:
                    client.sendall(answer)

    def _ask(self, request: bytes) -> bytes:
        with socket.create_connection(self._target) as server:
            # So that the end of the answer is that of the connection.
            server.sendall(request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
            answer = b""
            while part := server.recv(65536):
                answer += part
            return answer
