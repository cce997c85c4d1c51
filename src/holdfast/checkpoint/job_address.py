"""Where the driver of a job can be asked, left beside the job's checkpoints: whoever reaches those finds the driver.

::

    <checkpoint dir>/<job id>/server/address    the record, without anything secret
    <checkpoint dir>/<job id>/server/token      what requests about this job must bring

On a local file system only the driver's user can look into the folder. Elsewhere whoever may read the checkpoints may
read the token, and control the job.
"""

from __future__ import annotations

import logging
import threading

import msgspec

from holdfast.checkpoint.driver_record import DriverRecord
from holdfast.errors import StorageError
from holdfast.storage.filesystem import Storage

_log = logging.getLogger(__name__)

_FOLDER = "server"


class JobAddress(msgspec.Struct, frozen=True):
    """The record. That it is there does not say that the driver lives: one that was killed leaves it behind."""

    url: str
    #: How the server names itself in every answer: another process may have its port by now.
    driver: str
    process: DriverRecord
    job_id: str
    job_name: str = ""
    application_id: str = ""
    #: Only the driver's own host reaches the server.
    loopback: bool = False
    needs_token: bool = True
    #: Certificates (PEM) that vouch for the server, where it speaks HTTPS.
    authority: str | None = None
    #: The attempt that runs; 0 before the first of this driver.
    attempt: int = 0
    version: int = 1


class AddressFiles:
    """The record and the token of one job. ``job`` is its folder in ``storage``; empty when that is its folder."""

    def __init__(self, storage: Storage, job: str = "") -> None:
        self._storage = storage
        folder = f"{job}/{_FOLDER}" if job else _FOLDER
        self._address = f"{folder}/address"
        self._token = f"{folder}/token"

    @property
    def location(self) -> str:
        return self._storage.location(self._address)

    @property
    def token_location(self) -> str:
        return self._storage.location(self._token)

    def write(self, address: JobAddress, token: str | None) -> None:
        """The token comes first: whoever sees the record finds the token that belongs to it."""
        if token is None:
            self._storage.delete(self._token)
        else:
            self._storage.write_private(self._token, token.encode())
        self._storage.write_private(self._address, msgspec.json.encode(address))

    def read(self) -> JobAddress | None:
        """None when no driver left one. StorageError when it cannot be read."""
        if not self._storage.exists(self._address):
            return None
        try:
            return msgspec.json.decode(self._storage.read(self._address), type=JobAddress)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise StorageError(
                f"{self.location} is not the address of a driver: {error}; expected what a driver of this version "
                "writes. Delete it: the next driver of the job writes a new one"
            ) from error

    def read_token(self) -> str:
        return self._storage.read(self._token).decode().strip()

    def remove(self) -> None:
        self._storage.delete(self._address)
        self._storage.delete(self._token)


class AddressNotice:
    """Leaves the address of this driver beside the checkpoints for as long as it leads the job. Any thread may call.

    A storage that fails costs the notice and not the job: it is logged.
    """

    def __init__(self, files: AddressFiles) -> None:
        self._files = files
        self._address: JobAddress | None = None
        self._token: str | None = None
        self._attempt = 0
        self._leads = False
        self._lock = threading.Lock()

    def publish(self, address: JobAddress, token: str | None) -> None:
        """Shown now, if this driver leads, else when it does."""
        with self._lock:
            self._address, self._token = address, token
            if self._leads:
                self._write()

    def show(self) -> None:
        """This driver leads from now on. What one before it left is replaced, or removed if this one has no server."""
        with self._lock:
            self._leads = True
            self._write()

    def begin_attempt(self, attempt: int) -> None:
        with self._lock:
            self._attempt = attempt
            if self._leads and self._address is not None:
                self._write()

    def hide(self) -> None:
        """This driver leads no longer. What another one has left since stays."""
        with self._lock:
            leads, self._leads = self._leads, False
            if not leads or self._address is None:
                return
            try:
                left = self._files.read()
                if left is not None and left.driver == self._address.driver:
                    self._files.remove()
            except StorageError as error:
                _log.warning("The address of this driver stays behind: %s", error)

    def _write(self) -> None:
        try:
            if self._address is None:
                self._files.remove()
            else:
                self._files.write(msgspec.structs.replace(self._address, attempt=self._attempt), self._token)
        except StorageError as error:
            _log.warning("Other hosts do not find this driver through its checkpoints: %s", error)
