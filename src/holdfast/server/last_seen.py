"""What is known of jobs whose driver dies without a word: a driver notes, every few seconds, what it would tell of its
jobs if they ended now. Whoever finds that the driver is gone moves the notes to the history.
"""

from __future__ import annotations

import logging
import shutil
import time
from pathlib import Path
from typing import Any

import msgspec

from holdfast.checkpoint.driver_record import DriverRecord
from holdfast.server import views_job
from holdfast.server.archive import ArchivedJob, JobArchive
from holdfast.server.archiving import archive_job
from holdfast.server.jobs_directory import JobsDirectory
from holdfast.server.models_job import ExceptionInfo
from holdfast.server.served_job import ServedJob
from holdfast.server.settings import HistorySettings

logger = logging.getLogger(__name__)

_STATE = "FAILED"


class LastSeen:
    """The notes of one driver, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._notes = JobArchive(HistorySettings(str(folder), retained=1_000))

    def note(self, jobs: list[ServedJob]) -> None:
        """All that run. Those that have ended are in the history."""
        for job in jobs:
            if views_job.job_ended(job.gateway.master.history):
                self._notes.remove(job.job_id)
            else:
                archive_job(self._notes, job)

    def read(self, job_id: str) -> ArchivedJob | None:
        return self._notes.read(job_id)

    def remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def keep_lost_jobs(directory: JobsDirectory, archive: JobArchive) -> None:
    """Move what dead drivers noted to the history, where it is listed with the jobs that failed. A job that another
    driver has, or that ended later in another one, is not lost.
    """
    dead = directory.dead()
    if not dead:
        return
    living = directory.living()
    for record in dead:
        notes = LastSeen(directory.last_seen(record.driver))
        for job in record.jobs:
            seen, ended = notes.read(job.job_id), archive.read(job.job_id)
            if seen is None or any(other.has(job.job_id) for other in living):
                continue
            if ended is None or ended.overview["last-modification"] < seen.overview["last-modification"]:
                overview, resources = _lost(seen, record.process)
                archive.write(job.job_id, overview, resources)
                logger.warning("The driver of job %s (%s) is gone", job.job_id, record.process.describe())
        notes.remove()
        directory.remove(record.driver)


def _lost(seen: ArchivedJob, process: DriverRecord) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is told of a job that failed when it was seen for the last time, as far as that is known."""
    now = round(1_000 * time.time())
    ended = {"state": _STATE, "end-time": now, "last-modification": now}
    resources = {**seen.resources, "/status": {"status": _STATE}}
    details = dict(resources[""])
    resources[""] = {**details, "state": _STATE, "end-time": now, "now": now}
    told = ExceptionInfo(
        "holdfast.errors.JobExecutionError",
        f"The driver of the job ({process.describe()}) is gone: it was killed, or its host went down. Started again "
        "under the same holdfast.job-id, the program goes on from the last checkpoint in its checkpoint directory.",
        now, {}, None, None, None, [],
    )
    exceptions = resources["/exceptions"]["exceptionHistory"]
    entries = [msgspec.to_builtins(told), *exceptions["entries"]]
    resources["/exceptions"] = {"exceptionHistory": {**exceptions, "entries": entries}}
    return {**seen.overview, **{key: value for key, value in ended.items() if key in seen.overview}}, resources
