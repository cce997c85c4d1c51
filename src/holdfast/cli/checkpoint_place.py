"""Finds the drivers of jobs through what they left beside the jobs' checkpoints, from any host."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from holdfast.checkpoint.driver_record import DriverFate
from holdfast.checkpoint.job_address import AddressFiles, JobAddress
from holdfast.checkpoint.job_directory import JobDirectory
from holdfast.cli.errors import CommandError
from holdfast.cli.job_places import Place
from holdfast.cli.rest_client import RestClient, job_path, server_url
from holdfast.errors import StorageError
from holdfast.state.snapshot_files import ATTEMPTS_FOLDER
from holdfast.storage.filesystem import Storage

_AS_IT_IS = ("jid", "name", "schedulerType", "start-time", "end-time", "duration", "state", "pending-operators")


@dataclass(frozen=True)
class CheckpointPlace(Place):
    """``uri`` is the checkpoint directory of jobs, or the folder of one job in it. ``address`` is another way to the
    server that the driver named: through a forwarded port, for instance."""

    uri: str
    address: str | None = None

    def jobs(self, application_id: str | None = None) -> Iterator[dict[str, Any]]:
        left = self._left()
        if not left:
            print(self._nothing_left(), file=sys.stderr)
        for address in left.values():
            if application_id in (None, address.application_id):
                try:
                    yield overview_of(self._client(address).get(job_path(address.job_id)))
                except CommandError as error:
                    print(error, file=sys.stderr)

    def client_for(self, job_id: str) -> RestClient:
        address = self._read(job_id) if job_id in self._folders else None
        if address is None:
            raise self._no_driver(job_id)
        return self._client(address)

    def only_job(self) -> str | None:
        left = self._left()
        if not left:
            raise CommandError(self._nothing_left())
        answering = dict(left) if len(left) == 1 else {job: it for job, it in left.items() if self._answers(it)}
        if len(answering) != 1:
            found = "\n".join(f"  {job} : {address.job_name}" for job, address in (answering or left).items())
            told = f"{len(answering)} jobs run" if answering else f"No driver of these {len(left)} jobs answers"
            raise CommandError(f"{told} in {self.uri}; expected one. Name the job:\n{found}")
        return next(iter(answering))

    def client_at_address(self) -> RestClient | None:
        return None

    def checkpoint_statistics(self, job_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.client_for(job_id).get(job_path(job_id, "/checkpoints"))
        return found

    # -- what is there

    @cached_property
    def _storage(self) -> Storage:
        return Storage.for_uri(self.uri)

    @cached_property
    def _folders(self) -> dict[str, str]:
        """The folder of each thing that may be a job, relative to the storage."""
        entries = [entry.name for entry in self._storage.list() if entry.is_dir]
        if ATTEMPTS_FOLDER in entries:
            return {self._storage.uri.rpartition("/")[2]: ""}
        if not entries:
            raise CommandError(
                f"There is nothing in {self.uri}; expected the checkpoints of jobs. Give -c what the job was started "
                "with as execution.checkpointing.dir, or the folder of the job in it"
            )
        return {name: name for name in entries}

    def _files(self, job_id: str) -> AddressFiles:
        return AddressFiles(self._storage, self._folders[job_id])

    def _read(self, job_id: str) -> JobAddress | None:
        files = self._files(job_id)
        try:
            address = files.read()
        except StorageError as error:
            raise CommandError(
                f"Where the driver of job {job_id} is cannot be read: {error}. On a local file system only the user of "
                "the driver may: run the command as that one"
            ) from error
        if address is not None and address.job_id != job_id:
            raise CommandError(
                f"{files.location} is of job {address.job_id}; expected job {job_id}, whose folder it is in. It was "
                "copied there: delete it"
            )
        return address

    def _left(self) -> dict[str, JobAddress]:
        """The address of every job that has one. One that cannot be read hides no other."""
        found: dict[str, JobAddress] = {}
        for job_id in self._folders:
            try:
                address = self._read(job_id)
            except CommandError as error:
                print(error, file=sys.stderr)
                continue
            if address is not None:
                found[job_id] = address
        return found

    # -- the driver behind an address

    def _answers(self, address: JobAddress) -> bool:
        try:
            self._client(address)
        except CommandError as error:
            print(error, file=sys.stderr)
            return False
        return True

    def _client(self, address: JobAddress) -> RestClient:
        """To the driver that left the address, and to no other that may listen there now."""
        who = f"The driver of job {address.job_id} ({address.process.describe()}, Spark application "
        who += f"'{address.application_id}')"
        if address.process.fate() is DriverFate.DEAD:
            raise CommandError(f"{who} is gone: it was killed, and left its address behind. {_START_AGAIN}")
        if self.address is None and address.loopback and not address.process.on_this_host():
            raise CommandError(f"{who} {_loopback_advice(address)}")
        url = address.url if self.address is None else server_url(self.address)
        client = RestClient(url, self._token(address), certificates=address.authority)
        try:
            named = client.driver_name()
        except CommandError as error:
            raise CommandError(
                f"{error}\n{who} left this address in {self._files(address.job_id).location}: either it died, or this "
                f"host does not reach it. {_START_AGAIN} If it lives, see that nothing between the hosts blocks the "
                "port, or forward it and give the forwarded one with -m HOST:PORT"
            ) from None
        if named != address.driver:
            found = f"driver {named}" if named else "no driver of Holdfast"
            raise CommandError(
                f"{who} is not at {url} any more: {found} answers there; expected {address.driver}. {_START_AGAIN}"
            )
        return client

    def _token(self, address: JobAddress) -> str | None:
        if not address.needs_token:
            return None
        files = self._files(address.job_id)
        try:
            return files.read_token()
        except StorageError as error:
            raise CommandError(
                f"The token of job {address.job_id} cannot be read: {error}. Expected what its driver left in "
                f"{files.token_location}: run the command as a user who may read it"
            ) from error

    # -- why there is none

    def _nothing_left(self) -> str:
        return (
            f"None of the {len(self._folders)} folders in {self.uri} has the address of a driver: {_NO_ADDRESS}"
        )

    def _no_driver(self, job_id: str) -> CommandError:
        if job_id not in self._folders:
            known = ", ".join(self._left()) or "none"
            return CommandError(f"There is no job {job_id} in {self.uri}. Jobs with a driver there: {known}")
        directory = JobDirectory(self._storage.location(self._folders[job_id]).rpartition("/")[0], job_id)
        with suppress(StorageError):
            end = directory.read_end()
            if end is not None:
                return CommandError(f"Job {job_id} has ended: it is {end.status or 'not known how'}, since {end.at}.")
        return CommandError(f"No driver has left its address in {directory.uri}: {_NO_ADDRESS}")


_START_AGAIN = "A program that is started again with the same job id goes on from the last checkpoint."
_NO_ADDRESS = (
    "the jobs have ended, or their drivers have no job server, which is on with 'holdfast run' and where rest.port or "
    "rest.enabled: true is set."
)


def _loopback_advice(address: JobAddress) -> str:
    port = address.url.rpartition(":")[2]
    return (
        f"listens on its own host alone ({address.url}), and this is another one. Either forward a port to it (ssh -L "
        f"{port}:127.0.0.1:{port} {address.process.host}, or kubectl port-forward POD {port}) and add -m "
        f"127.0.0.1:{port}; or start the program with rest.bind-address: 0.0.0.0, and with TLS "
        "(security.ssl.rest.enabled), since the token would travel in the clear"
    )


def overview_of(details: dict[str, Any]) -> dict[str, Any]:
    """The entry of ``/jobs/overview`` for a job of which ``/jobs/:jobid`` is known: the token of a job opens that
    alone."""
    tasks: Counter[str] = Counter()
    for vertex in details["vertices"]:
        tasks.update({state.lower(): number for state, number in vertex["tasks"].items()})
    return {
        **{key: details[key] for key in _AS_IT_IS},
        "jobType": details["job-type"],
        "last-modification": max(details["timestamps"].values()),
        "tasks": {"total": tasks.total(), **tasks},
    }
