"""Runs a job: attempts one after the other, with the restart strategy between them."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import replace
from typing import NoReturn

from holdfast.checkpoint.job_end import JobEnd
from holdfast.checkpoint.reasons import CheckpointFailureReason
from holdfast.checkpoint.restart import RestartDecision, RestartStrategy, strategy_for
from holdfast.errors import (
    HoldfastError,
    JobExecutionError,
    LeadershipLostError,
    PartialOutputError,
    ProgramError,
    RestoreError,
    StateMigrationError,
    StoreVersionError,
    UnfitExecutorError,
)
from holdfast.job.attempt import Attempt, AttemptContext, Outcome
from holdfast.job.checkpoints import JobCheckpoints
from holdfast.job.control import JobCancelled, JobControl
from holdfast.job.engine import Engine, EngineSession
from holdfast.job.execution_graph import ExecutionGraph, ExecutionState
from holdfast.job.failure_texts import cannot_help, failed_attempt
from holdfast.job.job import FailureRecord, Job, JobHistory, JobStatus
from holdfast.job.restore_point import RestorePoint
from holdfast.job.same_failures import Repetition, SameFailures
from holdfast.job.transactions import SinkTransactions
from holdfast.runtime.failure_report import report_of, show_trace

logger = logging.getLogger(__name__)

#: The program does not fit, or does not fit its state: another attempt cannot mend that, but another program can.
_WRONG_PROGRAM = (ProgramError, RestoreError, StateMigrationError)
#: Errors that another attempt cannot mend.
_UNRECOVERABLE = (*_WRONG_PROGRAM, PartialOutputError)
#: State that moved without a loss is no failure, unless it happens again and again without a checkpoint in between.
_FREE_MOVES = 3


class JobMaster:
    """One job in this driver. ``run`` blocks; ``control`` and ``history`` may be used from other threads."""

    def __init__(self, job: Job, engine: Engine) -> None:
        self.job = job
        self._engine = engine
        self.control = JobControl()
        self.history = JobHistory()
        self.execution_graph = ExecutionGraph(job.plan)
        self._status_lock = threading.Lock()
        self._set_status(JobStatus.CREATED)
        self._moves = 0
        self._completed_at_move = -1
        self._unfinished = False
        self._executors = 0
        self.checkpoints = JobCheckpoints(job, engine.clock)
        self._transactions = SinkTransactions(job.facts.job_id, job.sinks, self.checkpoints.leadership.check)

    def cancel(self) -> None:
        """From any thread. The job ends at the next boundary of an epoch; whoever asks is told so from now on."""
        self._set_status(JobStatus.CANCELLING, instead_of=JobStatus.RUNNING)
        self.control.cancel()

    def run(self) -> JobHistory:
        """Until the job has ended, here or in another driver that led it. JobExecutionError when it failed for good."""
        while True:
            try:
                if self.checkpoints.leadership.waits and not self._await_leadership():
                    return self.history
                return self._run_as_leader()
            except LeadershipLostError as lost:
                self._step_down(lost)

    def _await_leadership(self) -> bool:
        """False when there is nothing left to lead: the job has ended, or this driver was asked to wait no longer."""
        if self.history.status is JobStatus.CREATED:
            self._set_status(JobStatus.INITIALIZING)
        try:
            end = self.checkpoints.lead(self.control.pause)
        except JobCancelled:
            logger.warning("This driver waits no longer for the leadership of job %s", self.job.facts.job_id)
            self._set_status(JobStatus.CANCELED)
            return False
        except LeadershipLostError:
            raise
        except BaseException:
            self._set_status(JobStatus.FAILED)
            raise
        if end is None:
            return True
        self.checkpoints.step_down()
        self.history.savepoint = end.savepoint
        self._set_status(JobStatus(end.status))
        logger.info("Job %s was brought to its end by another driver: %s", self.job.facts.job_id, end.status)
        if self.history.status is JobStatus.FAILED:
            raise self._failed_elsewhere(end)
        return False

    def _failed_elsewhere(self, end: JobEnd) -> JobExecutionError:
        return JobExecutionError(
            f"Job '{self.job.facts.job_name}' ({self.job.facts.job_id}) failed at {end.at} in the driver that "
            "led it while this one waited; the log of that driver says why."
        )

    def _run_as_leader(self) -> JobHistory:
        status = JobStatus.FAILED
        self._unfinished = False
        # Another driver may have brought the job on in between.
        self._same = SameFailures(self.job.failures.same_failures)
        try:
            status = self._run_until_ended()
        except LeadershipLostError:
            raise
        except BaseException:
            self._unfinished = self._unfinished or self.checkpoints.owes_rows
            self._close(status)
            raise
        finally:
            self._transactions.release()
        self._close(status)
        return self.history

    def _run_until_ended(self) -> JobStatus:
        """In one session of the engine after the other: a job that is rescaled is planned anew."""
        strategy = strategy_for(self.job.restart)
        while True:
            with self._engine.open(self.job, self.control) as session:
                status = self._run_in(session, strategy)
                # Between two sessions nothing is left of the job but its checkpoints, which must stay whatever happens.
                self._unfinished = self._unfinished or status is None
            if status is not None:
                return status
            self._rescale()

    def _rescale(self) -> None:
        assert self.control.rescaling is not None
        # Sinks know their transactions by subtask, whatever number of them there is.
        self.job = replace(self.control.rescaling.job, sinks=self.job.sinks)
        self.checkpoints.rescale(self.job)
        self.execution_graph = ExecutionGraph(self.job.plan)
        logger.info("Job %s goes on with parallelism %d", self.job.facts.job_id, self.job.parallelism)

    def _answer_rescaling(self, refusal: str | None = None) -> None:
        rescaling = self.control.take_rescaling()
        if rescaling is None:
            return
        if refusal is None:
            rescaling.succeed()
        else:
            rescaling.fail(HoldfastError(f"The job was not rescaled to {rescaling.parallelism}: {refusal}."))

    def _close(self, status: JobStatus) -> None:
        self.history.savepoint = self.checkpoints.ended_with
        self._set_status(status)
        if self._unfinished:
            self.checkpoints.suspend()
        else:
            self.checkpoints.close(status.value)
        self._answer_ending(status)
        self._answer_rescaling(f"it is {status.value}")

    def _step_down(self, lost: LeadershipLostError) -> None:
        """Leave the job to another driver: no checkpoint is aborted, no file deleted, no transaction touched."""
        self._set_status(JobStatus.SUSPENDED)
        self.execution_graph.end(ExecutionState.CANCELED)
        self.checkpoints.step_down()
        self._answer_ending(JobStatus.SUSPENDED, str(lost))
        self._answer_rescaling("another driver has it")
        waits = self.checkpoints.leadership.waits
        reason = "waiting for leadership" if waits else "another driver has the job"
        self.history.failures.append(FailureRecord(self.history.attempt, time.time(), lost, False, reason))
        logger.warning("Attempt %d of job %s ends here: %s", self.history.attempt, self.job.facts.job_id, lost)
        if not waits:
            raise JobExecutionError(
                f"Job '{self.job.facts.job_name}' ({self.job.facts.job_id}) was taken from this driver: {lost}. What "
                "it completed is kept, and the driver that has the job now goes on from there."
            ) from lost

    def _run_in(self, session: EngineSession, strategy: RestartStrategy) -> JobStatus | None:
        """None when the job is to be planned anew."""
        job = self.job
        context = AttemptContext(
            job,
            session,
            self.checkpoints,
            self._transactions,
            self.history,
            self.execution_graph,
            self.control,
            self._engine.clock,
        )
        if self.checkpoints.ending is not None:
            return self._bring_about(context, self.checkpoints.ending)
        return self._run_attempts(context, strategy)

    def _run_attempts(self, context: AttemptContext, strategy: RestartStrategy) -> JobStatus | None:
        while True:
            try:
                outcome = self._run_attempt(context)
                if outcome is Outcome.FINISHED:
                    return JobStatus.FINISHED
                if outcome is Outcome.RESCALED:
                    return None
            except JobCancelled as cancelled:
                if self.checkpoints.ending is not None:
                    return self._bring_about(context, self.checkpoints.ending, cancelled)
                self._set_status(JobStatus.CANCELLING)
                self.execution_graph.end(ExecutionState.CANCELED)
                self._settle_transactions()
                return JobStatus.CANCELED
            except LeadershipLostError:
                raise
            except Exception as error:
                failure = self._engine.failure_of(error)
                show_trace(failure, self.job.failures.full_traces)
                if self.checkpoints.ending is not None:
                    return self._bring_about(context, self.checkpoints.ending, failure)
                if context.session.is_gone:
                    self._suspend(failure)
                self._after_failure(failure, strategy)

    def _run_attempt(self, context: AttemptContext) -> Outcome:
        self.control.check()
        number = self.checkpoints.next_attempt()
        self.history.attempt = number
        point = self.checkpoints.select()
        if point is not None:
            logger.info(
                "Attempt %d of job %s starts from checkpoint %d (epoch %d)",
                number,
                self.job.facts.job_id,
                point.metadata.checkpoint_id,
                point.metadata.epoch,
            )
        else:
            logger.info(
                "Attempt %d of job %s starts with empty state, at the beginning of its sources",
                number,
                self.job.facts.job_id,
            )
        self.checkpoints.begin_from(point)
        self._recover_transactions(point)
        self._await_executors(context.session)
        self._set_status(JobStatus.RUNNING)
        self.execution_graph.begin_attempt(number)
        attempt = Attempt(context, number, point)
        if self.control.rescaling is not None and self.control.rescaling.job.plan is context.job.plan:
            self._unfinished = False
            self._answer_rescaling()
        return attempt.run()

    def _await_executors(self, session: EngineSession) -> None:
        """As many as the attempt before had: those that are lost may be replaced, and slots are spread over all."""
        self._executors = session.await_executors(self._executors)

    def _recover_transactions(self, point: RestorePoint | None) -> None:
        """Commit what the restored checkpoint holds, abort the rest. That a commit begins is recorded first, as at
        any other time.
        """
        operators = point.operators if point is not None else ()
        own = point.completed if point is not None and not point.foreign else None
        holds = own is not None and any(s.transactions for o in operators for s in o.subtasks)
        if holds and own is not None:
            self.checkpoints.coordinator.begin_commit(own.checkpoint_id)
        left = self.checkpoints.left_to_others()
        self._transactions.recover(operators, self.checkpoints.dead_origin(point), self.history.attempt, left)
        if holds and own is not None:
            self.checkpoints.coordinator.committed(own.checkpoint_id)
        if point is not None:
            self.checkpoints.published(point.metadata)

    def _after_failure(self, failure: HoldfastError, strategy: RestartStrategy) -> None:
        """Wait for the next attempt, or raise when there is none."""
        self._set_status(JobStatus.FAILING)
        self.execution_graph.end(ExecutionState.FAILED)
        self.checkpoints.coordinator.fail_epoch()
        self._answer_ending(JobStatus.FAILING, str(failure))
        if self.control.cancelled and not isinstance(failure, PartialOutputError):
            return
        if self._is_hopeless(failure):
            self._unfinished = isinstance(failure, _WRONG_PROGRAM)
            self._give_up(failure, "another attempt cannot mend it")
        repetition = self._same.on_failure(report_of(failure), self._completed)
        then = self._restart_after(failure, repetition, strategy)
        attempt, full_traces = self.history.attempt, self.job.failures.full_traces
        self.history.failures.append(FailureRecord(attempt, time.time(), failure, True, then.reason))
        self.history.restarts += 1
        logger.warning("%s", failed_attempt(attempt, failure, repetition, then, full_traces))
        self._set_status(JobStatus.RESTARTING)
        self.control.sleep(then.delay_ms / 1000)

    def _restart_after(
        self, failure: HoldfastError, repetition: Repetition, strategy: RestartStrategy
    ) -> RestartDecision:
        """How the job goes on; raises when it does not."""
        if isinstance(failure, StoreVersionError) and self._free_move():
            return RestartDecision(True, 0, "state moved without a loss")
        decision = strategy.on_failure(self._engine.clock())
        if not decision.restart:
            self._give_up(failure, decision.reason)
        if repetition.hopeless:
            # The program is to be corrected, and goes on from the checkpoint that there is.
            self._unfinished = True
            self._give_up(failure, cannot_help(repetition.count))
        return decision

    @property
    def _completed(self) -> int:
        """How many checkpoints have completed in this driver."""
        return self.checkpoints.coordinator.statistics.counts.completed

    def _is_hopeless(self, failure: HoldfastError) -> bool:
        if isinstance(failure, UnfitExecutorError):
            # Once the job has run, an executor that is not fit is one of many: the next one may be.
            return not self.history.epochs
        return isinstance(failure, _UNRECOVERABLE)

    def _free_move(self) -> bool:
        """Only where a checkpoint brings everything back, and only while checkpoints go on completing in between."""
        if not self.job.checkpoint.enabled:
            return False
        completed = self._completed
        self._moves = self._moves + 1 if completed == self._completed_at_move else 0
        self._completed_at_move = completed
        return self._moves < _FREE_MOVES

    def _bring_about(self, context: AttemptContext, end: JobEnd, failure: HoldfastError | None = None) -> JobStatus:
        """Do what is left of an end that is recorded: by this driver, where something failed at the record or behind
        it, or by one that died there. A savepoint that the job was stopped with holds everything: what is not yet
        published is published from it.
        """
        seen = f"something failed in this driver: {failure}" if failure is not None else "its driver was lost"
        logger.warning("The end of job %s is decided (%s), and then %s", self.job.facts.job_id, end.status, seen)
        point = self.checkpoints.stop_point
        try:
            self.history.attempt = self.checkpoints.next_attempt()
            self.checkpoints.record_ending()
            if point is not None:
                self.checkpoints.begin_from(point)
                self._recover_transactions(point)
        except LeadershipLostError:
            raise
        except Exception as error:
            self._unfinished = True
            raise JobExecutionError(
                f"Job '{self.job.facts.job_name}' ({self.job.facts.job_id}) was stopped with the savepoint "
                f"{end.savepoint}, and then its output could not be published, or only in part: {error}. Start it from "
                "that savepoint to go on, or under its id, to end it if that is recorded: either publishes the rest, "
                "once."
            ) from (failure or error)
        self._close_functions(context, point)
        if end.status == JobStatus.FAILED.value:
            raise self._failed_elsewhere(end)
        return JobStatus(end.status)

    def _close_functions(self, context: AttemptContext, stopped_with: RestorePoint | None) -> None:
        """Functions are notified of the savepoint that the job was stopped with, if they can still be."""
        if stopped_with is None:
            self.checkpoints.coordinator.start_attempt(self.history.attempt)
            return
        try:
            self._await_executors(context.session)
            attempt = Attempt(context, self.history.attempt, stopped_with)
            attempt.close_functions(stopped_with.metadata.checkpoint_id)
        except LeadershipLostError:
            raise
        except Exception as error:
            logger.warning("All results are published, but the job did not close in order: %s", error)

    def _answer_ending(self, status: JobStatus, failure: str = "") -> None:
        """Tell whoever asked for the job to end with a savepoint how that went."""
        ending, self.control.ending = self.control.ending, None
        if ending is None:
            return
        if status in (JobStatus.FINISHED, JobStatus.CANCELED):
            ending.succeed()
        seen = f"The savepoint {ending.completed.location} is complete. " if ending.completed is not None else ""
        ending.fail(CheckpointFailureReason.EPOCH_FAILED, f"{seen}The job is {status.value}. {failure}".rstrip())

    def _settle_transactions(self) -> None:
        """No attempt follows: what a completed checkpoint holds is committed, and the rest is aborted."""
        try:
            self._recover_transactions(self.checkpoints.select())
        except LeadershipLostError:
            raise
        except Exception as error:
            self._unfinished = True
            logger.warning(
                "Open transactions of job %s are left as they are, and its checkpoints stay for whoever restores it: "
                "%s: %s",
                self.job.facts.job_id,
                type(error).__name__,
                error,
            )

    def _give_up(self, failure: HoldfastError, reason: str) -> NoReturn:
        self._settle_transactions()
        self.history.failures.append(FailureRecord(self.history.attempt, time.time(), failure, False, reason))
        ended = JobExecutionError(
            f"Job '{self.job.facts.job_name}' ({self.job.facts.job_id}) failed in attempt {self.history.attempt} "
            f"and is not restarted ({reason}): "
            f"{type(failure).__name__}: {failure}"
        )
        ended.trace = report_of(failure).trace(self.job.failures.full_traces)
        raise ended from failure

    def _suspend(self, failure: HoldfastError) -> NoReturn:
        """No attempt can run in an application that has ended. For the job it is as if its driver had died."""
        self._unfinished = True
        directory, job_id = self.job.checkpoint.directory, self.job.facts.job_id
        if directory is None:
            advice = "Its checkpoints were in this driver's memory: set execution.checkpointing.dir to keep them"
        else:
            advice = (
                f"Start the program again with holdfast.job-id={job_id}: it continues from its last checkpoint in "
                f"{directory}"
            )
        reason, attempt = "the Spark application is gone", self.history.attempt
        self.history.failures.append(FailureRecord(attempt, time.time(), failure, False, reason))
        raise JobExecutionError(
            f"The Spark application of job '{self.job.facts.job_name}' ({job_id}) is gone: its context was stopped, "
            "or "
            f"the driver's JVM died, in attempt {attempt}. {advice}. {type(failure).__name__}: {failure}"
        ) from failure

    def _set_status(self, status: JobStatus, instead_of: JobStatus | None = None) -> None:
        with self._status_lock:
            if instead_of in (None, self.history.status):
                self.history.status = status
                self.history.timestamps[status] = time.time()
