"""The folder of a job: who drives it, how many attempts it has had, and how it ended."""

from __future__ import annotations

import time

import msgspec

from holdfast.checkpoint.completed import CompletedCheckpoint
from holdfast.checkpoint.driver_record import DriverRecord
from holdfast.checkpoint.job_lock import JobLock
from holdfast.errors import ConfigurationError, JobEndedError
from holdfast.state.handles import CheckpointMetadata
from holdfast.state.snapshot_files import ATTEMPTS_FOLDER
from holdfast.storage.filesystem import Storage

_ATTEMPTS_KEPT = 16
_ENDED = "ended"
_CLAIMED = "claimed"


class JobEnd(msgspec.Struct, frozen=True):
    """How a job ended that must not begin again."""

    status: str
    at: str
    #: What it ended with, and goes on from; its id tells it from others wherever it was copied to.
    savepoint: str | None = None
    savepoint_id: int | None = None


class JobDirectory:
    """``<uri>/<job id>``, to be locked by one driver at a time. Used on the driver only."""

    def __init__(self, uri: str, job_id: str) -> None:
        if not job_id or "/" in job_id or job_id.startswith("."):
            raise ConfigurationError(f"the job id is {job_id!r}; expected a name that can be a folder")
        self._storage = Storage.for_uri(uri).child(job_id)
        self._job_id = job_id
        self._lock = JobLock.of(self._storage, job_id)

    @property
    def uri(self) -> str:
        return self._storage.uri

    def lock(self) -> None:
        """Own the directory until ``unlock`` or the end of the process; JobLockedError when another driver does."""
        self._lock.acquire()

    def unlock(self) -> None:
        self._lock.release()

    def next_attempt(self) -> int:
        """A number greater than that of every attempt before, of this driver or of another; durable on return."""
        numbers = sorted(int(entry.name) for entry in self._storage.list(ATTEMPTS_FOLDER) if entry.name.isdecimal())
        number = numbers[-1] + 1 if numbers else 1
        content = DriverRecord.of_this_process().encode()
        while not self._storage.create_exclusive(f"{ATTEMPTS_FOLDER}/{number}", content):
            number += 1
        for old in numbers[:-_ATTEMPTS_KEPT]:
            self._storage.delete(f"{ATTEMPTS_FOLDER}/{old}")
        return number

    def record_claim(self, snapshot: str | None) -> None:
        """Record, durably, that the job owns the snapshot that it started from; None: it owns none."""
        if snapshot is None:
            self._storage.delete(_CLAIMED)
        else:
            self._storage.write_atomic(_CLAIMED, snapshot.encode())

    def claimed_snapshot(self) -> str | None:
        return self._storage.read(_CLAIMED).decode() if self._storage.exists(_CLAIMED) else None

    def record_end(self, status: str, savepoint: CompletedCheckpoint | None = None) -> None:
        """Record, durably, that the job has ended, and that only ``savepoint`` is left to go on from."""
        end = JobEnd(
            status,
            time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            savepoint.location if savepoint is not None else None,
            savepoint.checkpoint_id if savepoint is not None else None,
        )
        self._storage.write_atomic(_ENDED, msgspec.json.encode(end))

    def has_ended(self) -> bool:
        """Whether a run of this job has ended, so that it goes on from the savepoint that it ended with, or not at
        all.
        """
        return self._storage.exists(_ENDED)

    def check_may_go_on(self, restored: CheckpointMetadata | None = None) -> None:
        """JobEndedError for a job that has ended, since another run would publish its results again; unless
        ``restored`` is the savepoint that it ended with.
        """
        end = self._read_end()
        if end is None or end.savepoint_id is None:
            told = "it is not known how" if end is None else f"{end.status} at {end.at}"
            raise JobEndedError(
                f"job {self._job_id} has ended before ({told}; {self._storage.location(_ENDED)} says so), and "
                "no checkpoint of it is left: another run would begin at the beginning of its sources and publish its "
                "results again. Start it under another holdfast.job-id. To repeat this one, remove the results that it "
                f"published, delete {self.uri} and start again."
            )
        if restored is None or (restored.job_id, restored.checkpoint_id) != (self._job_id, end.savepoint_id):
            raise JobEndedError(
                f"job {self._job_id} was stopped with a savepoint ({end.status} at {end.at}; "
                f"{self._storage.location(_ENDED)} says so). Go on from it with execution.state-recovery.path: "
                f"{end.savepoint}, or wherever it was copied to; or start another job under another holdfast.job-id."
            )

    def forget_end(self) -> None:
        """The job goes on."""
        self._storage.delete(_ENDED)

    def _read_end(self) -> JobEnd | None:
        try:
            return msgspec.json.decode(self._storage.read(_ENDED), type=JobEnd)
        except (msgspec.MsgspecError, ValueError):
            return None

    def __enter__(self) -> JobDirectory:
        self.lock()
        return self

    def __exit__(self, *exception: object) -> None:
        self.unlock()
