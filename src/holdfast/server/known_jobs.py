"""The jobs that a server knows: those that run, or ran, in its driver, and those that the history holds."""

from __future__ import annotations

import threading
from typing import Any

import msgspec

from holdfast.server import views_job
from holdfast.server.archive import ArchivedJob, JobArchive
from holdfast.server.served_job import ServedJob


class JobRegistry:
    """A job of this driver hides an earlier one of the same id. Any thread may call."""

    def __init__(self, archive: JobArchive) -> None:
        self._archive = archive
        self._jobs: dict[str, ServedJob] = {}
        self._lock = threading.Lock()

    def add(self, job: ServedJob) -> None:
        with self._lock:
            self._jobs[job.job_id] = job

    def live(self) -> list[ServedJob]:
        with self._lock:
            return list(self._jobs.values())

    def find(self, job_id: str) -> ServedJob | ArchivedJob | None:
        with self._lock:
            job = self._jobs.get(job_id)
        return job if job is not None else self._archive.read(job_id)

    def overviews(self) -> list[dict[str, Any]]:
        """Overviews of all jobs."""
        live = self.live()
        own = {job.job_id for job in live}
        return [
            *(msgspec.to_builtins(views_job.overview(job)) for job in live),
            *(archived.overview for archived in self._archive.overviews() if archived.job_id not in own),
        ]

    def directories(self) -> tuple[str, ...]:
        """All that requests about any job of this driver may name."""
        return tuple(dict.fromkeys(directory for job in self.live() for directory in job.directories))
