"""Where commands look for jobs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from holdfast.cli.errors import UsageError
from holdfast.cli.rest_client import RestClient


class Place(ABC):
    """A way to the drivers of jobs. CommandError says why one cannot be found."""

    @abstractmethod
    def jobs(self, application_id: str | None = None) -> Iterator[dict[str, Any]]:
        """The overview of every job that can be found; of those of one Spark application alone where one is given."""

    @abstractmethod
    def client_for(self, job_id: str) -> RestClient:
        """To the driver of a job."""

    @abstractmethod
    def only_job(self) -> str | None:
        """The job that is meant when none is named; None where one has to be named."""

    @abstractmethod
    def client_at_address(self) -> RestClient | None:
        """To the server that the command line names; None when it names none."""

    @abstractmethod
    def checkpoint_statistics(self, job_id: str) -> dict[str, Any]:
        """As the server tells them."""

    def job_named(self, job: str | None, message: str) -> str:
        """``message`` is for one who has named none, and has to."""
        found = job if job is not None else self.only_job()
        if found is None:
            raise UsageError(message)
        return found
