"""The databases of this process: opened when a task needs them, kept between tasks, given up when another process asks.

Opening and closing a database costs several syncs of the disk. A slot that stays with its worker pays for neither. One
that moves pays for the opening inside its epoch, and mostly not for the closing: what the worker before has written is
flushed by its keeper right after the commit.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import sleep
from typing import Any
from weakref import ReferenceType, ref

from holdfast.errors import StateError
from holdfast.state.rocksdb.host_lock import HostLock
from holdfast.state.rocksdb.keeper import Keeper
from holdfast.state.rocksdb.library import load_engine
from holdfast.state.rocksdb.memory import Memory, memory_of
from holdfast.state.rocksdb.options import RocksDbOptions
from holdfast.state.rocksdb.tuning import LEVEL_ZERO_LIMIT, database_options
from holdfast.storage.private_files import write_private

_log = logging.getLogger(__name__)

#: Seconds to wait for a process that is in a transaction.
_PATIENCE = 600.0
_CURRENT = "current"
_LEVEL_ZERO_FILES = "rocksdb.num-files-at-level0"


class Database:
    """The database of one directory. Its files are in a folder of their own that the file ``current`` names: a load
    fills another folder and changes that name.

    Two locks: ``_guard`` for the fields; ``_upkeep``, taken before it, around a flush or a close, so that a task may
    begin while its database is being flushed.
    """

    def __init__(self, directory: Path, settings: RocksDbOptions) -> None:
        self.directory = directory
        self.references = 0
        self._settings = settings
        self._guard = threading.RLock()
        self._upkeep = threading.Lock()
        self._lock = HostLock(directory)
        self._memory: Memory | None = None
        self._handle: Any = None
        self._held = False
        self._writer: ReferenceType[object] | None = None
        self._readers = 0
        self._wanted = False
        #: It was opened for the running task, or the last one: it moved here, so it is likely to move on.
        self._moved = False

    # For stores

    def take(self, writer: object) -> Any:
        """Begin to write; the database, or None when there is none yet. Waits for other processes."""
        with self._guard:
            current = None if self._writer is None else self._writer()
            if current is not None and current is not writer:
                raise StateError(f"The store {self.directory} already has a transaction in this process; end it first.")
            self._open()
            self._writer = ref(writer)
            return self._handle

    def give_back(self) -> None:
        """End the writing. The keeper sees to the rest."""
        with self._guard:
            self._writer = None
        _process.keeper().wake()

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """The database for a short look, or None when there is none yet; a writer of this process may be at work."""
        with self._guard:
            self._open()
            self._readers += 1
            handle = self._handle
        try:
            yield handle
        finally:
            with self._guard:
                self._readers -= 1

    def replace(self, fill: Callable[[Any], None], seed: Callable[[Path], None] | None = None) -> Any:
        """Make a new database with ``fill``, and put it in the place of the old one. For the writer. ``seed`` puts the
        files of a database into the folder first.
        """
        old = self._current()
        number = 1 if old is None else int(old.name) + 1
        for leftover in self.directory.glob("[0-9]*"):
            if leftover != old:
                shutil.rmtree(leftover)
        path = self.directory / str(number)
        if seed is not None:
            seed(path)
        handle = self._connect(path)
        try:
            fill(handle)
            handle.flush()
            temporary = self.directory / f"{_CURRENT}.tmp"
            write_private(temporary, path.name.encode())
            os.replace(temporary, self.directory / _CURRENT)
        except BaseException:
            _close(handle)
            shutil.rmtree(path, ignore_errors=True)
            raise
        with self._upkeep, self._guard:
            if self._handle is not None:
                _close(self._handle)
            self._handle = handle
        if old is not None:
            shutil.rmtree(old, ignore_errors=True)
        return handle

    def release(self) -> None:
        """Close the database and give up the lock."""
        with self._upkeep, self._guard:
            self._close()

    # For the keeper

    @property
    def descriptor(self) -> int:
        """What becomes readable when another process wants the database; -1 when this one does not have it."""
        return self._lock.fileno() if self._held else -1

    def attend(self) -> None:
        """Give it up if it is wanted and not in use; otherwise make that cheap."""
        with self._guard:
            if not self._held:
                return
            self._wanted = self._lock.wanted() or self._wanted
            used = self._used
        if used:
            return
        if self._wanted:
            self._hand_over()
        elif self._moved or (self._memory is not None and self._memory.buffers_run_full()):
            self._moved = False
            with self._upkeep:
                if self._handle is not None:
                    self._handle.flush()

    def abandon(self) -> Any:
        """In a forked child: give up what is the parent's. The result must not be dropped."""
        self._lock.release()
        handle, self._handle, self._held = self._handle, None, False
        return handle

    # Inside

    @property
    def _used(self) -> bool:
        return self._readers > 0 or (self._writer is not None and self._writer() is not None)

    def _hand_over(self) -> None:
        """Compactions that a close breaks off begin anew in the next process: who has too many waiting ends some."""
        with self._upkeep:
            while not self._used and self._handle is not None and self._debt(self._handle):
                sleep(0.01)
            with self._guard:
                if not self._used:
                    self._close()

    @staticmethod
    def _debt(handle: Any) -> bool:
        return (handle.property_int_value(_LEVEL_ZERO_FILES) or 0) >= LEVEL_ZERO_LIMIT

    def _open(self) -> None:
        if not self._held:
            _process.require_usable()
            self.directory.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(_PATIENCE)
            self._held = True
            _process.keeper().wake()
        if self._handle is None:
            path = self._current()
            if path is not None:
                self._handle = self._connect(path)
                self._moved = True

    def _current(self) -> Path | None:
        try:
            name = (self.directory / _CURRENT).read_text()
        except FileNotFoundError:
            return None
        path = self.directory / name
        return path if path.exists() else None

    def _connect(self, path: Path) -> Any:
        self._memory = memory_of(self._settings)
        try:
            return load_engine().Rdict(str(path), database_options(self._settings, self._memory))
        except Exception as error:
            raise StateError(
                f"The store {path} cannot be opened: {error}. Check its disk; if the store is damaged, remove "
                f"{self.directory}, and the job goes back to its last checkpoint."
            ) from error

    def _close(self) -> None:
        if self._handle is not None:
            _close(self._handle)
        self._handle = None
        if self._held:
            self._lock.release()
        self._held = self._wanted = self._moved = False


def _close(handle: Any) -> None:
    try:
        handle.close()
    except Exception as error:
        # Its last flush failed: the disk is full, or the directory was removed. What was committed is in its log.
        _log.info("A RocksDB database was closed without a flush: %s", error)


class _Process:
    """What is open in one process.

    The threads and locks of RocksDB do not survive a fork. The child of a process that has used it cannot, and never
    drops what it inherited, because a close would wait for threads that are not there.
    """

    def __init__(self, inherited: Sequence[Any] = ()) -> None:
        self.guard = threading.Lock()
        self.databases: dict[Path, Database] = {}
        self._inherited = inherited
        self._keeper: Keeper | None = None

    def keeper(self) -> Keeper:
        with self.guard:
            if self._keeper is None:
                self._keeper = Keeper(lambda: list(self.databases.values()))
                self._keeper.start()
            return self._keeper

    def require_usable(self) -> None:
        if self._inherited:
            raise StateError(
                "The rocksdb backend cannot be used in a process that was forked from one that has used it. Start the "
                "process in another way: multiprocessing has 'spawn' and 'forkserver'."
            )

    def forked(self) -> _Process:
        """What the child of a fork begins with."""
        if self._keeper is None:
            return _Process(self._inherited)
        return _Process([self._inherited, self._keeper, *(one.abandon() for one in self.databases.values())])


_process = _Process()


def acquire(directory: Path, settings: RocksDbOptions) -> Database:
    """The database of ``directory``, shared in this process; release it once for every call."""
    with _process.guard:
        path = directory.resolve()
        database = _process.databases.setdefault(path, Database(path, settings))
        database.references += 1
        return database


def release(database: Database) -> None:
    """Give up one share of the database; the last one closes it."""
    with _process.guard:
        database.references -= 1
        if database.references > 0 or _process.databases.get(database.directory) is not database:
            return
        del _process.databases[database.directory]
    database.release()


def close_all() -> None:
    """Close what this process has open; a store that begins a transaction later opens it again."""
    for database in list(_process.databases.values()):
        with suppress(Exception):
            database.release()


def _after_fork() -> None:
    global _process
    _process = _process.forked()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(close_all)
