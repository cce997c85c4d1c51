"""One driver at a time for a job's directory: by a lease everywhere, and by a lock of the kernel where there is one.

The lease decides. What the file ``lock`` adds:

- On a local file system it is locked by ``flock(2)``, which goes with its driver: the next one need not wait for the
  lease of a driver that died on the same host, in a container or not, and one that hangs keeps its job.
- Elsewhere it is a record, for drivers of a version that knows no leases; a record of such a driver is respected.
"""

from __future__ import annotations

import fcntl
import logging
import os
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import IO

from holdfast.checkpoint.driver_record import DriverFate, DriverRecord
from holdfast.checkpoint.lease import DriverLease, Pause
from holdfast.errors import JobLockedError, LeadershipLostError, StorageError
from holdfast.state.epoch_log import boot_id
from holdfast.storage.filesystem import Storage
from holdfast.storage.local import LocalStorage
from holdfast.types.settings import LeaseSettings

_log = logging.getLogger(__name__)
_LOCK_FILE = "lock"
_UNKNOWN = "its process is unknown"


class JobLock:
    """The lock of one job's directory. ``lease`` tells the driver's number; see there."""

    def __init__(self, storage: Storage, job_id: str, settings: LeaseSettings) -> None:
        self.lease = DriverLease(storage, job_id, settings)
        self._file = LockFile.of(storage, job_id)

    def acquire(self, pause: Pause | None) -> None:
        """Hold it until ``release``; JobLockedError when another driver does, or may do. Held already: nothing.

        A driver of which nothing is known here is watched through ``pause`` until its lease has run out.
        """
        if self.lease.held:
            return
        own = DriverRecord.of_this_process(leased=True)
        self._file.enter(own)
        try:
            self.lease.acquire(own, pause, self._file.knows_gone)
            self._file.settle(own)
        except BaseException:
            self.lease.release()
            self._file.leave()
            raise

    def release(self) -> None:
        """Let go of it. Nothing happens when it is not held."""
        self.lease.release()
        self._file.leave()

    def check(self) -> None:
        """LeadershipLostError when another driver has the lock now, or nobody knows who has."""
        self._file.check()
        self.lease.check()


class LockFile(ABC):
    """``lock`` in the directory names the driver that holds it."""

    @staticmethod
    def of(storage: Storage, job_id: str) -> LockFile:
        return KernelLock(storage.uri, job_id) if isinstance(storage, LocalStorage) else LockRecord(storage, job_id)

    @abstractmethod
    def enter(self, own: DriverRecord) -> None:
        """Before the lease is looked at; JobLockedError when the file says enough."""

    @abstractmethod
    def settle(self, own: DriverRecord) -> None:
        """The lease is that of this driver: make the file its own."""

    @abstractmethod
    def knows_gone(self, driver: DriverRecord) -> bool:
        """Whether the driver of a lease is known to be gone. That its process lives says nothing: it may have failed to
        end its lease, and whoever has the job shows so within one beat.
        """

    @abstractmethod
    def leave(self) -> None:
        """Let go of the file. Nothing happens when it is not held."""

    @abstractmethod
    def check(self) -> None:
        """LeadershipLostError when the file is not that of this driver."""


class KernelLock(LockFile):
    """``flock(2)`` on an open file: the kernel frees it when the driver dies, in whatever way."""

    def __init__(self, directory: str, job_id: str) -> None:
        self._directory = directory
        self._job_id = job_id
        self._path = os.path.join(directory, _LOCK_FILE)
        self._file: IO[bytes] | None = None

    def enter(self, own: DriverRecord) -> None:
        file = self._open()
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as cause:
            file.seek(0)
            owner = DriverRecord.decode(file.read())
            file.close()
            # The server of a shared file system may keep the lock of a host that is gone: there the lease decides.
            if owner is None or not owner.leased or owner.boot == boot_id():
                raise _locked(self._job_id, self._directory, owner) from cause
            return
        file.truncate(0)
        file.write(own.encode())
        file.flush()
        self._file = file

    def settle(self, own: DriverRecord) -> None:
        if self._file is not None:
            return
        with suppress(FileNotFoundError):
            os.unlink(self._path)
        self.enter(own)
        if self._file is None:
            raise _locked(self._job_id, self._directory, None)

    def knows_gone(self, driver: DriverRecord) -> bool:
        """The lock is free on the host of that driver, so it is gone, unless it lives and its lock file was removed."""
        fate = driver.fate()
        if fate is DriverFate.UNKNOWN and self._file is not None and driver.boot and driver.boot == boot_id():
            return True
        return fate is DriverFate.DEAD

    def leave(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def check(self) -> None:
        """The lock is on the file that was opened: whoever removes that gives others a new one to lock."""
        if self._file is None:
            raise LeadershipLostError(f"this driver does not hold the lock of job {self._job_id}")
        try:
            is_held = os.path.samestat(os.stat(self._path), os.fstat(self._file.fileno()))
        except FileNotFoundError:
            is_held = False
        except OSError as cause:
            raise StorageError(f"cannot look at {self._path}, the lock of job {self._job_id}: {cause}") from cause
        if not is_held:
            raise LeadershipLostError(
                f"the lock of job {self._job_id} was taken from this driver: {self._path} is not the file that it "
                "locked"
            )

    def _open(self) -> IO[bytes]:
        try:
            os.makedirs(self._directory, exist_ok=True)
            return open(self._path, "a+b")
        except OSError as cause:
            raise StorageError(
                f"cannot use {self._directory} as the directory of job {self._job_id}: {cause}; "
                "set execution.checkpointing.dir to a directory that this user can write"
            ) from cause


class LockRecord(LockFile):
    """A record in place of a lock, for file systems that lock nothing. Of a driver that has a lease it says nothing
    more.

    A driver of a version without leases that was killed leaves its record. It is passed over when that process is known
    to be gone, which only its own host can know; else a person has to say so.
    """

    def __init__(self, storage: Storage, job_id: str) -> None:
        self._storage = storage
        self._job_id = job_id
        self._held: DriverRecord | None = None

    def enter(self, own: DriverRecord) -> None:
        if not self._storage.exists(_LOCK_FILE):
            return
        owner = self._owner()
        if owner is not None and owner.leased:
            return
        fate = DriverFate.UNKNOWN if owner is None else owner.fate()
        if fate is DriverFate.ALIVE:
            raise _locked(self._job_id, self._storage.uri, owner)
        if owner is None or fate is DriverFate.UNKNOWN:
            raise JobLockedError(
                f"a driver without a lease holds job {self._job_id} in {self._storage.uri} "
                f"({owner.describe() if owner else _UNKNOWN}), and nothing here tells whether it still runs. If it "
                "does, stop it or start this job under another job id. If it is gone, delete "
                f"{self._storage.location(_LOCK_FILE)} and start again."
            )
        _log.warning(
            "The driver of job %s that held %s is gone (%s): this one goes on",
            self._job_id,
            self._storage.uri,
            owner.describe(),
        )

    def settle(self, own: DriverRecord) -> None:
        self._storage.write_atomic(_LOCK_FILE, own.encode())
        self._held = own

    def knows_gone(self, driver: DriverRecord) -> bool:
        return driver.fate() is DriverFate.DEAD

    def leave(self) -> None:
        held, self._held = self._held, None
        if held is None:
            return
        try:
            if self._owner() == held:
                self._storage.delete(_LOCK_FILE)
        except StorageError as error:
            _log.warning("The lock of job %s stays behind: %s", self._job_id, error)

    def check(self) -> None:
        """The lease decides."""

    def _owner(self) -> DriverRecord | None:
        return DriverRecord.decode(self._storage.read(_LOCK_FILE))


def _locked(job_id: str, directory: str, owner: DriverRecord | None) -> JobLockedError:
    told = owner.describe() if owner is not None else _UNKNOWN
    return JobLockedError(
        f"another driver runs job {job_id} in {directory} ({told}). Stop it, wait for its end, or start this job "
        "under another job id."
    )
