"""What is left of a job that ended: the answers of its REST resources as they were then, in one file."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

import msgspec

from holdfast.errors import StorageError
from holdfast.server.settings import HistorySettings
from holdfast.storage.filesystem import Storage

logger = logging.getLogger(__name__)

_VERSION = 1
_SUFFIX = ".json"


class ArchivedJob(msgspec.Struct, frozen=True):
    """``resources`` are answers by the part of their path behind the job's id; that of the job itself is empty."""

    version: int
    job_id: str
    overview: dict[str, Any]
    resources: dict[str, Any]

    @property
    def status(self) -> str:
        return str(self.overview["state"])


class JobArchive:
    """Files of ended jobs. No call raises for a file that is damaged or unreachable: jobs do not end by that."""

    def __init__(self, settings: HistorySettings) -> None:
        self._storage = Storage.for_uri(settings.directory)
        self._retained = settings.retained

    def write(self, job_id: str, overview: Mapping[str, Any], resources: Mapping[str, Any]) -> None:
        archived = ArchivedJob(_VERSION, job_id, dict(overview), dict(resources))
        try:
            self._storage.write_atomic(_name(job_id), msgspec.json.encode(archived))
            self._drop_old()
        except StorageError as error:
            logger.warning("The history of job %s could not be kept: %s", job_id, error)

    def read(self, job_id: str) -> ArchivedJob | None:
        try:
            archived = msgspec.json.decode(self._storage.read(_name(job_id)), type=ArchivedJob)
        except (StorageError, msgspec.MsgspecError):
            return None
        return archived if archived.version == _VERSION else None

    def job_ids(self) -> list[str]:
        """Of all ended jobs, the oldest first."""
        try:
            entries = self._storage.list()
        except StorageError as error:
            logger.warning("The history cannot be read: %s", error)
            return []
        files = [entry for entry in entries if not entry.is_dir and entry.name.endswith(_SUFFIX)]
        return [unquote(e.name.removesuffix(_SUFFIX)) for e in sorted(files, key=lambda e: (e.modified_ms, e.name))]

    def all(self) -> list[ArchivedJob]:
        return [archived for job_id in self.job_ids() if (archived := self.read(job_id)) is not None]

    def _drop_old(self) -> None:
        for job_id in self.job_ids()[: -self._retained]:
            self._storage.delete(_name(job_id))


def _name(job_id: str) -> str:
    return quote(job_id, safe="") + _SUFFIX
