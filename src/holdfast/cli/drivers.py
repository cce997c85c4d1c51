"""Finds drivers and jobs: through the jobs directory, or at an address that is given."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from operator import eq
from pathlib import Path
from typing import Any

from holdfast.cli.errors import CommandError
from holdfast.cli.job_places import Place
from holdfast.cli.rest_client import RestClient, job_path, server_url
from holdfast.common import rest_options
from holdfast.common.config_files import find_config_file, read_config_file
from holdfast.common.configuration import Configuration
from holdfast.common.settings_parser import zookeeper_settings
from holdfast.errors import StorageError
from holdfast.server.archive import JobArchive
from holdfast.server.jobs_directory import JobsDirectory, ServerRecord
from holdfast.server.last_seen import keep_lost_jobs
from holdfast.server.settings import history_settings, jobs_directory
from holdfast.server.token import read_token

#: States of a job in a driver that stands by.
_WAITING = ("CREATED", "INITIALIZING", "SUSPENDED")


@dataclass(frozen=True)
class HostPlace(Place):
    """The drivers of this host, and those that lead jobs by ZooKeeper. ``address`` is that of one job server, and then
    nothing else is looked at."""

    configuration: Configuration
    address: str | None = None

    @staticmethod
    def named(jobs_dir: str | None, address: str | None) -> HostPlace:
        """The place that the configuration file, if there is one, and the command line name."""
        file = find_config_file(os.environ, Path.cwd())
        configuration = read_config_file(file) if file is not None else Configuration()
        if jobs_dir is not None:
            configuration.set_string(rest_options.JOBS_DIRECTORY.key, jobs_dir)
        return HostPlace(configuration, address)

    @property
    def directory(self) -> Path:
        return jobs_directory(self.configuration, os.environ)

    def archive(self) -> JobArchive:
        return JobArchive(history_settings(self.configuration, os.environ))

    def records(self) -> list[ServerRecord]:
        directory = JobsDirectory(self.directory)
        keep_lost_jobs(directory, self.archive())
        return directory.living()

    def client_at_address(self) -> RestClient | None:
        return None if self.address is None else self._client(self.address)

    def _leaders(self, job_id: str | None = None) -> dict[str, str]:
        """The addresses of the drivers that lead jobs by ZooKeeper, perhaps on other hosts; of one job, or all."""
        zookeeper = zookeeper_settings(self.configuration)
        if zookeeper is None:
            return {}
        # Imported here: it needs an extra that most command lines do without.
        from holdfast.checkpoint.zookeeper.address import leader_address, leader_addresses

        try:
            if job_id is None:
                return leader_addresses(zookeeper)
            address = leader_address(zookeeper, job_id)
        except StorageError as error:
            # Drivers of this host may be found without it.
            print(error, file=sys.stderr)
            return {}
        return {} if address is None else {job_id: address}

    def _client(self, address: str) -> RestClient:
        told = self.configuration.get(rest_options.TOKEN_FILE)
        token_file = Path(told).expanduser() if told else self.directory / "token"
        authority = self.configuration.get(rest_options.TLS_AUTHORITY)
        return RestClient(server_url(address), read_token(token_file) if token_file.exists() else None, authority)

    def only_job(self) -> str | None:
        return None

    def checkpoint_statistics(self, job_id: str) -> dict[str, Any]:
        """From the driver of the job, or from the history of one that ended."""
        if self.address is None and not any(record.has(job_id) for record in self.records()):
            archived = self.archive().read(job_id)
            if archived is not None and "/checkpoints" in archived.resources:
                kept: dict[str, Any] = archived.resources["/checkpoints"]
                return kept
        told: dict[str, Any] = self.client_for(job_id).get(job_path(job_id, "/checkpoints"))
        return told

    def client_for(self, job_id: str) -> RestClient:
        at_address = self.client_at_address()
        if at_address is not None:
            return at_address
        here = [client_of(record) for record in self.records() if record.has(job_id)]
        leading = [self._client(address) for address in self._leaders(job_id).values()]
        drivers = [*_known_here(leading, here), *here]
        if drivers:
            return _leading(drivers, job_id)
        archived = self.archive().read(job_id)
        if archived is not None:
            raise CommandError(f"Job {job_id} has ended: it is {archived.status}.")
        raise CommandError(
            f"No driver in {self.directory} runs a job {job_id}. 'holdfast list' shows the jobs that run; a driver on "
            "another host is reached with -m HOST:PORT, or through its checkpoint directory with -c URI."
        )

    def jobs(self, application_id: str | None = None) -> Iterator[dict[str, Any]]:
        """Jobs of living drivers, and of the history where no application is given."""
        at_address = self.client_at_address()
        if at_address is not None:
            yield from at_address.get("/jobs/overview")["jobs"]
            return
        found: dict[str, dict[str, Any]] = {}
        for client, has in self._drivers(application_id):
            for job in _jobs_of(client):
                # Of several drivers of one job, all but one wait for it.
                if has(job["jid"]) and found.get(job["jid"], job)["state"] in (job["state"], *_WAITING):
                    found[job["jid"]] = job
        yield from found.values()
        if application_id is None:
            yield from (old.overview for old in self.archive().overviews() if old.job_id not in found)

    def _drivers(self, application_id: str | None) -> Iterator[tuple[RestClient, Callable[[str], bool]]]:
        """All that can be found, each with what tells whether a job is one of its own."""
        records = [each for each in self.records() if application_id in (None, each.application_id)]
        for record in records:
            yield client_of(record), record.has
        if application_id is None:
            known = {record.url for record in records}
            for job_id, address in self._leaders().items():
                if address not in known:
                    yield self._client(address), partial(eq, job_id)


def _jobs_of(client: RestClient) -> list[dict[str, Any]]:
    """None where the driver does not answer: others may."""
    try:
        jobs: list[dict[str, Any]] = client.get("/jobs/overview")["jobs"]
    except CommandError as error:
        print(error, file=sys.stderr)
        return []
    return jobs


def _known_here(leading: list[RestClient], here: list[RestClient]) -> list[RestClient]:
    """Leading drivers at the addresses of drivers of this host, whose tokens are known."""
    by_url = {client.url: client for client in here}
    return [by_url.get(client.url, client) for client in leading]


def _leading(drivers: list[RestClient], job_id: str) -> RestClient:
    """The driver that runs the job: of several, all others wait for it."""
    for driver in drivers[:-1]:
        try:
            if driver.get(job_path(job_id, "/status"))["status"] not in _WAITING:
                return driver
        except CommandError:
            continue
    return drivers[-1]


def client_of(record: ServerRecord) -> RestClient:
    token = read_token(Path(record.token_file)) if record.token_file is not None else None
    return RestClient(record.url, token, record.authority)
