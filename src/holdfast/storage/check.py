"""Trying a directory before a job leans on it: from the driver, and from every executor."""

from __future__ import annotations

import secrets
import socket
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

from holdfast.errors import MissingExtraError, StorageError
from holdfast.storage.filesystem import Storage

DEFAULT_SECONDS = 10.0
_PREFIX = ".holdfast-check"


class Step(Enum):
    """What is tried, in this order."""

    CONNECT = "connect"
    WRITE = "write a file"
    READ = "read it again"
    SHARE = "see what the driver wrote"
    LIST = "list the files"
    CREATE = "create a name that only one may create"
    DELETE = "delete the files"


@dataclass(frozen=True)
class StorageReport:
    """A directory that can be used from a host."""

    uri: str
    host: str
    seconds: float
    #: Whether the file system itself lets only one of two create a name.
    exclusive_create: bool


def check_storage(uri: str, seconds: float = DEFAULT_SECONDS, marker: str | None = None) -> StorageReport:
    """Write, read, list, create exclusively and delete in a directory, under a name that nobody else has.

    With the ``marker`` that ``leave_marker`` gave another host it is made sure, too, that both see one directory.
    StorageError when a step fails, or all are not done in time: it names directory, host and step, and says what to do.
    ConfigurationError for a URI that no storage has.
    """
    begun = time.monotonic()
    trial = _Trial(uri, marker)
    exclusive = _in_time(trial, seconds)
    return StorageReport(uri, socket.gethostname(), time.monotonic() - begun, exclusive)


def leave_marker(uri: str) -> str:
    """A new file of this host, by which others know the directory. Whoever left it removes it."""
    marker = f"{_PREFIX}.{secrets.token_hex(8)}.marker"
    Storage.for_uri(uri).write_atomic(marker, socket.gethostname().encode())
    return marker


def remove_marker(uri: str, marker: str) -> None:
    Storage.for_uri(uri).delete(marker)


class _Trial:
    """The steps, in a folder of their own, and the one that is on now."""

    def __init__(self, uri: str, marker: str | None) -> None:
        self.uri = uri
        self.step = Step.CONNECT
        self.failure: BaseException | None = None
        self._marker = marker
        self._folder = f"{_PREFIX}.{secrets.token_hex(8)}"
        self._storage: Storage | None = None

    def run(self) -> bool:
        """Whether the file system promises exclusive creation."""
        storage = self._storage = Storage.for_uri(self.uri)
        content = secrets.token_bytes(64)
        self.step = Step.WRITE
        storage.write_atomic(f"{self._folder}/file", content)
        self.step = Step.READ
        _expect(storage.read(f"{self._folder}/file") == content, "what was read is not what was written")
        self.step = Step.SHARE
        _expect(
            self._marker is None or storage.exists(self._marker),
            f"the driver's file {storage.location(self._marker or '')} is not there, so this host has a directory of "
            "its own under that name: use a file system that all hosts share, and check that it is mounted here",
        )
        self.step = Step.LIST
        names = [entry.name for entry in storage.list(self._folder)]
        _expect(names == ["file"], f"{names} was listed where there is one file")
        self.step = Step.CREATE
        self._create(storage)
        self.step = Step.DELETE
        storage.delete(f"{self._folder}/file")
        storage.delete_dir(self._folder)
        _expect(not storage.list(self._folder), "files that were deleted are still there")
        return storage.exclusive_create

    def clean(self) -> None:
        """After a failure. A write that fails leaves nothing behind."""
        if self._storage is not None and self.step not in (Step.CONNECT, Step.WRITE):
            with suppress(StorageError):
                self._storage.delete_dir(self._folder)

    def _create(self, storage: Storage) -> None:
        """Two creators: at the same moment where the file system keeps them apart, else one after the other."""
        path = f"{self._folder}/once"
        with ThreadPoolExecutor(2 if storage.exclusive_create else 1) as creators:
            won = list(creators.map(lambda number: storage.create_exclusive(path, b"%d" % number), range(2)))
        _expect(
            sum(won) == 1,
            f"{sum(won)} of two creators were told that the file is theirs, so two drivers of a job could not be kept "
            "apart: use a server of S3 that heeds If-None-Match, or another storage",
        )
        _expect(storage.read(path) == b"%d" % won.index(True), "the file has not the content of the one who created it")


def _in_time(trial: _Trial, seconds: float) -> bool:
    """In a thread that is left behind when it hangs."""
    answer: Future[bool] = Future()

    def run() -> None:
        try:
            answer.set_result(trial.run())
        except BaseException as error:
            trial.failure = error
            trial.clean()
            answer.set_exception(error)

    threading.Thread(target=run, name="holdfast-storage-check", daemon=True).start()
    try:
        return answer.result(seconds)
    except (MissingExtraError, StorageError) as error:
        raise _failed(trial, str(error)) from error.__cause__
    except TimeoutError:
        silence = f"there was no answer within {seconds:g} s; check that the file system is up and can be reached"
        raise _failed(trial, str(trial.failure or silence)) from None


def _failed(trial: _Trial, why: str) -> StorageError:
    return StorageError(
        f"{trial.uri} cannot be used from host {socket.gethostname()}: could not {trial.step.value}: {why}"
    )


def _expect(held: bool, otherwise: str) -> None:
    if not held:
        raise StorageError(otherwise)
