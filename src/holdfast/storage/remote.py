"""Files of S3 and GCS, and of HDFS by libhdfs, through ``pyarrow.fs``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

from pyarrow import fs

from holdfast.errors import ConfigurationError, StorageError
from holdfast.storage.conditional import GcsObjectCreator, ObjectCreator, S3ObjectCreator
from holdfast.storage.filesystem import FileEntry, Storage, final_name, temporary_path
from holdfast.storage.object_stores import advice, gcs_file_system, s3_file_system

#: An object store has no folders to create and shows an object only when its upload has ended.
_OBJECT_STORES = frozenset({"s3", "gcs"})
_OTHER_SPELLINGS = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}
_AZURE = frozenset({"abfs", "abfss", "wasb", "wasbs", "adl"})
_READS = 10
_EXPECTED = "expected a local path, or one that begins with file:, hdfs:, webhdfs:, s3: (s3a:) or gs:"


class ArrowStorage(Storage):
    """Publishes by rename where the file system has an atomic one, else by the upload of one object.

    No file system of ``pyarrow.fs`` can create a name only if it is new: ``creator`` makes what does, for object stores
    when it is needed first. Without it a name is looked for, and then written.
    """

    def __init__(
        self,
        uri: str,
        filesystem: Any,
        root: str,
        atomic_rename: bool,
        creator: Callable[[], ObjectCreator] | None = None,
    ) -> None:
        super().__init__(uri)
        self._creator = creator
        self.exclusive_create = creator is not None
        self._fs = filesystem
        self._root = root.rstrip("/")
        self.atomic_rename = atomic_rename

    @classmethod
    def connect(cls, uri: str) -> ArrowStorage:
        """The storage of an ``s3:`` or ``gs:`` URI; ConfigurationError for every other one."""
        scheme, _, rest = uri.partition(":")
        normal = f"{_OTHER_SPELLINGS.get(scheme, scheme)}:{rest}"
        if not normal.startswith(("s3:", "gs:")):
            raise _refused(scheme, uri)
        bucket = urlsplit(normal).netloc.rpartition("@")[2]
        if not bucket:
            raise ConfigurationError(f"{uri!r} names no bucket; expected {scheme}://<bucket>/<path>")
        make = s3_file_system if normal.startswith("s3:") else gcs_file_system
        try:
            filesystem = make(normal)
        except OSError as cause:
            raise StorageError(
                f"cannot connect to the file system of {uri}: {cause}; "
                f"{advice(cause) or 'check its name, the network and the credentials of this process'}"
            ) from cause
        if normal.startswith("s3:"):
            creator: Callable[[], ObjectCreator] = partial(S3ObjectCreator.of, normal, filesystem.region)
        else:
            creator = partial(GcsObjectCreator.of, normal)
        return cls(uri, filesystem, bucket + unquote(urlsplit(normal).path), atomic_rename=False, creator=creator)

    def write_atomic(self, path: str, data: bytes) -> None:
        if self.atomic_rename:
            with self.open_output(path) as stream:
                stream.write(data)
            return
        with self._errors("write", path):
            self._prepare_folder(path)
            with self._fs.open_output_stream(self._absolute(path)) as stream:
                stream.write(data)

    def create_exclusive(self, path: str, data: bytes) -> bool:
        if self._creator is not None:
            with self._errors("create", path):
                return self._creator().create(self._absolute(path).partition("/")[2], data)
        if self.exists(path):
            return False
        self.write_atomic(path, data)
        return True

    @contextmanager
    def open_output(self, path: str) -> Iterator[BinaryIO]:
        # A stream that is closed after a failure publishes what it has, so it never writes to the final name.
        temporary = temporary_path(path)
        with self._errors("write", path):
            self._prepare_folder(path)
            try:
                with self._fs.open_output_stream(self._absolute(temporary)) as stream:
                    yield stream
                self._fs.move(self._absolute(temporary), self._absolute(path))
            except BaseException:
                with suppress(OSError):
                    self._fs.delete_file(self._absolute(temporary))
                raise

    @contextmanager
    def open_input(self, path: str) -> Iterator[BinaryIO]:
        with self._errors("read", path), self._fs.open_input_file(self._absolute(path)) as stream:
            yield stream

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        with self._errors("read", path):
            if offset or length is not None or self._fs.type_name != "s3":
                return self._read(self._absolute(path), offset, length)[0]
            # The size is asked for before the content: of an object that is replaced in between, a part would be seen.
            # A client of GCS asks for the content of the version that it has the size of.
            for _ in range(_READS):
                content, version = self._read(self._absolute(path), 0, None)
                if self._read(self._absolute(path), 0, 0)[1] == version:
                    return content
            raise OSError(f"it was replaced during each of {_READS} attempts to read it")

    def exists(self, path: str) -> bool:
        with self._errors("look for", path):
            found = self._is_found(self._absolute(path))
            # To libhdfs a name node that is gone is a missing file, and so is the root then.
            if not found and self._fs.type_name == "hdfs" and not self._is_found("/"):
                raise OSError("the name node does not answer")
            return found

    def list(self, directory: str = "", recursive: bool = False, temporaries: bool = False) -> list[FileEntry]:
        # To GCS a folder is nothing unless somebody made an object of that name, so all files tell their folders.
        flat = self._fs.type_name == "gcs"
        selector = fs.FileSelector(self._absolute(directory), recursive=recursive or flat, allow_not_found=True)
        with self._errors("list", directory):
            found = [self._entry(info) for info in self._fs.get_file_info(selector)]
        if flat:
            found = _with_folders(found, directory, recursive)
        shown = [entry for entry in found if temporaries or final_name(entry.name) is None]
        return sorted(shown, key=lambda entry: entry.path)

    def delete(self, path: str) -> None:
        with self._errors("delete", path), suppress(FileNotFoundError):
            self._fs.delete_file(self._absolute(path))

    def delete_dir(self, path: str) -> None:
        with self._errors("delete", path):
            try:
                self._fs.delete_dir(self._absolute(path))
            except OSError:
                # GCS has no type of its own for a folder that is not there.
                if self._is_found(self._absolute(path)):
                    raise

    def move(self, source: str, target: str) -> None:
        with self._errors(f"move to {self.location(target)} the file", source):
            self._prepare_folder(target)
            self._fs.move(self._absolute(source), self._absolute(target))

    def _advice(self, cause: OSError) -> str:
        return advice(cause) or super()._advice(cause)

    def _is_found(self, absolute: str) -> bool:
        return bool(self._fs.get_file_info(absolute).type != fs.FileType.NotFound)

    def _read(self, absolute: str, offset: int, length: int | None) -> tuple[bytes, bytes | None]:
        """Bytes of a file, and the version of it that S3 tells."""
        with self._fs.open_input_file(absolute) as stream:
            available = max(stream.size() - offset, 0)
            wanted = available if length is None else min(length, available)
            return bytes(stream.read_at(wanted, offset)) if wanted else b"", stream.metadata().get("ETag")

    def _absolute(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def _prepare_folder(self, path: str) -> None:
        if self._fs.type_name not in _OBJECT_STORES:
            self._fs.create_dir(self._absolute(path).rpartition("/")[0], recursive=True)

    def _entry(self, info: Any) -> FileEntry:
        is_dir = info.type == fs.FileType.Directory
        path = info.path.removeprefix(self._root).lstrip("/")
        return FileEntry(path, 0 if is_dir else info.size, (info.mtime_ns or 0) // 1_000_000, is_dir)


def _with_folders(entries: list[FileEntry], directory: str, recursive: bool) -> list[FileEntry]:
    """Files at any depth below a folder, and the folders that they are in."""
    prefix = f"{directory}/" if directory else ""
    by_path = {entry.path: entry for entry in entries}
    for entry in entries:
        steps = entry.path.removeprefix(prefix).split("/")
        for depth in range(1, len(steps)):
            path = prefix + "/".join(steps[:depth])
            by_path.setdefault(path, FileEntry(path, 0, 0, is_dir=True))
    return [entry for path, entry in by_path.items() if recursive or "/" not in path.removeprefix(prefix)]


def _refused(scheme: str, uri: str) -> ConfigurationError:
    if scheme in _AZURE:
        return ConfigurationError(
            f"{uri!r}: Azure's storage ({scheme}:) is not supported, because its client in pyarrow cannot rename files "
            "of every kind of account. Use a directory that all hosts have mounted (BlobFuse or NFS of the same "
            f"account), hdfs:, s3: or gs:; {_EXPECTED}"
        )
    return ConfigurationError(f"{uri!r} has the scheme {scheme}:, which is not known here; {_EXPECTED}")
