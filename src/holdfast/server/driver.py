"""The server of this driver, and the history of its jobs: one of each in a process, made with the first job."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from typing import TYPE_CHECKING

from holdfast.checkpoint.driver_record import DriverRecord
from holdfast.checkpoint.job_address import JobAddress
from holdfast.common.configuration import Configuration
from holdfast.errors import MissingExtraError
from holdfast.server.access_tokens import AccessTokens
from holdfast.server.archive import JobArchive
from holdfast.server.certificates import certificates_in
from holdfast.server.jobs_directory import JobsDirectory, RecordedJob, ServerRecord, new_driver_name
from holdfast.server.known_jobs import JobRegistry
from holdfast.server.last_seen import LastSeen, keep_lost_jobs
from holdfast.server.operations import Operations
from holdfast.server.requests import ServerState
from holdfast.server.served_job import ServedJob
from holdfast.server.settings import DRIVER_VARIABLE, ServerSettings, server_settings
from holdfast.server.token import obtain_token
from holdfast.server.views_job import job_ended

if TYPE_CHECKING:
    from holdfast.server.listener import Listener

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.1

_lock = threading.Lock()
_running: DriverServer | None = None


class DriverServer:
    """Serves the jobs that are published to it, and is found through the jobs directory, until ``close``."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._registry = JobRegistry(JobArchive(settings.history))
        self._operations = Operations(settings.store_duration_ms / 1_000)
        self._directory = JobsDirectory(settings.jobs_directory)
        self._directory.prepare()
        keep_lost_jobs(self._directory, JobArchive(settings.history))
        self.token = None if settings.token_file is None else obtain_token(settings.token_file)
        self._tokens = AccessTokens(self.token)
        tls = settings.listen.tls
        self._authority = None if tls is None else certificates_in(tls.authority)
        # Not left there for programs that this one may start: they are drivers of their own.
        driver = os.environ.pop(DRIVER_VARIABLE, "") or new_driver_name()
        self._listener = _listen(ServerState(settings, self._registry, self._operations), self._tokens, driver)
        self.url = self._listener.url
        self._record_lock = threading.Lock()
        self._record = ServerRecord(
            driver=driver,
            process=DriverRecord.of_this_process(),
            url=self.url,
            token_file=None if settings.token_file is None else str(settings.token_file),
            authority=tls.authority if tls else None,
        )
        self._directory.write(self._record)
        self._last_seen = LastSeen(self._directory.last_seen(self._record.driver))
        self._closed = threading.Event()
        threading.Thread(target=self._note_jobs, name="holdfast-last-seen", daemon=True).start()
        logger.info("The job server listens at %s", self.url)

    def publish(self, job: ServedJob) -> None:
        self._registry.add(job)
        with self._record_lock:
            self._record = self._record.with_job(RecordedJob(job.job_id, job.gateway.name), job.application_id)
            self._directory.write(self._record)
        self._last_seen.note([job])

    def address_of(self, job: ServedJob, driver_host: str | None) -> JobAddress:
        """What others need to find the server of a job. ``driver_host`` is the name by which executors find the
        driver: where the settings name no host, others find it by that, too.
        """
        listen = self._settings.listen
        return JobAddress(
            url=self.url if driver_host is None else self._listener.url_for(driver_host),
            driver=self._record.driver,
            process=self._record.process,
            job_id=job.job_id,
            job_name=job.gateway.name,
            application_id=job.application_id,
            loopback=listen.loopback,
            needs_token=self._tokens.needed,
            authority=self._authority,
        )

    def token_of(self, job: ServedJob) -> str | None:
        """Good for requests about this job alone; None where requests need no token."""
        return self._tokens.of_job(job.job_id)

    def _note_jobs(self) -> None:
        while not self._closed.wait(self._settings.history.interval_ms / 1_000):
            self._last_seen.note(self._registry.live())

    def page_address(self, with_token: bool) -> str:
        """For a browser. A fragment stays there: the token in it is not sent with the address."""
        return f"{self.url}/#token={self.token}" if with_token and self.token is not None else self.url

    def await_jobs(self) -> None:
        """Until no job runs any more."""
        while any(not job_ended(job.gateway.master.history) for job in self._registry.live()):
            time.sleep(_POLL_SECONDS)

    def close(self) -> None:
        """Wait a while for those who have not heard yet how their operation went, then end."""
        self._operations.wait_until_told(self._settings.linger_ms / 1_000)
        self._closed.set()
        self._directory.remove(self._record.driver)
        self._last_seen.remove()
        self._listener.close()


def driver_server(configuration: Configuration) -> DriverServer:
    """The server of this process; the first call starts it, with its configuration."""
    global _running
    with _lock:
        if _running is None:
            _running = DriverServer(server_settings(configuration))
            atexit.register(_running.close)
        return _running


def await_jobs() -> None:
    """Until no job of this driver runs any more."""
    if _running is not None:
        _running.await_jobs()


def _listen(state: ServerState, tokens: AccessTokens, driver: str) -> Listener:
    try:
        from holdfast.server.app import build_app
        from holdfast.server.listener import Listener
    except ModuleNotFoundError as error:
        package = (error.name or "holdfast").partition(".")[0]
        if package == "holdfast":
            raise
        raise MissingExtraError(package, "server", "The job server") from error
    return Listener(build_app(state, tokens, driver), state.settings.listen)
