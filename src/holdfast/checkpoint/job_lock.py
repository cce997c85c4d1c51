"""One driver at a time for a job's directory: a lock of the kernel where there is one, else a record."""

from __future__ import annotations

import fcntl
import logging
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import IO

from holdfast.checkpoint.driver_record import DriverFate, DriverRecord
from holdfast.errors import JobLockedError, LeadershipLostError, StorageError
from holdfast.storage.filesystem import Storage
from holdfast.storage.local import LocalStorage

_log = logging.getLogger(__name__)
_LOCK_FILE = "lock"
#: Longer than a driver takes from finding no record to having written its own.
_SETTLE_SECONDS = 1.0
_UNKNOWN = "its process is unknown"


class JobLock(ABC):
    """Of one job's directory. ``lock`` in it names the driver that holds the lock."""

    @staticmethod
    def of(storage: Storage, job_id: str) -> JobLock:
        return KernelLock(storage.uri, job_id) if isinstance(storage, LocalStorage) else RecordLock(storage, job_id)

    @abstractmethod
    def acquire(self) -> None:
        """Hold it until ``release``; JobLockedError when another driver does, or may do. Held already: nothing."""

    @abstractmethod
    def release(self) -> None:
        """Let go of it. Nothing happens when it is not held."""

    @abstractmethod
    def check(self) -> None:
        """LeadershipLostError when another driver has the lock now, or nobody knows who has."""


class KernelLock(JobLock):
    """``flock(2)`` on an open file: the kernel frees it when the driver dies, in whatever way."""

    def __init__(self, directory: str, job_id: str) -> None:
        self._directory = directory
        self._job_id = job_id
        self._file: IO[bytes] | None = None

    def acquire(self) -> None:
        if self._file is not None:
            return
        try:
            os.makedirs(self._directory, exist_ok=True)
            file = open(os.path.join(self._directory, _LOCK_FILE), "a+b")  # noqa: SIM115 - open while it is held
        except OSError as cause:
            raise StorageError(
                f"cannot use {self._directory} as the directory of job {self._job_id}: {cause}; "
                "set execution.checkpointing.dir to a directory that this user can write"
            ) from cause
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as cause:
            file.seek(0)
            owner = DriverRecord.decode(file.read())
            file.close()
            raise _locked(self._job_id, self._directory, owner) from cause
        file.truncate(0)
        file.write(DriverRecord.of_this_process().encode())
        file.flush()
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def check(self) -> None:
        """Only this process can let go of it: one that is stopped keeps it, and no other driver can go on."""


class RecordLock(JobLock):
    """For file systems that lock nothing: a record of the driver, which a driver that ends in order takes away.

    One that was killed leaves its record. It is passed over when that process is known to be gone, which only its own
    host can know; else a person has to say so. Two drivers that begin in the same moment both write a record: each
    looks again a moment later, and the one whose record is not there gives way.
    """

    def __init__(self, storage: Storage, job_id: str, sleep: Callable[[float], None] = time.sleep) -> None:
        self._storage = storage
        self._job_id = job_id
        self._sleep = sleep
        self._held: DriverRecord | None = None

    def acquire(self) -> None:
        if self._held is not None:
            return
        if self._storage.exists(_LOCK_FILE):
            self._judge(self._owner())
        own = DriverRecord.of_this_process()
        self._storage.write_atomic(_LOCK_FILE, own.encode())
        self._sleep(_SETTLE_SECONDS)
        owner = self._owner()
        if owner != own:
            raise _locked(self._job_id, self._storage.uri, owner)
        self._held = own

    def release(self) -> None:
        held, self._held = self._held, None
        if held is None:
            return
        try:
            if self._owner() == held:
                self._storage.delete(_LOCK_FILE)
        except StorageError as error:
            _log.warning("The lock of job %s stays behind: %s", self._job_id, error)

    def check(self) -> None:
        """A person may have taken the record of a driver away that only seemed to be gone."""
        owner = self._owner() if self._storage.exists(_LOCK_FILE) else None
        if self._held is None or owner != self._held:
            raise LeadershipLostError(
                f"the lock of job {self._job_id} in {self._storage.uri} was taken from this driver: it is now that of "
                f"{owner.describe() if owner else 'nobody'}"
            )

    def _owner(self) -> DriverRecord | None:
        return DriverRecord.decode(self._storage.read(_LOCK_FILE))

    def _judge(self, owner: DriverRecord | None) -> None:
        """Pass over the record of a driver that is gone; JobLockedError for every other."""
        fate = DriverFate.UNKNOWN if owner is None else owner.fate()
        if fate is DriverFate.ALIVE:
            raise _locked(self._job_id, self._storage.uri, owner)
        if owner is None or fate is DriverFate.UNKNOWN:
            raise JobLockedError(
                f"a driver holds job {self._job_id} in {self._storage.uri} ({owner.describe() if owner else _UNKNOWN}),"
                " and nothing here tells whether it still runs. If it does, stop it or start this job under another "
                f"job id. If it is gone, delete {self._storage.location(_LOCK_FILE)} and start again."
            )
        _log.warning(
            "The driver of job %s that held %s is gone (%s): this one goes on",
            self._job_id,
            self._storage.uri,
            owner.describe(),
        )


def _locked(job_id: str, directory: str, owner: DriverRecord | None) -> JobLockedError:
    told = owner.describe() if owner is not None else _UNKNOWN
    return JobLockedError(
        f"another driver runs job {job_id} in {directory} ({told}). Stop it, wait for its end, or start this job "
        "under another job id."
    )
