"""The folder of a job: who drives it, how many attempts it has had, and how it ended."""

from __future__ import annotations

from holdfast.checkpoint.driver_record import DriverRecord
from holdfast.checkpoint.end_record import EndRecord, FileEndRecord
from holdfast.checkpoint.job_end import JobEnd
from holdfast.checkpoint.job_lock import JobLock
from holdfast.errors import ConfigurationError, JobEndedError, JobLockedError
from holdfast.state.snapshot_files import ATTEMPTS_FOLDER
from holdfast.storage.filesystem import Storage

_ATTEMPTS_KEPT = 16
_CLAIMED = "claimed"
_ADDRESS = "address"
_KEEPER = "high-availability"


class JobDirectory:
    """``<uri>/<job id>``, to be locked by one driver at a time. Used on the driver only."""

    def __init__(self, uri: str, job_id: str) -> None:
        if not job_id or "/" in job_id or job_id.startswith("."):
            raise ConfigurationError(f"the job id is {job_id!r}; expected a name that can be a folder")
        self._storage = Storage.for_uri(uri).child(job_id)
        self._job_id = job_id
        self._lock = JobLock.of(self._storage, job_id)
        self.end_record: EndRecord = FileEndRecord(self._storage)

    @property
    def job_id(self) -> str:
        return self._job_id

    @property
    def uri(self) -> str:
        return self._storage.uri

    def lock(self) -> None:
        """Own the directory until ``unlock`` or the end of the process; JobLockedError when another driver does, and
        when drivers of this job are chosen elsewhere.
        """
        self._lock.acquire()
        try:
            if self._storage.exists(_KEEPER):
                keeper = self._storage.read(_KEEPER).decode()
                raise JobLockedError(
                    f"who drives job {self._job_id} in {self.uri} is decided in {keeper}, and this driver does not ask "
                    "there. Set high-availability.type and the options that belong to it as its other drivers have "
                    "them. To keep the job in its directory alone from now on, stop all its drivers, delete "
                    f"{self._storage.location(_KEEPER)} and start again."
                )
        except BaseException:
            self._lock.release()
            raise

    def unlock(self) -> None:
        self._lock.release()

    def check_locked(self) -> None:
        """LeadershipLostError when the lock was taken away from this driver."""
        self._lock.check()

    def next_attempt(self) -> int:
        """A number greater than that of every attempt before, of this driver or of another; durable on return."""
        number = self.last_attempt() + 1
        while not self.record_attempt(number):
            number += 1
        return number

    def last_attempt(self) -> int:
        """The greatest number that is recorded, or 0."""
        return max(self._attempts(), default=0)

    def record_attempt(self, number: int) -> bool:
        """Record that an attempt begins, which tells those before it to stop; False when it had begun before."""
        content = DriverRecord.of_this_process().encode()
        if not self._storage.create_exclusive(f"{ATTEMPTS_FOLDER}/{number}", content):
            return False
        for old in sorted(self._attempts())[: -_ATTEMPTS_KEPT - 1]:
            self._storage.delete(f"{ATTEMPTS_FOLDER}/{old}")
        return True

    def _attempts(self) -> list[int]:
        return [int(entry.name) for entry in self._storage.list(ATTEMPTS_FOLDER) if entry.name.isdecimal()]

    def write_address(self, address: str | None) -> None:
        """Where the server of the driver that holds the lock listens; None when it has none."""
        if address is not None:
            self._storage.write_atomic(_ADDRESS, address.encode())
        elif self._storage.exists(_ADDRESS):
            self._storage.delete(_ADDRESS)

    def read_address(self) -> str | None:
        return self._storage.read(_ADDRESS).decode() if self._storage.exists(_ADDRESS) else None

    def leave_to(self, keeper: str) -> None:
        """Who drives this job is decided elsewhere from now on, in ``keeper``: the lock of the directory is not enough.

        JobLockedError while a driver holds that lock, and when the job was left to another keeper before.
        """
        if self._storage.exists(_KEEPER):
            found = self._storage.read(_KEEPER).decode()
            if found != keeper:
                raise JobLockedError(
                    f"job {self._job_id} in {self.uri} is kept in {found}, and this driver is set to {keeper}. Give "
                    "all drivers of the job the same high-availability options. If no driver uses the other place any "
                    f"more, delete {self._storage.location(_KEEPER)}."
                )
            return
        self._lock.acquire()
        try:
            self._storage.write_atomic(_KEEPER, keeper.encode())
        finally:
            self._lock.release()

    def record_claim(self, snapshot: str | None) -> None:
        """Record, durably, that the job owns the snapshot that it started from; None: it owns none."""
        if snapshot is None:
            self._storage.delete(_CLAIMED)
        else:
            self._storage.write_atomic(_CLAIMED, snapshot.encode())

    def claimed_snapshot(self) -> str | None:
        return self._storage.read(_CLAIMED).decode() if self._storage.exists(_CLAIMED) else None

    def record_end(self, end: JobEnd) -> None:
        """Record, durably, that the job has ended, and that only the savepoint named there is left to go on from."""
        self.end_record.write(end.encode())

    def read_end(self, newest_checkpoint: int | None = None) -> JobEnd | None:
        """How a run of this job ended; None when none did, or the job went on since and has ``newest_checkpoint``."""
        content = self.end_record.read()
        end = JobEnd.decode(content) if content is not None else None
        return end if end is not None and end.still_holds(newest_checkpoint) else None

    def refusal(self, end: JobEnd) -> JobEndedError:
        """For a driver that would begin the job again: that would publish its results again."""
        told = f"{end.status} at {end.at}" if end.status else "it is not known how"
        if end.savepoint_id is None:
            return JobEndedError(
                f"job {self._job_id} has ended before ({told}; {self.end_record.location} says so), and "
                "no checkpoint of it is left: another run would begin at the beginning of its sources and publish its "
                "results again. Start it under another holdfast.job-id. To repeat this one, remove the results that it "
                f"published, delete {self.uri} and start again."
            )
        return JobEndedError(
            f"job {self._job_id} was stopped with a savepoint ({told}; {self.end_record.location} says so). Go on from "
            f"it with execution.state-recovery.path: {end.savepoint}, or wherever it was copied to; or start another "
            "job under another holdfast.job-id."
        )

    def forget_end(self) -> None:
        """The job has gone on."""
        self.end_record.delete()

    def __enter__(self) -> JobDirectory:
        self.lock()
        return self

    def __exit__(self, *exception: object) -> None:
        self.unlock()
