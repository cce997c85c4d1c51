"""The folder of a job: who drives it, how many attempts it has had, and how it ended."""

from __future__ import annotations

import logging
import time

from holdfast.checkpoint.attempt_files import AttemptFiles
from holdfast.checkpoint.driver_record import DriverRecord
from holdfast.checkpoint.end_record import EndRecord, FileEndRecord
from holdfast.checkpoint.job_address import AddressFiles
from holdfast.checkpoint.job_end import JobEnd
from holdfast.checkpoint.job_lock import JobLock
from holdfast.checkpoint.lease import OvertakenCheckpoints, Pause
from holdfast.errors import ConfigurationError, JobEndedError, JobLockedError
from holdfast.storage.filesystem import Storage
from holdfast.types.settings import LeaseSettings

_log = logging.getLogger(__name__)

_CLAIMED = "claimed"
_KEEPER = "high-availability"


class JobDirectory:
    """``<uri>/<job id>``, to be locked by one driver at a time. Used on the driver only."""

    def __init__(self, uri: str, job_id: str, lease: LeaseSettings | None = None) -> None:
        if not job_id or "/" in job_id or job_id.startswith("."):
            raise ConfigurationError(f"the job id is {job_id!r}; expected a name that can be a folder")
        self._storage = Storage.for_uri(uri).child(job_id)
        self._job_id = job_id
        self._lock = JobLock(self._storage, job_id, lease or LeaseSettings())
        self._attempts = AttemptFiles(self._storage)
        self.end_record: EndRecord = FileEndRecord(self._storage)
        self.address = AddressFiles(self._storage)

    @property
    def job_id(self) -> str:
        return self._job_id

    @property
    def uri(self) -> str:
        return self._storage.uri

    def lock(self, pause: Pause | None = None) -> None:
        """Own the directory until ``unlock`` or the end of the process; JobLockedError when another driver does, and
        when drivers of this job are chosen elsewhere. Without ``pause`` no lease is waited for.
        """
        # Ahead of the lock too: the number that it takes would stop uploads of the attempt that runs.
        self._refuse_if_left()
        self._lock.acquire(pause)
        try:
            self._refuse_if_left()
        except BaseException:
            self._lock.release()
            raise

    def _refuse_if_left(self) -> None:
        if self._storage.exists(_KEEPER):
            keeper = self._storage.read(_KEEPER).decode()
            raise JobLockedError(
                f"who drives job {self._job_id} in {self.uri} is decided in {keeper}, and this driver does not ask "
                "there. Set high-availability.type and the options that belong to it as its other drivers have "
                "them. To keep the job in its directory alone from now on, stop all its drivers, delete "
                f"{self._storage.location(_KEEPER)} and start again."
            )

    def unlock(self) -> None:
        self._lock.release()

    def check_locked(self) -> None:
        """LeadershipLostError when the lock was taken away from this driver."""
        self._lock.check()

    @property
    def in_doubt(self) -> bool:
        """Whether others may take this driver for gone; LeadershipLostError when one did."""
        return self._lock.lease.in_doubt

    def next_attempt(self) -> int:
        """A number greater than that of every attempt before, of this driver or of another; durable on return. Only
        whoever has the lock gets one; LeadershipLostError for others.
        """
        return self._lock.lease.next_attempt()

    def begin_from(self, checkpoint_id: int) -> None:
        """Record, durably, which checkpoint the attempt of this driver begins from; 0 for none of the job's own."""
        self._lock.lease.begin_from(checkpoint_id)

    def last_attempt(self) -> int:
        """The greatest number that is recorded, or 0."""
        return self._attempts.last()

    def record_attempt(self, number: int) -> bool:
        """Record an attempt whose number was drawn elsewhere, which tells those before it to stop; False when it had
        begun before.
        """
        return self._attempts.create(number, DriverRecord.of_this_process().encode())

    def leave_to(self, keeper: str, pause: Pause = time.sleep) -> None:
        """Who drives this job is decided elsewhere from now on, in ``keeper``: the lock of the directory is not enough.
        The lease of a driver that may be gone is waited for through ``pause``.

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
        self._lock.acquire(pause)
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
        """How a run of this job ended; None when none did, when the job went on since and has ``newest_checkpoint``,
        and when its driver recorded that after another one had gone on with the job.
        """
        end = self._recorded_end()
        if end is None or self._is_overtaken(end) or not end.still_holds(newest_checkpoint):
            return None
        return end

    def forget_overtaken_end(self) -> None:
        """For the driver that leads the job: what tells that an end does not count goes with time."""
        end = self._recorded_end()
        if end is not None and self._is_overtaken(end):
            _log.warning(
                "The end of job %s (%s at %s) does not count and is removed: when attempt %s recorded it, a later one "
                "had gone on with the job",
                self._job_id,
                end.status,
                end.at,
                end.attempt,
            )
            self.forget_end()

    def _recorded_end(self) -> JobEnd | None:
        content = self.end_record.read()
        return JobEnd.decode(content) if content is not None else None

    def _is_overtaken(self, end: JobEnd) -> bool:
        if end.attempt is None:
            return False
        return end.is_overtaken(OvertakenCheckpoints(self._storage).begun_behind(end.attempt))

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
        """Waits for the lease of a driver that may be gone: who comes for a moment would else be refused for ever."""
        self.lock(time.sleep)
        return self

    def __exit__(self, *exception: object) -> None:
        self.unlock()
