"""The folder of a job: who drives it, and how many attempts it has had."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import socket
import time
from typing import IO

from holdfast.errors import ConfigurationError, JobLockedError, StorageError
from holdfast.storage.filesystem import Storage
from holdfast.storage.local import LocalStorage

_log = logging.getLogger(__name__)
_LOCK_FILE = "lock"
_ATTEMPTS = "attempts"
_ATTEMPTS_KEPT = 16


class JobDirectory:
    """``<uri>/<job id>``, to be locked by one driver at a time. Used on the driver only.

    On a local file system the lock is ``flock(2)`` on an open file: the kernel frees it when the driver dies, in
    whatever way. Elsewhere nothing locks (see ``storage.filesystem``), which ``lock`` says in a warning.
    """

    def __init__(self, uri: str, job_id: str) -> None:
        if not job_id or "/" in job_id or job_id.startswith("."):
            raise ConfigurationError(f"the job id is {job_id!r}; expected a name that can be a folder")
        self._storage = Storage.for_uri(uri).child(job_id)
        self._job_id = job_id
        self._lock: IO[str] | None = None

    @property
    def uri(self) -> str:
        return self._storage.uri

    def lock(self) -> None:
        """Own the directory until ``unlock`` or the end of the process; JobLockedError when another driver does."""
        if self._lock is not None:
            return
        if not isinstance(self._storage, LocalStorage):
            _log.warning(
                "Nothing keeps a second driver away from %s: its file system has no lock and no exclusive creation. "
                "Make sure that job %s is started once only; high availability on such storage needs ZooKeeper.",
                self.uri,
                self._job_id,
            )
            return
        self._lock = self._acquire(os.path.join(self.uri, _LOCK_FILE))

    @property
    def locked(self) -> bool:
        """True when something really keeps other drivers away: not on file systems without a lock."""
        return self._lock is not None

    def unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def next_attempt(self) -> int:
        """A number greater than that of every attempt before, of this driver or of another; durable on return."""
        numbers = sorted(int(entry.name) for entry in self._storage.list(_ATTEMPTS) if entry.name.isdecimal())
        number = numbers[-1] + 1 if numbers else 1
        content = json.dumps(_owner()).encode()
        while not self._storage.create_exclusive(f"{_ATTEMPTS}/{number}", content):
            number += 1
        for old in numbers[:-_ATTEMPTS_KEPT]:
            self._storage.delete(f"{_ATTEMPTS}/{old}")
        return number

    def __enter__(self) -> JobDirectory:
        self.lock()
        return self

    def __exit__(self, *exception: object) -> None:
        self.unlock()

    def _acquire(self, path: str) -> IO[str]:
        try:
            os.makedirs(self.uri, exist_ok=True)
            file = open(path, "a+", encoding="utf-8")  # noqa: SIM115 - it stays open while the lock is held
        except OSError as cause:
            raise StorageError(
                f"cannot use {self.uri} as the directory of job {self._job_id}: {cause}; "
                "set execution.checkpointing.dir to a directory that this user can write"
            ) from cause
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as cause:
            owner = _describe(file)
            file.close()
            raise JobLockedError(
                f"another driver runs job {self._job_id} in {self.uri} ({owner}). Stop it, wait for its end, or start "
                "this job under another job id."
            ) from cause
        file.seek(0)
        file.truncate()
        json.dump(_owner(), file)
        file.flush()
        return file


def _owner() -> dict[str, object]:
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {"pid": os.getpid(), "host": socket.gethostname(), "since": since}


def _describe(file: IO[str]) -> str:
    """The owner as the lock file tells; only for people, so whatever cannot be read is no error."""
    try:
        file.seek(0)
        owner = json.load(file)
        return f"process {owner['pid']} on {owner['host']} since {owner['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "its process is unknown"
