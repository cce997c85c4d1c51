"""HDFS over HTTP: the requests of WebHDFS, with nothing but Python's own library."""

from __future__ import annotations

import errno
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_CONNECT_SECONDS = 5.0
#: A name node that is asked to list a large folder, or a data node that waits for its replicas.
_ANSWER_SECONDS = 60.0
_STANDBY = "StandbyException"
_KINDS = {
    "FileNotFoundException": errno.ENOENT,
    "AccessControlException": errno.EACCES,
    "SecurityException": errno.EACCES,
    "AuthorizationException": errno.EACCES,
    "FileAlreadyExistsException": errno.EEXIST,
    "ParentNotDirectoryException": errno.ENOTDIR,
    "PathIsNotDirectoryException": errno.ENOTDIR,
    "NSQuotaExceededException": errno.EDQUOT,
    "DSQuotaExceededException": errno.EDQUOT,
    "QuotaByStorageTypeExceededException": errno.EDQUOT,
}


class RemoteError(OSError):
    """What a server of HDFS answered instead of the result, where no error of the operating system says the same."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


class Unreachable(ConnectionError):
    """Nothing was sent, because nobody listens."""


class WebHdfsClient:
    """The name nodes of one HDFS, for one user. One that is on standby, or gone, is passed over for the next.

    Failures are errors of the operating system: FileNotFoundError where HDFS has FileNotFoundException, and so on.
    A request that may have arrived is not sent again: whether it was carried out is for the caller to find out.
    Used by any number of threads.
    """

    def __init__(self, addresses: tuple[str, ...], user: str, secure: bool = False) -> None:
        self.addresses = addresses
        self.user = user
        self.secure = secure
        self._active = addresses[0]

    def ask(self, method: str, operation: str, path: str, **parameters: str) -> dict[str, Any]:
        """The answer of the name node; empty where it has none.

        ConnectionError for one that did not arrive whole: the request may have been carried out nevertheless.
        """
        with self._name_node(method, operation, path, parameters) as response, _whole("the name node"):
            content = response.read()
        if not content and method != "GET":
            return {}
        answer = _decoded(content)
        if answer is None:
            raise ConnectionError(
                f"the name node {self._active} answered {operation} with {content[:80]!r}; expected an object of JSON. "
                "If a proxy is in between, have it pass answers on unchanged"
            )
        return answer

    def status(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("GET", "GETFILESTATUS", path)["FileStatus"]
        return found

    def content(self, path: str) -> bytes:
        with self.download(path) as response, _whole("the data node"):
            return response.read()

    @contextmanager
    def download(self, path: str, offset: int = 0) -> Iterator[HTTPResponse]:
        """The content from a place on, from a data node."""
        with self._name_node("GET", "OPEN", path, {"offset": str(offset)}) as redirect:
            location = redirect.getheader("Location")
            if location is None:
                yield redirect
                return
        connection = self._data_node("GET", location)
        try:
            connection.endheaders()
            yield _checked(connection)
        finally:
            connection.close()

    def upload(self, path: str) -> Upload:
        """A new file, or one that replaces what is there; parents are created."""
        with self._name_node("PUT", "CREATE", path, {"overwrite": "true"}) as redirect:
            location = redirect.getheader("Location")
        if location is None:
            raise OSError(f"the name node {self._active} did not say which data node takes the content")
        connection = self._data_node("PUT", location)
        connection.putheader("Content-Type", "application/octet-stream")
        connection.putheader("Transfer-Encoding", "chunked")
        connection.endheaders()
        return Upload(connection)

    @contextmanager
    def _name_node(
        self, method: str, operation: str, path: str, parameters: dict[str, str]
    ) -> Iterator[HTTPResponse]:
        query = urlencode({"op": operation, "user.name": self.user, **parameters})
        connection, response = self._first_answer(method, f"/webhdfs/v1{quote(path)}?{query}")
        try:
            yield response
        finally:
            connection.close()

    def _first_answer(self, method: str, target: str) -> tuple[HTTPConnection, HTTPResponse]:
        active = self._active
        for address in [active, *(other for other in self.addresses if other != active)]:
            try:
                answer = _exchange(address, self.secure, method, target)
                self._active = address
                return answer
            except OSError as cause:
                refusal = cause
                if not _did_nothing(refusal):
                    raise
        raise refusal

    def _data_node(self, method: str, location: str) -> HTTPConnection:
        """A connection with the request's first line; headers may follow."""
        node = urlsplit(location)
        try:
            connection = _connected(node.netloc, node.scheme == "https")
        except Unreachable as cause:
            raise Unreachable(
                f"{cause}. It is the data node that the name node {self._active} named for the content: this host has "
                "to reach the data nodes too"
            ) from cause
        connection.putrequest(method, f"{node.path}?{node.query}")
        return connection


class Upload(io.RawIOBase):
    """The content of a new file on its way to a data node. Whole only after ``finish``."""

    def __init__(self, connection: HTTPConnection) -> None:
        self._connection = connection
        self._sent = 0
        self._ended = False

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._sent

    def write(self, data: ReadableBuffer, /) -> int:
        content = memoryview(data).cast("B")
        # A buffer that is given up flushes once more what it has.
        if len(content) and not self._ended:
            self._send(b"%x\r\n" % len(content), content, b"\r\n")
            self._sent += len(content)
        return len(content)

    def finish(self) -> None:
        """Returns when the file is closed in HDFS."""
        self._send(b"0\r\n\r\n")
        self._ended = True
        with _whole("the data node"):
            _checked(self._connection).read()

    def close(self) -> None:
        """Gives up what is not finished: a file of which a part has arrived stays in HDFS."""
        try:
            if not self._ended:
                # A data node that finds the connection closed may create the file later, when it was deleted already.
                with suppress(OSError):
                    self.finish()
        finally:
            self._ended = True
            self._connection.close()
            super().close()

    def _send(self, *parts: bytes | memoryview) -> None:
        try:
            with _whole("the data node"):
                for part in parts:
                    self._connection.send(part)
        except OSError:
            # A data node that refuses says why, and does not wait for the rest.
            with suppress(HTTPException, TimeoutError, ConnectionError):
                _checked(self._connection)
            raise


@contextmanager
def _whole(server: str) -> Iterator[None]:
    """What breaks off is a failure of the connection, of a kind that callers know."""
    try:
        yield
    except HTTPException as cause:
        raise ConnectionError(f"{server} ended before its answer did: {cause!r}") from cause


def _decoded(content: bytes) -> dict[str, Any] | None:
    """None for anything but an object of JSON."""
    try:
        answer = json.loads(content)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None


def _connected(address: str, secure: bool) -> HTTPConnection:
    connection = (HTTPSConnection if secure else HTTPConnection)(address, timeout=_CONNECT_SECONDS)
    # What was closed is not opened again behind the caller's back.
    connection.auto_open = 0
    try:
        connection.connect()
    except OSError as cause:
        raise Unreachable(f"{address} cannot be reached: {cause}") from cause
    connection.sock.settimeout(_ANSWER_SECONDS)
    return connection


def _exchange(address: str, secure: bool, method: str, target: str) -> tuple[HTTPConnection, HTTPResponse]:
    connection = _connected(address, secure)
    try:
        connection.putrequest(method, target)
        connection.endheaders()
        return connection, _checked(connection)
    except BaseException:
        connection.close()
        raise


def _checked(connection: HTTPConnection) -> HTTPResponse:
    """The answer, unless it is a failure, which is raised."""
    try:
        response = connection.getresponse()
        if response.status < 400:
            return response
        content = response.read()
    except HTTPException as cause:
        raise ConnectionError(f"{connection.host}:{connection.port} gave no answer of HTTP: {cause!r}") from cause
    raise _failure(f"{connection.host}:{connection.port}", response, content)


def _failure(address: str, response: HTTPResponse, content: bytes) -> OSError:
    try:
        told = json.loads(content)["RemoteException"]
        kind, message = told["exception"], told["message"].partition("\n")[0]
    except (ValueError, KeyError, TypeError):
        if response.status == 401:
            return RemoteError("401", f"{address} wants Kerberos, which is not spoken here over HTTP")
        return RemoteError(str(response.status), f"{address} answered {response.reason}, which is no answer of WebHDFS")
    number = _KINDS.get(kind)
    return RemoteError(kind, message) if number is None else OSError(number, message)


def _did_nothing(refusal: OSError) -> bool:
    """Whether a name node certainly did not do what it was asked to, and another one may."""
    return isinstance(refusal, Unreachable) or (isinstance(refusal, RemoteError) and refusal.kind == _STANDBY)
