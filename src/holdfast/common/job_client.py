"""PyFlink's handle of a running job."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.checkpoint.snapshot_triggers import CheckpointKind
from holdfast.common.completable_future import CompletableFuture
from holdfast.common.job_execution_result import JobExecutionResult
from holdfast.common.job_id import JobID
from holdfast.common.job_status import JobStatus
from holdfast.errors import HoldfastError
from holdfast.state.handles import SavepointFormat

if TYPE_CHECKING:
    from holdfast.checkpoint.statistics import CheckpointStatsTracker
    from holdfast.job.execution_graph import ExecutionGraph
    from holdfast.job.job import JobHistory
    from holdfast.job.running_job import RunningJob


class JobClient:
    """Asks a job that runs in this process, and tells it to end."""

    def __init__(self, job: RunningJob) -> None:
        self._job = job

    def get_job_id(self) -> JobID:
        return JobID(self._job.job_id)

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        return CompletableFuture.completed(JobStatus[self._job.master.history.status.name])

    def is_running(self) -> bool:
        return self._job.running

    def cancel(self) -> CompletableFuture[None]:
        """Ask the job to end at the next boundary of an epoch, without a checkpoint. Done when it has ended."""
        ended: CompletableFuture[None] = CompletableFuture()
        self._job.master.cancel()
        self._job.on_end(lambda _: ended.set_result(None))
        return ended

    def trigger_savepoint(
        self, savepoint_directory: str | None = None, format_type: SavepointFormat = SavepointFormat.CANONICAL
    ) -> CompletableFuture[str]:
        """The path of a savepoint, in ``execution.checkpointing.savepoint-dir`` unless a directory is given."""
        told: CompletableFuture[str] = CompletableFuture()
        self._job.gateway.trigger_savepoint(savepoint_directory, format_type, outcome=told)
        return told

    def stop_with_savepoint(
        self,
        advance_to_end_of_event_time: bool,
        savepoint_directory: str | None = None,
        format_type: SavepointFormat = SavepointFormat.CANONICAL,
    ) -> CompletableFuture[str]:
        """End the job with a savepoint, which the future has the path of once it has ended. When the savepoint fails,
        the job goes on. With ``advance_to_end_of_event_time`` event time comes to its end first: all event-time timers
        fire and functions finish.
        """
        told: CompletableFuture[str] = CompletableFuture()
        self._job.gateway.stop_with_savepoint(savepoint_directory, advance_to_end_of_event_time, format_type, told)
        return told

    def trigger_checkpoint(self, kind: CheckpointKind = CheckpointKind.CONFIGURED) -> CompletableFuture[int]:
        """The id of a checkpoint that is taken now, beside the periodic ones."""
        told: CompletableFuture[int] = CompletableFuture()
        self._job.gateway.trigger_checkpoint(kind, told)
        return told

    def on_end(self, callback: Callable[[BaseException | None], None]) -> None:
        """Called with the job's error, or None, when it has ended."""
        self._job.on_end(callback)

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """Done when the job has ended. JobExecutionError when it failed."""
        ended: CompletableFuture[JobExecutionResult] = CompletableFuture()

        def settle(error: BaseException | None) -> None:
            if error is not None:
                ended.set_exception(error)
            else:
                master = self._job.master
                ended.set_result(JobExecutionResult(self._job.job_id, master.history, master.execution_graph.metrics))

        self._job.on_end(settle)
        return ended

    def get_accumulators(self) -> CompletableFuture[dict[str, object]]:
        """The accumulators of the present attempt so far, up to its last epoch."""
        told: CompletableFuture[dict[str, object]] = CompletableFuture()
        try:
            told.set_result(dict(self._job.master.execution_graph.metrics.accumulator_results()))
        except HoldfastError as error:
            told.set_exception(error)
        return told

    def get_history(self) -> JobHistory:
        """Epochs, failures and warnings so far."""
        return self._job.master.history

    def get_execution_graph(self) -> ExecutionGraph:
        """Vertices and subtasks with their states and metrics."""
        return self._job.master.execution_graph

    def get_checkpoint_statistics(self) -> CheckpointStatsTracker:
        return self._job.master.checkpoints.coordinator.statistics
