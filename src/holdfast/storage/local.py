"""Files in a directory of this host (or of a file system that the host has mounted)."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from holdfast.storage.filesystem import FileEntry, Storage, final_name, temporary_path

#: The rights of a new file, of which the process's umask takes some away.
_BY_UMASK = 0o666
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


class LocalStorage(Storage):
    """Durable writes: temporary name in the same folder, fsync of the file, rename or link, fsync of the folder."""

    atomic_rename = True
    exclusive_create = True

    def __init__(self, root: str) -> None:
        super().__init__(os.path.abspath(root))

    def write_atomic(self, path: str, data: bytes) -> None:
        with self.open_output(path) as stream:
            stream.write(data)

    def write_private(self, path: str, data: bytes) -> None:
        folder = os.path.dirname(self._absolute(path))
        with self._errors("write", path):
            _make_dirs(folder)
            os.chmod(folder, 0o700)
        with self._output(path, 0o600) as stream:
            stream.write(data)

    def create_exclusive(self, path: str, data: bytes) -> bool:
        temporary, target = self._absolute(temporary_path(path)), self._absolute(path)
        with self._errors("create", path), self._draft(temporary) as stream:
            stream.write(data)
            _synchronise(stream)
            if not _link(temporary, target, data):
                return False
            try:
                _fsync_dir(os.path.dirname(target))
            except OSError:
                # The caller is told that nothing was created, so nothing may be seen.
                with suppress(OSError):
                    os.unlink(target)
                raise
            return True

    @contextmanager
    def open_output(self, path: str) -> Iterator[BinaryIO]:
        with self._output(path) as stream:
            yield stream

    @contextmanager
    def _output(self, path: str, mode: int = _BY_UMASK) -> Iterator[BinaryIO]:
        temporary, target = self._absolute(temporary_path(path)), self._absolute(path)
        with self._errors("write", path), self._draft(temporary, mode) as stream:
            yield stream
            _synchronise(stream)
            os.replace(temporary, target)
            _fsync_dir(os.path.dirname(target))

    @contextmanager
    def open_input(self, path: str) -> Iterator[BinaryIO]:
        with self._errors("read", path), open(self._absolute(path), "rb") as stream:
            yield stream

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        with self._errors("read", path), open(self._absolute(path), "rb") as stream:
            stream.seek(offset)
            return stream.read() if length is None else stream.read(length)

    def exists(self, path: str) -> bool:
        with self._errors("look for", path):
            try:
                os.stat(self._absolute(path))
            except (FileNotFoundError, NotADirectoryError):
                return False
            return True

    def list(self, directory: str = "", recursive: bool = False, temporaries: bool = False) -> list[FileEntry]:
        with self._errors("list", directory):
            return sorted(self._entries(directory, recursive, temporaries, frozenset()), key=lambda entry: entry.path)

    def delete(self, path: str) -> None:
        with self._errors("delete", path), suppress(FileNotFoundError):
            os.unlink(self._absolute(path))
            _fsync_dir(os.path.dirname(self._absolute(path)))

    def delete_dir(self, path: str) -> None:
        root = self._absolute(path)
        # Each by itself: somebody else may be deleting the same folder, and what he was at is not all of it.
        gone = suppress(FileNotFoundError)
        with self._errors("delete", path):
            for folder, subfolders, files in os.walk(root, topdown=False):
                for name in files:
                    with gone:
                        os.unlink(os.path.join(folder, name))
                for name in subfolders:
                    with gone:
                        os.rmdir(os.path.join(folder, name))
            with gone:
                os.rmdir(root)
                _fsync_dir(os.path.dirname(root))

    def move(self, source: str, target: str) -> None:
        before, after = self._absolute(source), self._absolute(target)
        with self._errors(f"move to {self.location(target)} the file", source):
            os.stat(before)  # before a folder is created for nothing
            _make_dirs(os.path.dirname(after))
            os.replace(before, after)
            _fsync_dir(os.path.dirname(after))
            if os.path.dirname(before) != os.path.dirname(after):
                _fsync_dir(os.path.dirname(before))

    def _absolute(self, path: str) -> str:
        return os.path.join(self.uri, path) if path else self.uri

    def _entries(
        self, directory: str, recursive: bool, temporaries: bool, above: frozenset[tuple[int, int]]
    ) -> Iterator[FileEntry]:
        """``above`` are device and inode of the folders that this one lies in: a link back to one of them is not
        followed.
        """
        try:
            own = os.stat(self._absolute(directory))
            found = list(os.scandir(self._absolute(directory)))
        except FileNotFoundError:
            return
        above |= {(own.st_dev, own.st_ino)}
        for entry in found:
            if final_name(entry.name) is not None and not temporaries:
                continue
            path = f"{directory}/{entry.name}" if directory else entry.name
            try:
                stat = entry.stat()
            except FileNotFoundError:
                continue  # deleted since the folder was read
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
                continue  # a link to itself
            is_dir = entry.is_dir()
            yield FileEntry(path, 0 if is_dir else stat.st_size, stat.st_mtime_ns // 1_000_000, is_dir)
            if is_dir and recursive and (stat.st_dev, stat.st_ino) not in above:
                yield from self._entries(path, recursive, temporaries, above)

    @contextmanager
    def _draft(self, temporary: str, mode: int = _BY_UMASK) -> Iterator[BinaryIO]:
        """A new file under a temporary name that is gone afterwards, whether it was published or not."""
        _make_dirs(os.path.dirname(temporary))
        try:
            with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as stream:
                yield stream
        finally:
            with suppress(OSError):
                os.unlink(temporary)


def _synchronise(stream: BinaryIO) -> None:
    stream.flush()
    os.fsync(stream.fileno())


def _link(temporary: str, target: str, data: bytes) -> bool:
    """Publish under a name that must be new; False when it is taken."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        return _create_in_place(target, data)
    return True


def _create_in_place(target: str, data: bytes) -> bool:
    """For file systems without hard links: exclusive too, but a crash may leave the name with a part of the content."""
    try:
        with open(target, "xb") as stream:
            stream.write(data)
            _synchronise(stream)
    except FileExistsError:
        return False
    return True


def _make_dirs(path: str) -> None:
    """Create a folder and its parents so that they survive a crash of the host."""
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    _make_dirs(parent)
    with suppress(FileExistsError):
        os.mkdir(path)
    if not os.path.isdir(path):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    _fsync_dir(parent)


def _fsync_dir(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
