"""Files of HDFS, S3 and GCS through ``pyarrow.fs``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

import pyarrow as pa
from pyarrow import fs

from holdfast.errors import ConfigurationError, StorageError
from holdfast.storage.filesystem import FileEntry, Storage, final_name, temporary_path

#: An object store has no folders to create and shows an object only when its upload has ended.
_OBJECT_STORES = frozenset({"s3", "gcs", "abfs"})
_OTHER_SPELLINGS = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}


class ArrowStorage(Storage):
    """Publishes by rename where the file system has an atomic one, else by the upload of one object."""

    #: No file system of ``pyarrow.fs`` can create a name only if it is new.
    exclusive_create = False

    def __init__(self, uri: str, filesystem: Any, root: str, atomic_rename: bool) -> None:
        super().__init__(uri)
        self._fs = filesystem
        self._root = root.rstrip("/")
        self.atomic_rename = atomic_rename

    @classmethod
    def connect(cls, uri: str) -> ArrowStorage:
        scheme, _, rest = uri.partition(":")
        normal = f"{_OTHER_SPELLINGS.get(scheme, scheme)}:{rest}"
        try:
            filesystem, root = fs.FileSystem.from_uri(normal)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError) as cause:
            raise ConfigurationError(
                f"{uri!r} is not a URI of a file system that can be used here ({cause}); "
                "expected a local path or one that begins with file:, hdfs:, s3: or gs:"
            ) from cause
        except OSError as cause:
            raise StorageError(
                f"cannot connect to the file system of {uri}: {cause}; check its client and credentials"
            ) from cause
        return cls(uri, filesystem, root, atomic_rename=filesystem.type_name == "hdfs")

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
        with self._errors("read", path), self._fs.open_input_file(self._absolute(path)) as stream:
            available = max(stream.size() - offset, 0)
            wanted = available if length is None else min(length, available)
            return bytes(stream.read_at(wanted, offset)) if wanted else b""

    def exists(self, path: str) -> bool:
        with self._errors("look for", path):
            found = self._fs.get_file_info(self._absolute(path))
            return bool(found.type != fs.FileType.NotFound)

    def list(self, directory: str = "", recursive: bool = False, temporaries: bool = False) -> list[FileEntry]:
        selector = fs.FileSelector(self._absolute(directory), recursive=recursive, allow_not_found=True)
        with self._errors("list", directory):
            found = [self._entry(info) for info in self._fs.get_file_info(selector)]
        shown = [entry for entry in found if temporaries or final_name(entry.name) is None]
        return sorted(shown, key=lambda entry: entry.path)

    def delete(self, path: str) -> None:
        with self._errors("delete", path), suppress(FileNotFoundError):
            self._fs.delete_file(self._absolute(path))

    def delete_dir(self, path: str) -> None:
        with self._errors("delete", path), suppress(FileNotFoundError):
            self._fs.delete_dir(self._absolute(path))

    def move(self, source: str, target: str) -> None:
        with self._errors(f"move to {self.location(target)} the file", source):
            self._prepare_folder(target)
            self._fs.move(self._absolute(source), self._absolute(target))

    def _absolute(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def _prepare_folder(self, path: str) -> None:
        if self._fs.type_name not in _OBJECT_STORES:
            self._fs.create_dir(self._absolute(path).rpartition("/")[0], recursive=True)

    def _entry(self, info: Any) -> FileEntry:
        is_dir = info.type == fs.FileType.Directory
        path = info.path.removeprefix(self._root).lstrip("/")
        return FileEntry(path, 0 if is_dir else info.size, (info.mtime_ns or 0) // 1_000_000, is_dir)
