"""What people and programs ask of a job that runs in this driver."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from holdfast.checkpoint.completed import CompletedCheckpoint
from holdfast.checkpoint.reasons import CheckpointFailureReason
from holdfast.checkpoint.savepoint_target import prepare_target
from holdfast.checkpoint.snapshot_triggers import CheckpointKind, SnapshotTrigger, TriggerQueue, new_trigger_id
from holdfast.errors import CheckpointError, HoldfastError
from holdfast.job.job import Job
from holdfast.job.job_master import JobMaster
from holdfast.job.rescaling import Rescaling
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
        self.master.cancel()

    def trigger_checkpoint(
        self,
        kind: CheckpointKind = CheckpointKind.CONFIGURED,
        outcome: Future[int] | None = None,
        trigger_id: str | None = None,
    ) -> Future[int]:
        """The id of a checkpoint that is taken now, beside the periodic ones."""
        trigger = SnapshotTrigger(kind=kind, trigger_id=trigger_id or new_trigger_id())
        told = _told(trigger, lambda completed: completed.checkpoint_id, outcome)
        if not self._refused(trigger):
            self._add(trigger)
        return told

    def trigger_savepoint(
        self,
        directory: str | None = None,
        savepoint_format: SavepointFormat = SavepointFormat.CANONICAL,
        cancel_job: bool = False,
        outcome: Future[str] | None = None,
        trigger_id: str | None = None,
    ) -> Future[str]:
        """The path of a savepoint; with ``cancel_job`` once the job is cancelled behind it."""
        trigger = SnapshotTrigger(
            SnapshotType.SAVEPOINT,
            trigger_id=trigger_id or new_trigger_id(),
            savepoint_format=savepoint_format,
            cancel_job=cancel_job,
        )
        return self._ask_for_savepoint(trigger, directory, outcome)

    def stop_with_savepoint(
        self,
        directory: str | None = None,
        drain: bool = False,
        savepoint_format: SavepointFormat = SavepointFormat.CANONICAL,
        outcome: Future[str] | None = None,
        trigger_id: str | None = None,
    ) -> Future[str]:
        """The path of the savepoint that the job ended with. When it fails, the job goes on."""
        trigger = SnapshotTrigger(
            SnapshotType.SYNC_SAVEPOINT,
            trigger_id=trigger_id or new_trigger_id(),
            savepoint_format=savepoint_format,
            drain=drain,
        )
        return self._ask_for_savepoint(trigger, directory, outcome)

    def rescale(self, parallelism: int) -> Future[int]:
        """Go on with another parallelism, behind a checkpoint; operators that set one of their own keep it. The new
        parallelism, when an attempt with it begins. ProgramError where the program cannot have it.
        """
        outcome: Future[int] = Future()
        refusal = self._refuse_to_rescale()
        if refusal is not None:
            outcome.set_exception(refusal)
            return outcome
        assert self.job.replan is not None
        try:
            job = self.job.replan(parallelism)
        except HoldfastError as error:
            outcome.set_exception(error)
            return outcome
        if job.parallelism == self.job.parallelism:
            outcome.set_result(job.parallelism)
        else:
            self._ask_to_rescale(Rescaling(job, outcome))
        return outcome

    def _ask_to_rescale(self, rescaling: Rescaling) -> None:
        control = self.master.control
        if not control.ask_to_rescale(rescaling):
            rescaling.fail(HoldfastError(f"Job {self.job_id} is being rescaled already: wait for that."))
        elif not self._triggers.is_open and control.take_rescaling() is rescaling:
            # It ended meanwhile, and nobody looks for what is asked any more.
            rescaling.fail(HoldfastError(f"Job {self.job_id} has ended, and was not rescaled."))

    def _refuse_to_rescale(self) -> HoldfastError | None:
        under_way = self.master.control.rescaling
        if under_way is not None:
            return HoldfastError(f"Job {self.job_id} is being rescaled to {under_way.parallelism}: wait for that.")
        if self.job.plan.batch:
            return HoldfastError(
                f"Job '{self.name}' ({self.job_id}) runs in BATCH mode, in which there are no checkpoints that it "
                "could go on from with another parallelism. Start it anew with that."
            )
        if self.job.replan is None or not self._triggers.is_open:
            return HoldfastError(f"Job '{self.name}' ({self.job_id}) is not running: start it with that parallelism.")
        return None

    def _target(self, directory: str | None) -> str:
        target = directory or self.job.checkpoint.savepoint_directory
        if target is None:
            raise CheckpointError(
                "No savepoint directory configured: give the savepoint a directory, or set "
                "execution.checkpointing.savepoint-dir."
            )
        return target

    def _ask_for_savepoint(
        self, trigger: SnapshotTrigger, directory: str | None, outcome: Future[str] | None
    ) -> Future[str]:
        target = self._target(directory)
        told = _told(trigger, lambda completed: completed.location, outcome)
        if self._refused(trigger):
            return told
        if not self._triggers.is_open:
            trigger.refuse(CheckpointFailureReason.NOT_ALL_REQUIRED_TASKS_RUNNING)
        else:
            prepare_target(trigger, target, self.job_id, self.job.checkpoint.timeout_ms / 1_000, self._add)
        return told

    def _refused(self, trigger: SnapshotTrigger) -> bool:
        if self.job.plan.batch:
            trigger.outcome.set_exception(
                CheckpointError(
                    f"Job '{self.name}' ({self.job_id}) runs in BATCH mode, in which there are no checkpoints and no "
                    "savepoints: it gives its results when its input has ended, or begins anew. Use "
                    "RuntimeExecutionMode.STREAMING for a job that can be stopped and go on."
                )
            )
        return self.job.plan.batch

    def _add(self, trigger: SnapshotTrigger) -> None:
        self._triggers.add(trigger)
        self.master.control.wake()

    @property
    def _triggers(self) -> TriggerQueue:
        return self.master.checkpoints.coordinator.triggers


def _told(
    trigger: SnapshotTrigger, answer: Callable[[CompletedCheckpoint], T], outcome: Future[T] | None
) -> Future[T]:
    """What whoever asked is told: a part of the outcome."""
    told: Future[T] = Future() if outcome is None else outcome

    def tell(completed: Future[CompletedCheckpoint]) -> None:
        error = completed.exception()
        if error is not None:
            told.set_exception(error)
        else:
            told.set_result(answer(completed.result()))

    trigger.outcome.add_done_callback(tell)
    return told
