"""What people and programs ask of a job that runs in this driver."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from holdfast.checkpoint.completed import CompletedCheckpoint
from holdfast.checkpoint.triggers import CheckpointKind, SnapshotTrigger
from holdfast.errors import CheckpointError
from holdfast.spark.job import Job
from holdfast.spark.job_master import JobMaster
from holdfast.state.handles import SavepointFormat, SnapshotType

T = TypeVar("T")


class JobGateway:
    """Any thread may call it. What takes time comes as a future, which has a CheckpointError when it failed."""

    def __init__(self, master: JobMaster) -> None:
        self.master = master

    @property
    def job(self) -> Job:
        return self.master.job

    @property
    def job_id(self) -> str:
        return self.job.facts.job_id

    @property
    def name(self) -> str:
        return self.job.facts.job_name

    def cancel(self) -> None:
        """Ask the job to end at the next boundary of an epoch, without a checkpoint."""
        self.master.control.cancel()

    def trigger_checkpoint(
        self, kind: CheckpointKind = CheckpointKind.CONFIGURED, outcome: Future[int] | None = None
    ) -> Future[int]:
        """The id of a checkpoint that is taken now, beside the periodic ones."""
        return self._ask(SnapshotTrigger(kind=kind), lambda completed: completed.checkpoint_id, outcome)

    def trigger_savepoint(
        self,
        directory: str | None = None,
        savepoint_format: SavepointFormat = SavepointFormat.CANONICAL,
        cancel_job: bool = False,
        outcome: Future[str] | None = None,
    ) -> Future[str]:
        """The path of a savepoint; with ``cancel_job`` once the job is cancelled behind it."""
        trigger = SnapshotTrigger(
            SnapshotType.SAVEPOINT,
            directory=self._target(directory),
            savepoint_format=savepoint_format,
            cancel_job=cancel_job,
        )
        return self._ask(trigger, lambda completed: completed.location, outcome)

    def stop_with_savepoint(
        self,
        directory: str | None = None,
        drain: bool = False,
        savepoint_format: SavepointFormat = SavepointFormat.CANONICAL,
        outcome: Future[str] | None = None,
    ) -> Future[str]:
        """The path of the savepoint that the job ended with. When it fails, the job goes on."""
        trigger = SnapshotTrigger(
            SnapshotType.SYNC_SAVEPOINT,
            directory=self._target(directory),
            savepoint_format=savepoint_format,
            drain=drain,
        )
        return self._ask(trigger, lambda completed: completed.location, outcome)

    def _target(self, directory: str | None) -> str:
        target = directory or self.job.checkpoint.savepoint_directory
        if target is None:
            raise CheckpointError(
                "No savepoint directory configured: give the savepoint a directory, or set "
                "execution.checkpointing.savepoint-dir."
            )
        return target

    def _ask(
        self, trigger: SnapshotTrigger, answer: Callable[[CompletedCheckpoint], T], outcome: Future[T] | None
    ) -> Future[T]:
        told: Future[T] = Future() if outcome is None else outcome
        if self.job.plan.batch:
            told.set_exception(
                CheckpointError(
                    f"Job '{self.name}' ({self.job_id}) runs in BATCH mode, in which there are no checkpoints and no "
                    "savepoints: it gives its results when its input has ended, or begins anew. Use "
                    "RuntimeExecutionMode.STREAMING for a job that can be stopped and go on."
                )
            )
            return told

        def tell(completed: Future[CompletedCheckpoint]) -> None:
            error = completed.exception()
            if error is not None:
                told.set_exception(error)
            else:
                told.set_result(answer(completed.result()))

        trigger.outcome.add_done_callback(tell)
        self.master.checkpoints.coordinator.triggers.add(trigger)
        self.master.control.wake()
        return told
