"""What a job leaves for the program that ran it."""

from __future__ import annotations

from typing import Any

from holdfast.common.job_id import JobID
from holdfast.job.function_metrics import FunctionMetrics
from holdfast.job.job import JobHistory


class JobExecutionResult:
    """The result of a job that ended."""

    def __init__(self, job_id: str, history: JobHistory, metrics: FunctionMetrics) -> None:
        self._job_id = JobID(job_id)
        self._history = history
        self._metrics = metrics

    def get_job_id(self) -> JobID:
        return self._job_id

    def is_job_execution_result(self) -> bool:
        return True

    def get_job_execution_result(self) -> JobExecutionResult:
        return self

    def get_net_runtime(self) -> int:
        """Milliseconds from the job's first state to its last."""
        times = self._history.timestamps.values()
        return round(1_000 * (max(times) - min(times))) if times else 0

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """The value of an accumulator; None where no function has added one of that name."""
        return self.get_all_accumulator_results().get(accumulator_name)

    def get_all_accumulator_results(self) -> dict[str, Any]:
        """The values of all accumulators by their names, each for all subtasks of the attempt that ended the job."""
        return self._metrics.accumulator_results()

    def get_history(self) -> JobHistory:
        """Epochs, failures and warnings of the job. Not in PyFlink."""
        return self._history

    def get_savepoint_path(self) -> str | None:
        """The savepoint that the job was stopped or cancelled with, in this driver or in another. Not in PyFlink."""
        return self._history.savepoint

    def to_string(self) -> str:
        return f"Job {self._job_id} finished after {self.get_net_runtime()} ms"

    __str__ = to_string
