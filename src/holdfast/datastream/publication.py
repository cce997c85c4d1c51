"""Lets others know of a job that was submitted: the job server, the command line and the history."""

from __future__ import annotations

import os
import sys

from holdfast.common.configuration import Configuration
from holdfast.common.run_settings import RUN_VARIABLE, SUBMITTED
from holdfast.job.running_job import RunningJob
from holdfast.server.archive import JobArchive
from holdfast.server.archiving import archive_job
from holdfast.server.driver import DriverServer, driver_server
from holdfast.server.served_job import ServedJob
from holdfast.server.settings import directories_of, history_enabled, history_settings, server_enabled


class Publication:
    """What the configuration asks for. Without a server and a history it does nothing."""

    def __init__(self, configuration: Configuration, server: DriverServer | None, archive: JobArchive | None) -> None:
        self._configuration = configuration
        self._server = server
        self._archive = archive

    def publish(self, running: RunningJob) -> None:
        job = ServedJob(
            running.gateway,
            running.application_id,
            self._configuration.to_dict(),
            directories_of(self._configuration),
        )
        if self._server is not None:
            self._server.publish(job)
            address = self._server.address_of(job, running.driver_host)
            running.master.checkpoints.leadership.publish_address(address, self._server.token_of(job))
        if RUN_VARIABLE in os.environ:
            print(f"{SUBMITTED}{job.job_id}", flush=True)
            if self._server is not None:
                print(f"Job server: {self._server.page_address(sys.stderr.isatty())}", file=sys.stderr, flush=True)
        if self._archive is not None:
            archive = self._archive
            running.on_end(lambda _: archive_job(archive, job))


def publication_for(configuration: Configuration) -> Publication:
    """Starts the server of this driver where it is wanted and does not run yet."""
    server = driver_server(configuration) if server_enabled(configuration, os.environ) else None
    kept = history_enabled(configuration, os.environ)
    archive = JobArchive(history_settings(configuration, os.environ)) if kept else None
    return Publication(configuration, server, archive)
