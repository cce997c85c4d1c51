"""PyFlink's handle of a running job."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.common.completable_future import CompletableFuture
from holdfast.common.job_execution_result import JobExecutionResult
from holdfast.common.job_id import JobID
from holdfast.common.job_status import JobStatus

if TYPE_CHECKING:
    from holdfast.checkpoint.statistics import CheckpointStatisticsTracker
    from holdfast.graph.submission import RunningJob
    from holdfast.spark.execution_graph import ExecutionGraph
    from holdfast.spark.job import JobHistory


class JobClient:
    """Asks a job that runs in this process, and tells it to end."""

    def __init__(self, job: RunningJob) -> None:
        self._job = job

    def get_job_id(self) -> JobID:
        return JobID(self._job.graph.job_id)

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        return CompletableFuture.completed(JobStatus[self._job.master.history.status.name])

    def is_running(self) -> bool:
        return self._job.running

    def cancel(self) -> CompletableFuture[None]:
        """Ask the job to end at the next boundary of an epoch, without a checkpoint. Done when it has ended."""
        ended: CompletableFuture[None] = CompletableFuture()
        self._job.master.control.cancel()
        self._job.on_end(lambda _: ended.set_result(None))
        return ended

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
                ended.set_result(JobExecutionResult(self._job.graph.job_id, self._job.master.history))

        self._job.on_end(settle)
        return ended

    def get_history(self) -> JobHistory:
        """Epochs, failures and warnings so far."""
        return self._job.master.history

    def get_execution_graph(self) -> ExecutionGraph:
        """Vertices and subtasks with their states."""
        return self._job.master.execution_graph

    def get_checkpoint_statistics(self) -> CheckpointStatisticsTracker:
        return self._job.master.checkpoints.coordinator.statistics
