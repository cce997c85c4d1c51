"""What is left of a job that ended: the answers of its REST resources as they were then, in one file."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import quote, unquote

import msgspec

from holdfast.errors import StorageError
from holdfast.server.settings import HistorySettings
from holdfast.storage.filesystem import Storage

logger = logging.getLogger(__name__)

_VERSION = 1
_SUFFIX = ".json"


class ArchivedOverview(msgspec.Struct, frozen=True):
    """What lists of jobs need of a file."""

    version: int
    job_id: str
    overview: dict[str, Any]

    @property
    def status(self) -> str:
        return str(self.overview["state"])


class ArchivedJob(ArchivedOverview, frozen=True):
    """``resources`` are answers by the part of their path behind the job's id; that of the job itself is empty."""

    resources: dict[str, Any]


T = TypeVar("T", bound=ArchivedOverview)


class JobArchive:
    """Files of ended jobs. No call raises for a file that is damaged or unreachable: jobs do not end by that."""

    def __init__(self, settings: HistorySettings) -> None:
        self._storage = Storage.for_uri(settings.directory)
        self._retained = settings.retained
        #: By job, with the time of its file: a page that shows all jobs asks for them every few seconds.
        self._seen: dict[str, tuple[int, ArchivedOverview]] = {}

    def write(self, job_id: str, overview: Mapping[str, Any], resources: Mapping[str, Any]) -> None:
        archived = ArchivedJob(_VERSION, job_id, dict(overview), dict(resources))
        try:
            self._storage.write_atomic(_name(job_id), msgspec.json.encode(archived))
            self._drop_old()
        except StorageError as error:
            logger.warning("The history of job %s could not be kept: %s", job_id, error)

    def remove(self, job_id: str) -> None:
        with suppress(StorageError):
            self._storage.delete(_name(job_id))

    def read(self, job_id: str) -> ArchivedJob | None:
        return self._decode(job_id, ArchivedJob)

    def overviews(self) -> list[ArchivedOverview]:
        """Overviews of all ended jobs, the oldest first."""
        seen: dict[str, tuple[int, ArchivedOverview]] = {}
        for job_id, modified in self._files():
            known = self._seen.get(job_id)
            if known is not None and known[0] == modified:
                seen[job_id] = known
            elif (overview := self._decode(job_id, ArchivedOverview)) is not None:
                seen[job_id] = (modified, overview)
        self._seen = seen
        return [overview for _, overview in seen.values()]

    def _files(self) -> list[tuple[str, int]]:
        """Jobs and the times of their files, the oldest first."""
        try:
            entries = self._storage.list()
        except StorageError as error:
            logger.warning("The history cannot be read: %s", error)
            return []
        files = [entry for entry in entries if not entry.is_dir and entry.name.endswith(_SUFFIX)]
        files.sort(key=lambda entry: (entry.modified_ms, entry.name))
        return [(unquote(entry.name.removesuffix(_SUFFIX)), entry.modified_ms) for entry in files]

    def _decode(self, job_id: str, kind: type[T]) -> T | None:
        try:
            archived = msgspec.json.decode(self._storage.read(_name(job_id)), type=kind)
        except (StorageError, msgspec.MsgspecError):
            return None
        return archived if archived.version == _VERSION else None

    def _drop_old(self) -> None:
        for job_id, _ in self._files()[: -self._retained]:
            self._storage.delete(_name(job_id))


def _name(job_id: str) -> str:
    return quote(job_id, safe="") + _SUFFIX
