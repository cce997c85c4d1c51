"""Runs a job: attempts one after the other, with the restart strategy between them."""

from __future__ import annotations

import logging
import time

import cloudpickle
from pyspark.sql import SparkSession

from holdfast.checkpoint.restart import RestartStrategy, strategy_for
from holdfast.errors import HoldfastError, JobExecutionError, ProgramError, RestoreError, StateMigrationError, StoreVersionError
from holdfast.runtime.environment import wall_clock
from holdfast.spark.anchor import wait_for_executors
from holdfast.spark.attempt import Attempt, AttemptContext
from holdfast.spark.checkpoints import JobCheckpoints, RestorePoint
from holdfast.spark.control import JobCancelled, JobControl
from holdfast.spark.failures import failure_of
from holdfast.spark.job import FailureRecord, Job, JobHistory, JobStatus
from holdfast.spark.session import epoch_session
from holdfast.spark.transactions import SinkTransactions

logger = logging.getLogger(__name__)

#: Errors that another attempt cannot mend.
_UNRECOVERABLE = (ProgramError, RestoreError, StateMigrationError)
#: State that moved without a loss is no failure, unless it happens again and again without an epoch in between.
_FREE_MOVES = 3
_EXECUTOR_WAIT_SECONDS = 60.0


class JobMaster:
    """One job in this driver. ``run`` blocks; ``control`` and ``history`` may be used from other threads."""

    def __init__(self, job: Job, session: SparkSession) -> None:
        self._job = job
        self._session = session
        self.control = JobControl()
        self.history = JobHistory()
        self._set_status(JobStatus.CREATED)
        self._moves = 0
        self.checkpoints = JobCheckpoints(job)

    def run(self) -> JobHistory:
        """Until the job has ended. JobExecutionError when it failed for good."""
        status = JobStatus.FAILED
        try:
            with epoch_session(self._session, self._job.spark_settings, own=not self._job.data_frames) as session:
                status = self._run_attempts(session)
        finally:
            self._set_status(status)
            self.checkpoints.close(status.value)
        return self.history

    def _run_attempts(self, session: SparkSession) -> JobStatus:
        job = self._job
        strategy = strategy_for(job.restart)
        transactions = SinkTransactions(job.facts.job_id, job.sinks)
        executors = wait_for_executors(session, 1, _EXECUTOR_WAIT_SECONDS)
        context = AttemptContext(
            job, session, self.checkpoints, transactions, self.history, self.control, cloudpickle.dumps(job.plan), executors
        )
        while True:
            try:
                self._run_attempt(context)
                return JobStatus.FINISHED
            except JobCancelled:
                self._set_status(JobStatus.CANCELLING)
                transactions.recover((), ())
                return JobStatus.CANCELED
            except Exception as error:
                self._after_failure(failure_of(error), strategy)

    def _run_attempt(self, context: AttemptContext) -> None:
        self.control.check()
        number = self.checkpoints.next_attempt()
        self.history.attempt = number
        point = self.checkpoints.select()
        if point is not None:
            logger.info("Attempt %d of job %s starts from checkpoint %d (epoch %d)", number, self._job.facts.job_id, point.metadata.checkpoint_id, point.metadata.epoch)
        else:
            logger.info("Attempt %d of job %s starts with empty state, at the beginning of its sources", number, self._job.facts.job_id)
        self._recover_transactions(context, point)
        context.executors = max(context.executors, wait_for_executors(context.session, context.executors, _EXECUTOR_WAIT_SECONDS))
        self._set_status(JobStatus.RUNNING)
        Attempt(context, number, point).run()

    def _recover_transactions(self, context: AttemptContext, point: RestorePoint | None) -> None:
        """Commit what the restored checkpoint holds, abort the rest. That a commit begins is recorded first, as at any other time."""
        operators = point.operators if point is not None else ()
        own = point.completed if point is not None else None
        holds = own is not None and any(s.transactions for o in operators for s in o.subtasks)
        if holds and own is not None:
            self.checkpoints.coordinator.begin_commit(own.checkpoint_id)
        context.transactions.recover(operators, self.checkpoints.dead_origin(point))
        if holds and own is not None:
            self.checkpoints.coordinator.committed(own.checkpoint_id)

    def _after_failure(self, failure: HoldfastError, strategy: RestartStrategy) -> None:
        """Wait for the next attempt, or raise when there is none."""
        self._set_status(JobStatus.FAILING)
        self.checkpoints.coordinator.fail_epoch()
        if self.control.cancelled:
            return
        if isinstance(failure, _UNRECOVERABLE):
            self._give_up(failure, "another attempt cannot mend it")
        if isinstance(failure, StoreVersionError) and self._free_move():
            delay, reason = 0, "state moved without a loss"
        else:
            decision = strategy.on_failure(wall_clock())
            if not decision.restart:
                self._give_up(failure, decision.reason)
            delay, reason = decision.delay_ms, decision.reason
        self.history.failures.append(FailureRecord(self.history.attempt, time.time(), failure, True, reason))
        self.history.restarts += 1
        logger.warning("Attempt %d failed: %s. Restarting in %d ms (%s).", self.history.attempt, failure, delay, reason)
        self._set_status(JobStatus.RESTARTING)
        self.control.sleep(delay / 1000)

    def _free_move(self) -> bool:
        accepted = sum(1 for e in self.history.epochs if e.attempt == self.history.attempt)
        self._moves = 0 if accepted else self._moves + 1
        return self._moves < _FREE_MOVES

    def _give_up(self, failure: HoldfastError, reason: str) -> None:
        self.history.failures.append(FailureRecord(self.history.attempt, time.time(), failure, False, reason))
        raise JobExecutionError(
            f"Job '{self._job.facts.job_name}' ({self._job.facts.job_id}) failed in attempt {self.history.attempt} and is not restarted ({reason}): "
            f"{type(failure).__name__}: {failure}"
        ) from failure

    def _set_status(self, status: JobStatus) -> None:
        self.history.status = status
        self.history.timestamps[status] = time.time()
