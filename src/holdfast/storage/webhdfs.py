"""Files of HDFS over WebHDFS: no library of Hadoop is needed where it is used."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from enum import Enum
from http.client import HTTPException, HTTPResponse
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from holdfast.storage.filesystem import FileEntry, Storage, final_name, temporary_path
from holdfast.storage.webhdfs_client import WebHdfsClient

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_CHUNK = 1 << 20


class _Rename(Enum):
    """What becomes of a file that has the name already."""

    REPLACING = "OVERWRITE"
    #: FileExistsError.
    IF_NEW = "NONE"


class WebHdfsStorage(Storage):
    """Publishes by a rename at the name node, which is one entry of its log: it replaces, or is refused where the
    name exists, as it is asked to. A file is closed before it is renamed, so a name never shows a part.
    """

    atomic_rename = True
    exclusive_create = True

    def __init__(self, uri: str, client: WebHdfsClient, root: str) -> None:
        super().__init__(uri)
        self._client = client
        self._root = root.rstrip("/")

    def write_atomic(self, path: str, data: bytes) -> None:
        with self.open_output(path) as stream:
            stream.write(data)

    def create_exclusive(self, path: str, data: bytes) -> bool:
        with self._errors("create", path):
            try:
                with self._draft(path, _Rename.IF_NEW) as stream:
                    stream.write(data)
            except FileExistsError:
                return False
            return True

    @contextmanager
    def open_output(self, path: str) -> Iterator[BinaryIO]:
        with self._errors("write", path), self._draft(path, _Rename.REPLACING) as stream:
            yield stream

    @contextmanager
    def open_input(self, path: str) -> Iterator[BinaryIO]:
        with self._errors("read", path):
            size = int(self._client.status(self._absolute(path))["length"])
            with io.BufferedReader(_Content(self._client, self._absolute(path), size), _CHUNK) as stream:
                yield cast(BinaryIO, stream)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        if offset == 0 and length is None:
            # In one request, which sees one file, whoever replaces it meanwhile.
            with self._errors("read", path):
                return self._client.content(self._absolute(path))
        with self.open_input(path) as stream:
            stream.seek(offset)
            return stream.read() if length is None else stream.read(length)

    def exists(self, path: str) -> bool:
        with self._errors("look for", path):
            return self._is_there(self._absolute(path))

    def list(self, directory: str = "", recursive: bool = False, temporaries: bool = False) -> list[FileEntry]:
        with self._errors("list", directory):
            entries = list(self._entries(directory, recursive))
        shown = [entry for entry in entries if temporaries or final_name(entry.name) is None]
        return sorted(shown, key=lambda entry: entry.path)

    def delete(self, path: str) -> None:
        with self._errors("delete", path):
            self._client.ask("DELETE", "DELETE", self._absolute(path))

    def delete_dir(self, path: str) -> None:
        with self._errors("delete", path):
            self._client.ask("DELETE", "DELETE", self._absolute(path), recursive="true")

    def move(self, source: str, target: str) -> None:
        before, after = self._absolute(source), self._absolute(target)
        with self._errors(f"move to {self.location(target)} the file", source):
            self._client.status(before)  # before a folder is created for nothing
            self._client.ask("PUT", "MKDIRS", after.rpartition("/")[0])
            self._rename(before, after, _Rename.REPLACING)

    def _absolute(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root or "/"

    @contextmanager
    def _draft(self, path: str, rename: _Rename) -> Iterator[BinaryIO]:
        """A stream to a temporary name, which is renamed when the block ends without error, and gone after one."""
        temporary = self._absolute(temporary_path(path))
        try:
            with self._client.upload(temporary) as upload:
                stream = io.BufferedWriter(upload, _CHUNK)
                yield cast(BinaryIO, stream)
                stream.flush()
                upload.finish()
            self._rename(temporary, self._absolute(path), rename)
        except BaseException:
            with suppress(OSError):
                self._client.ask("DELETE", "DELETE", temporary)
            raise

    def _rename(self, source: str, target: str, rename: _Rename) -> None:
        try:
            self._client.ask("PUT", "RENAME", source, destination=target, renameoptions=rename.value)
        except (ConnectionError, TimeoutError):
            # The answer may have been lost, and not the request. Nobody else knows the source.
            if self._is_there(source) or not self._is_there(target):
                raise

    def _is_there(self, absolute: str) -> bool:
        try:
            self._client.status(absolute)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def _entries(self, directory: str, recursive: bool) -> Iterator[FileEntry]:
        try:
            answer = self._client.ask("GET", "LISTSTATUS", self._absolute(directory))
        except FileNotFoundError:
            return
        for status in answer["FileStatuses"]["FileStatus"]:
            if not status["pathSuffix"]:
                raise NotADirectoryError(f"{self.location(directory)} is a file")
            entry = _entry(directory, status)
            yield entry
            if entry.is_dir and recursive:
                yield from self._entries(entry.path, recursive)


class _Content(io.RawIOBase):
    """A file to read from any place. One request goes on until somebody seeks."""

    def __init__(self, client: WebHdfsClient, path: str, size: int) -> None:
        self._client = client
        self._path = path
        self._size = size
        self._position = 0
        self._request: AbstractContextManager[HTTPResponse] | None = None
        self._response: HTTPResponse | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if base + offset != self._position:
            self._end_request()
            self._position = base + offset
        return self._position

    def readinto(self, target: WriteableBuffer, /) -> int:
        if self._position >= self._size:
            return 0
        if self._response is None:
            self._request = self._client.download(self._path, self._position)
            self._response = self._request.__enter__()
        try:
            count = self._response.readinto(target)
        except HTTPException as cause:
            raise ConnectionError(f"the data node ended before the file: {cause!r}") from cause
        if count == 0:
            raise ConnectionError(f"the data node ended at byte {self._position} of {self._size}")
        self._position += count
        return count

    def close(self) -> None:
        self._end_request()
        super().close()

    def _end_request(self) -> None:
        request, self._request, self._response = self._request, None, None
        if request is not None:
            request.__exit__(None, None, None)


def _entry(directory: str, status: dict[str, Any]) -> FileEntry:
    name, is_dir = status["pathSuffix"], status["type"] == "DIRECTORY"
    path = f"{directory}/{name}" if directory else name
    return FileEntry(path, 0 if is_dir else status["length"], status["modificationTime"], is_dir)
