"""A directory of this user that tells which drivers live, so that the command line finds the driver of a job.

::

    drivers/<driver>.json    one record per driver: its process, the address of its server, its jobs
    last-seen/<driver>/      what it would tell of its jobs if they ended now
    logs/<driver>.log        what a detached driver prints
    token                    what requests to the servers must bring
    history/                 what is left of jobs that ended
"""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

import msgspec

from holdfast.checkpoint.driver_record import DriverFate, DriverRecord
from holdfast.errors import ConfigurationError

_KEPT_LOGS = 100


class RecordedJob(msgspec.Struct, frozen=True):
    job_id: str
    name: str


class ServerRecord(msgspec.Struct, frozen=True):
    """One driver. ``token_file`` is None where requests need no token."""

    driver: str
    process: DriverRecord
    url: str
    token_file: str | None = None
    #: Certificates that vouch for the server, where it speaks HTTPS.
    authority: str | None = None
    application_id: str = ""
    jobs: tuple[RecordedJob, ...] = ()

    def with_job(self, job: RecordedJob, application_id: str) -> ServerRecord:
        others = tuple(known for known in self.jobs if known.job_id != job.job_id)
        return msgspec.structs.replace(self, jobs=(*others, job), application_id=application_id)

    def has(self, job_id: str) -> bool:
        return any(job.job_id == job_id for job in self.jobs)


class JobsDirectory:
    """Records appear whole. One whose process is gone stays until somebody has kept what is known of its jobs."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def _drivers(self) -> Path:
        return self._root / "drivers"

    def prepare(self) -> None:
        """Make the directories; others than the owner cannot look into them."""
        try:
            for directory in (self._root, self._drivers, self._root / "logs"):
                directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise ConfigurationError(
                f"The jobs directory {self._root} cannot be made: {error}. Name one that this user can write with "
                "'holdfast.jobs-dir' or HOLDFAST_JOBS_DIR; a container may have no home"
            ) from error

    def log_file(self, driver: str) -> Path:
        return self._root / "logs" / f"{driver}.log"

    def last_seen(self, driver: str) -> Path:
        return self._root / "last-seen" / driver

    def drop_old_logs(self) -> None:
        """Keep the newest, and those of drivers that live."""
        living = {self.log_file(record.driver) for record in self.living()}
        logs = sorted((self._root / "logs").glob("*.log"), key=lambda path: path.stat().st_mtime)
        for path in logs[:-_KEPT_LOGS]:
            if path not in living:
                path.unlink(missing_ok=True)

    def write(self, record: ServerRecord) -> None:
        self.prepare()
        draft = self._drivers / f".{record.driver}.{secrets.token_hex(4)}"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(record)))
        draft.replace(self._path(record.driver))

    def remove(self, driver: str) -> None:
        self._path(driver).unlink(missing_ok=True)

    def read(self, driver: str) -> ServerRecord | None:
        return self._decode(self._path(driver))

    def living(self) -> list[ServerRecord]:
        """All drivers that live, or may live: of one on another host nothing here can tell."""
        return [record for record in self._records() if record.process.fate() is not DriverFate.DEAD]

    def dead(self) -> list[ServerRecord]:
        """All drivers that are known to be gone, and left their record."""
        return [record for record in self._records() if record.process.fate() is DriverFate.DEAD]

    def _records(self) -> list[ServerRecord]:
        self._check_own()
        found = [self._decode(path) for path in sorted(self._drivers.glob("*.json"))]
        return [record for record in found if record is not None]

    def _check_own(self) -> None:
        """A record says where the token is sent to: nobody else may write one."""
        with suppress(FileNotFoundError):
            status = self._drivers.stat()
            if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise ConfigurationError(
                    f"Others than this user can write to {self._drivers} (mode {stat.S_IMODE(status.st_mode):04o}); "
                    "expected a directory of this user's own. Choose another one with HOLDFAST_JOBS_DIR, or 'chmod "
                    "700' it"
                )

    def _path(self, driver: str) -> Path:
        return self._drivers / f"{driver}.json"

    @staticmethod
    def _decode(path: Path) -> ServerRecord | None:
        """None for a record that has gone meanwhile, or that another version wrote."""
        with suppress(OSError, msgspec.MsgspecError):
            return msgspec.json.decode(path.read_bytes(), type=ServerRecord)
        return None


def new_driver_name() -> str:
    return secrets.token_hex(8)
