"""What servers of HDFS answer, or do not answer whole, are errors that every caller knows."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from http.client import HTTPConnection

import pytest

from holdfast.errors import StorageError
from holdfast.storage.webhdfs import WebHdfsStorage
from holdfast.storage.webhdfs_client import Upload, WebHdfsClient

BROKEN_OFF = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"
NO_JSON = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>"
NO_OBJECT = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"
NOTHING = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
Answering = Callable[[bytes], WebHdfsClient]


@pytest.fixture
def answering() -> Iterator[Answering]:
    """The client of a server that has one answer for every request."""
    server = socket.create_server(("127.0.0.1", 0))

    def begin(answer: bytes) -> WebHdfsClient:
        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client:
                    client.recv(65536)
                    client.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        return WebHdfsClient((f"127.0.0.1:{server.getsockname()[1]}",), "user")

    yield begin
    server.close()


@pytest.mark.parametrize("answer", [BROKEN_OFF, NO_JSON, NO_OBJECT, NOTHING])
@pytest.mark.parametrize("act", [lambda storage: storage.list("attempts"), lambda storage: storage.exists("file")])
def test_an_answer_that_is_not_whole_is_an_error_of_the_storage(
    answering: Answering, answer: bytes, act: Callable[[WebHdfsStorage], object]
) -> None:
    storage = WebHdfsStorage("hdfs://service/x", answering(answer), "/x")
    with pytest.raises(StorageError, match=r"cannot (list|look for) hdfs://service/x"):
        act(storage)


@pytest.mark.parametrize("answer", [BROKEN_OFF, NO_JSON])
def test_whether_a_request_was_carried_out_is_then_not_known(answering: Answering, answer: bytes) -> None:
    """A rename is looked after behind an error of the connection."""
    with pytest.raises(ConnectionError, match=r"the name node"):
        answering(answer).ask("PUT", "RENAME", "/x", destination="/y")


def test_what_has_no_answer_needs_none(answering: Answering) -> None:
    assert answering(NOTHING).ask("PUT", "RENAME", "/x", destination="/y") == {}


def test_an_upload_whose_connection_is_closed_is_an_error_of_the_connection(answering: Answering) -> None:
    """As a data node leaves it that refuses and closes. Giving the upload up tries to send its end."""
    connection = HTTPConnection(answering(NOTHING).addresses[0])
    connection.auto_open = 0
    upload = Upload(connection)
    with pytest.raises(ConnectionError, match="the data node ended"):
        upload.write(b"late")
    upload.close()


def test_an_upload_whose_last_answer_breaks_off_is_one_too(answering: Answering) -> None:
    client = answering(BROKEN_OFF)
    connection = client._data_node("PUT", f"http://{client.addresses[0]}/webhdfs/v1/x?op=CREATE")
    connection.endheaders()
    with pytest.raises(ConnectionError, match="the data node ended"):
        Upload(connection).finish()
