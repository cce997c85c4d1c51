"""Which token opens what: one everything of the driver, and one for each job the requests about that job alone."""

from __future__ import annotations

import hmac
import secrets
import threading

_JOBS = "jobs"
_VERSION = "v1"


class AccessTokens:
    """``everything`` None: requests need no token. Any thread may call."""

    def __init__(self, everything: str | None) -> None:
        self.everything = everything
        self._of_jobs: dict[str, str] = {}
        self._lock = threading.Lock()

    @property
    def needed(self) -> bool:
        return self.everything is not None

    def of_job(self, job_id: str) -> str | None:
        """What is left beside the checkpoints of a job: worth nothing for other jobs, and when the driver is gone."""
        if not self.needed:
            return None
        with self._lock:
            return self._of_jobs.setdefault(job_id, secrets.token_urlsafe(32))

    def allow(self, given: bytes, path: str) -> bool:
        """Whether a request for ``path`` may bring this token."""
        with self._lock:
            job_token = self._of_jobs.get(_job_of(path))
        opening = [token for token in (self.everything, job_token) if token is not None]
        # All are compared, so that the time does not tell which one was meant.
        return any([hmac.compare_digest(given, token.encode()) for token in opening])


def _job_of(path: str) -> str:
    """The id of the job that a request is about; empty for one about something else."""
    parts = path.split("/")[1:]
    if parts[:1] == [_VERSION]:
        parts = parts[1:]
    return parts[1] if len(parts) > 1 and parts[0] == _JOBS else ""
