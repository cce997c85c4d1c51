"""What a handler gets of a request, and how it refuses one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.job.execution_graph import ExecutionVertex
from holdfast.server.archive import ArchivedJob
from holdfast.server.known_jobs import JobRegistry
from holdfast.server.operations import Operations
from holdfast.server.served_job import ServedJob
from holdfast.server.settings import ServerSettings
from holdfast.server.views_job import job_ended


class RestError(Exception):
    """A request that is not answered as it wished."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class FromHistory(Exception):
    """The job ended in another driver: the answer is the one that the history holds."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer


@dataclass(frozen=True)
class ServerState:
    """What all requests share."""

    settings: ServerSettings
    registry: JobRegistry
    operations: Operations


@dataclass(frozen=True)
class Call:
    """One request. ``body`` is of the type that its resource declares."""

    server: ServerState
    #: Behind the job's id.
    subpath: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None

    @property
    def job_id(self) -> str:
        return self.parameters["job_id"]

    def any_job(self) -> ServedJob | ArchivedJob:
        found = self.server.registry.find(self.job_id)
        if found is None:
            raise RestError(404, f"Job {self.job_id} not found")
        return found

    def job(self) -> ServedJob:
        """A job of this driver, to read from. Where only the history knows it, its answer is taken from there."""
        found = self.any_job()
        if isinstance(found, ServedJob):
            return found
        if self.subpath not in found.resources:
            raise RestError(404, f"The history of job {self.job_id} has no '{self.subpath}'")
        raise FromHistory(found.resources[self.subpath])

    def running_job(self) -> ServedJob:
        """A job of which something can be asked."""
        found = self.any_job()
        if isinstance(found, ServedJob) and not job_ended(found.gateway.master.history):
            return found
        status = found.status if isinstance(found, ArchivedJob) else found.gateway.master.history.status.name
        raise RestError(409, f"Job {self.job_id} has ended: it is {status}")

    def vertex(self, job: ServedJob) -> ExecutionVertex:
        wanted = self.parameters["vertex_id"]
        for vertex in job.gateway.master.execution_graph.vertices:
            if vertex.vertex_id == wanted:
                return vertex
        raise RestError(404, f"Job {self.job_id} has no vertex {wanted}")
