"""What the server asks of a job that runs in its driver."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from holdfast.checkpoint.snapshot_triggers import CheckpointKind
from holdfast.job.job import Job
from holdfast.state.handles import SavepointFormat

if TYPE_CHECKING:
    from holdfast.job.job_master import JobMaster


class Gateway(Protocol):
    """Any thread may call it. A call raises HoldfastError for what cannot be begun; what fails later is in the
    future."""

    @property
    def master(self) -> JobMaster: ...

    @property
    def job(self) -> Job: ...

    @property
    def job_id(self) -> str: ...

    @property
    def name(self) -> str: ...

    def cancel(self) -> None: ...

    def trigger_checkpoint(self, kind: CheckpointKind, /, *, trigger_id: str) -> Future[int]: ...

    def trigger_savepoint(
        self, directory: str | None, savepoint_format: SavepointFormat, cancel_job: bool, /, *, trigger_id: str
    ) -> Future[str]: ...

    def stop_with_savepoint(
        self, directory: str | None, drain: bool, savepoint_format: SavepointFormat, /, *, trigger_id: str
    ) -> Future[str]: ...

    def rescale(self, parallelism: int, /) -> Future[int]: ...


@dataclass(frozen=True)
class ServedJob:
    """A job of this driver. ``directories`` are those that requests about it may name."""

    gateway: Gateway
    application_id: str
    settings: Mapping[str, str]
    directories: tuple[str, ...]

    @property
    def job_id(self) -> str:
        return self.gateway.job_id
