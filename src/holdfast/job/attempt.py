"""One attempt of a job: from a restored checkpoint, or from nothing, one epoch after the other until the input ends
or something fails.
"""

from __future__ import annotations

import logging
import math
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from holdfast.checkpoint.completed import CompletedCheckpoint
from holdfast.checkpoint.snapshot_triggers import SnapshotTrigger
from holdfast.errors import CheckpointError, PartialOutputError, StorageError, TransactionError
from holdfast.failpoints import failpoint
from holdfast.job.acceptance import accept_epoch
from holdfast.job.aligned_sources import AlignedSources
from holdfast.job.checkpoints import JobCheckpoints
from holdfast.job.control import JobControl
from holdfast.job.engine import EngineSession, TakenInputs
from holdfast.job.execution_graph import ExecutionGraph
from holdfast.job.executor_watch import ExecutorWatch
from holdfast.job.job import EpochRecord, Job, JobHistory
from holdfast.job.pace import Pace
from holdfast.job.placement import spread_evenly
from holdfast.job.quiet_sources import QuietSources
from holdfast.job.restore_point import RestorePoint
from holdfast.job.running_checkpoints import RunningCheckpoints
from holdfast.job.transactions import SinkTransactions
from holdfast.runtime.epoch import Acknowledgement, EpochSpec, Notification, NotificationKind
from holdfast.state.handles import CheckpointRequest

logger = logging.getLogger(__name__)

#: A final checkpoint that fails is tried again so often.
_FINAL_TRIES = 3
#: Sources are looked at no sooner again, whatever the pause between idle epochs.
_LOOK_MS = 100
#: In that time Spark's streams mostly have another micro-batch, if they have one at all.
_NEXT_MICRO_BATCH_MS = 300


@dataclass
class AttemptContext:
    """What all attempts of a job share."""

    job: Job
    session: EngineSession
    checkpoints: JobCheckpoints
    transactions: SinkTransactions
    history: JobHistory
    graph: ExecutionGraph
    control: JobControl
    clock: Callable[[], int]


class Outcome(Enum):
    """How an attempt ended that did not fail."""

    FINISHED = "FINISHED"
    #: Right behind a checkpoint, so that the next attempt goes on from there with its slots spread over all executors.
    SPREAD_AGAIN = "SPREAD_AGAIN"
    #: Right behind a checkpoint, so that the job goes on from there with the parallelism that was asked for.
    RESCALED = "RESCALED"


class Attempt:
    """``run`` returns when the attempt ended in order, and raises when it failed.

    Its tasks rebuild state from ``point``, and from nothing else: whoever restores takes its share of what all subtasks
    wrote, which must be the same for all. When state has to move later, a new attempt begins.
    """

    def __init__(self, context: AttemptContext, number: int, point: RestorePoint | None) -> None:
        self._context = context
        self._job = context.job
        self._number = number
        self._epoch = point.metadata.epoch if point is not None else 0
        self._restore_epoch = self._epoch
        self._restore_nonce = uuid.uuid4().hex[:16]
        self._point = point
        self._accepted: tuple[tuple[str, ...], ...] = ()
        self._next_timer: int | None = None
        #: When the last epoch began, if it read nothing and its sources had no more.
        self._idle_since: int | None = None
        self._pace = Pace(context.job.epoch)
        self._quiet = QuietSources(context.job.endless_sources, context.clock)
        self._aligned = AlignedSources(self._job.plan.operators(), point.operators if point is not None else ())
        self._ended = False
        #: The epoch in which the input ended.
        self._last_epoch: int | None = None
        self._inputs = context.session.inputs(point)
        self._spread_over = context.session.executors()
        self._placement: tuple[str, ...] = ()
        self._runner = context.session.begin_attempt((self._job.facts.job_id, number, self._restore_nonce), point)
        self._watch = ExecutorWatch(self._runner, context.session.executors)
        self._checkpoints = RunningCheckpoints(
            context.checkpoints,
            context.transactions,
            self._job.checkpoint.heartbeat_timeout_ms,
            durable_epoch=self._epoch if point is not None else -1,
            clock=context.clock,
        )

    def run(self) -> Outcome:
        coordinator = self._context.checkpoints.coordinator
        try:
            coordinator.start_attempt(self._number, self._restored_checkpoint, self._job.facts)
            if self._point is not None and self._point.relabelled:
                coordinator.force_full_next()
            self._inputs.start()
            while not self._ended:
                self._context.control.check()
                self._wait()
                self._context.control.check()
                if self._should_spread_again():
                    return Outcome.SPREAD_AGAIN
                last = coordinator.triggers.take_last()
                if last is not None:
                    if self._ended_with_savepoint(last):
                        return Outcome.FINISHED
                elif self._stopped_to_rescale():
                    return Outcome.RESCALED
                else:
                    self._run_epoch(self._due_snapshot())
            self._finish()
            return Outcome.FINISHED
        finally:
            self._let_go()

    def close_functions(self, stopped_with: int) -> None:
        """In the place of ``run``, behind the savepoint that the job was stopped with: nothing is left to do but to
        notify functions of it and to close them.
        """
        coordinator = self._context.checkpoints.coordinator
        try:
            coordinator.start_attempt(self._number, self._restored_checkpoint, self._job.facts)
            coordinator.tell_completed(stopped_with)
            self._close_in_order()
        finally:
            self._let_go()

    @property
    def _restored_checkpoint(self) -> CompletedCheckpoint | None:
        return self._point.completed if self._point is not None else None

    def _let_go(self) -> None:
        self._checkpoints.abandon()
        self._inputs.close()
        self._quiet.close()
        self._watch.close()
        self._runner.close()

    # -- one epoch

    def _run_epoch(
        self, request: CheckpointRequest | None, read_sources: bool = True, close: bool = False, drain: bool = False
    ) -> None:
        context = self._context
        # An epoch with a checkpoint begins with its trigger.
        started, began = time.time(), request.timestamp if request is not None else context.clock()
        taken = self._inputs.take(read_sources, drain)
        spec = self._spec(request, read_sources, close, drain, taken)
        # The last snapshots of a job are waited for in the tasks, which may take long.
        interrupt = None if read_sources or request is None else self._runner.interrupt
        with context.control.interrupted_by_cancel(interrupt), self._watch.during_epoch():
            acknowledgements = self._runner.run(spec, taken.slices)
        failpoint("driver.epoch-collected", epoch=spec.epoch, attempt=spec.attempt)
        plan = self._job.plan
        self._accepted = accept_epoch(acknowledgements, spec.epoch, plan.levels, plan.slots, spec.partitions)
        self._epoch = spec.epoch
        self._inputs.accept(taken, spec.epoch)
        rows = self._take_in(acknowledgements)
        context.transactions.add(spec.epoch, (h for a in acknowledgements for h in a.transactions))
        context.history.epochs.append(
            EpochRecord(
                self._number, spec.epoch, rows, started, time.time(), request.checkpoint_id if request else None
            )
        )
        more = any(a.more for a in acknowledgements)
        self._idle_since = began if rows == 0 and not more else None
        self._pace.epoch_ended(began, rows, more)
        if request is not None:
            assert spec.writer is not None
            own = self._inputs.store(spec.writer, self._number)
            self._checkpoints.take(request, spec.writer.notes(), acknowledgements, own)
        else:
            self._checkpoints.settle()
        self._inputs.release(self._checkpoints.durable_epoch)
        context.transactions.publish_epoch(everything=self._publishes_every_epoch())

    def _spec(
        self,
        request: CheckpointRequest | None,
        read_sources: bool,
        close: bool,
        drain: bool,
        taken: TakenInputs,
    ) -> EpochSpec:
        settings, coordinator = self._job.epoch, self._context.checkpoints.coordinator
        notifications = tuple(
            Notification(NotificationKind(n.kind.name), n.checkpoint_id) for n in coordinator.take_notifications()
        )
        return EpochSpec(
            attempt=self._number,
            epoch=self._epoch + 1,
            accepted=self._accepted,
            restore_epoch=self._restore_epoch,
            restore_nonce=self._restore_nonce,
            restored=self._point is not None,
            rows_per_subtask=max(1, settings.max_rows // self._job.plan.slots),
            max_millis=settings.max_time_ms,
            checkpoint=request,
            writer=coordinator.writer_for(request) if request is not None else None,
            reader=self._point.reader if self._point is not None else None,
            notifications=notifications,
            durable_epoch=self._checkpoints.durable_epoch,
            read_sources=read_sources,
            data_frames_read=taken.over,
            partitions={each.group: each.partitions for each in taken.slices},
            close=close,
            drain=drain,
            upload_wait_seconds=self._upload_wait_ms(read_sources) / 1000,
            watermark_bounds=self._aligned.bounds(),
        )

    def _upload_wait_ms(self, read_sources: bool) -> int:
        """When no epoch follows, no worker is kept alive for an upload that goes on alone."""
        return self._job.checkpoint.upload_wait_ms if read_sources else self._job.checkpoint.timeout_ms

    def _take_in(self, acknowledgements: list[Acknowledgement]) -> int:
        """Note what the tasks told; the rows that sources read."""
        history = self._context.history
        self._context.graph.take_in(acknowledgements)
        self._aligned.take_in(acknowledgements)
        timers = [a.next_timer for a in acknowledgements if a.next_timer is not None]
        self._next_timer = min(timers, default=None)
        own = [a for a in acknowledgements if a.group == 0]
        self._ended = all(a.ended for a in own) and self._inputs.ended
        if self._ended and self._last_epoch is None:
            self._last_epoch = self._epoch
        history.restored_bytes += sum(a.restored_bytes for a in acknowledgements)
        for migrated in (one for a in acknowledgements for one in a.migrations):
            history.migrations.append(migrated)
            logger.info(migrated.describe())
        for warning in {w for a in acknowledgements for w in a.warnings}:
            if warning not in history.warnings:
                history.warnings.append(warning)
                logger.warning(warning)
        placement = tuple(a.executor for a in sorted(own, key=lambda a: (a.level, a.slot)))
        history.placement.append((self._epoch, placement))
        self._placement = placement
        sources = {o.operator_id for c in self._job.plan.chains if c.level == 0 for o in c.operators[:1]}
        return sum(p.rows_in for a in acknowledgements for p in a.progress if p.operator_id in sources or a.group > 0)

    def _publishes_every_epoch(self) -> bool:
        """At least once by choice; or without checkpoints and restarts, where what was published is never computed
        again.
        """
        settings = self._job.checkpoint
        if settings.interval_ms is None:
            return self._job.restart.kind == "none"
        return settings.mode == "AT_LEAST_ONCE"

    # -- between epochs

    def _wait(self) -> None:
        """Sleep until the next epoch is to begin; after one without rows, until sources may have something, a timer or
        a checkpoint is due.
        """
        self._context.control.sleep(self._pace.pause_ms(self._context.clock()) / 1000, unless=self._asked)
        if self._idle_since is None and not self._inputs.alone:
            return
        settings, now = self._job.epoch, self._context.clock()
        longest, pause = now + settings.max_idle_wait_ms, settings.idle_wait_ms
        while True:
            due = min(longest, self._next_due(now))
            self._context.control.sleep(min(due - now, pause) / 1000, unless=self._called)
            if not self._has_nothing_to_do():
                return
            now, pause = self._context.clock(), max(settings.idle_wait_ms, _LOOK_MS)
            if now >= due:
                return

    def _next_due(self, now: int) -> float:
        """When an epoch has to begin although no source has anything."""
        checkpoint = self._context.checkpoints.coordinator.next_due()
        if checkpoint is not None and self._idle_since is None and not self._inputs.want_checkpoint:
            # Streams have just been read: a checkpoint that is due comes with what they have next, not before it.
            checkpoint = max(checkpoint, now + _NEXT_MICRO_BATCH_MS)
        return min((t for t in (self._next_timer, checkpoint) if t is not None), default=math.inf)

    def _has_nothing_to_do(self) -> bool:
        """Whether an epoch would read nothing, and nothing that happened meanwhile asks for one."""
        if self._idle_since is None or not self._quiet.visible or self._called() or self._context.control.cancelled:
            return False
        self._checkpoints.settle()
        if self._inputs.want_checkpoint or self._context.checkpoints.coordinator.has_notifications:
            return False
        # What a source was held back from is nothing new, and not read yet.
        if self._aligned:
            return False
        return self._quiet.had_nothing_since(self._idle_since)

    def _called(self) -> bool:
        return self._asked() or self._inputs.waiting()

    def _asked(self) -> bool:
        return self._context.control.rescaling is not None or self._context.checkpoints.coordinator.is_asked_for_one()

    def _due_snapshot(self) -> CheckpointRequest | None:
        """What the next epoch carries: what was asked for or is due, or what an input waits for."""
        coordinator, epoch = self._context.checkpoints.coordinator, self._epoch + 1
        request = coordinator.trigger_if_due(epoch, self._context.clock())
        if request is None and self._inputs.want_checkpoint and not coordinator.pending_ids():
            request = coordinator.trigger(SnapshotTrigger(), epoch, self._context.clock())
        return request

    def _should_spread_again(self) -> bool:
        """An executor came, for one that was lost or beside the others, and the checkpoint just taken lets state
        move.
        """
        if not self._accepted or not (self._durably_here() or self._checkpoints.uploading):
            return False
        slots, executors = self._job.plan.slots, self._context.session.executors()
        # Executors over which spreading was tried once are not tried again: each try restores state.
        if executors == self._spread_over or spread_evenly(self._placement[-slots:], len(executors)):
            return False
        self._checkpoints.wait(self._context.control)
        if not self._durably_here():
            return False
        used = len(set(self._placement[-slots:]))
        logger.info("Slots use %d of %d executors: a new attempt spreads them again", used, len(executors))
        return True

    def _stopped_to_rescale(self) -> bool:
        """Where another parallelism was asked for: take a checkpoint behind which nothing happens in this attempt.
        When it fails, the job goes on as it is.
        """
        context, trigger = self._context, SnapshotTrigger(counts=False)
        # What else was asked for comes first: the next attempt would not know of it.
        if context.control.rescaling is None or context.checkpoints.coordinator.is_asked_for_one():
            return False
        self._checkpoints.wait(context.control)
        if self._durably_here() or self._checkpointed_to_rescale(trigger):
            return True
        rescaling = context.control.take_rescaling()
        assert rescaling is not None
        rescaling.fail_at_checkpoint(self._job.parallelism, trigger.outcome.exception())
        return False

    def _checkpointed_to_rescale(self, trigger: SnapshotTrigger) -> bool:
        """``trigger`` says why not."""
        try:
            request = self._context.checkpoints.coordinator.trigger(trigger, self._epoch + 1, self._context.clock())
        except StorageError as error:
            logger.warning("The checkpoint behind which the job was to be rescaled cannot begin: %s", error)
            return False
        self._run_epoch(request)
        self._checkpoints.wait(self._context.control)
        return self._durably_here()

    def _durably_here(self) -> bool:
        """Whether a checkpoint holds everything up to now."""
        return self._checkpoints.durable_epoch == self._epoch

    # -- the end

    def _ended_with_savepoint(self, trigger: SnapshotTrigger) -> bool:
        """Take a savepoint behind which nothing else happens in the job; False when it failed and the job goes on."""
        context, coordinator = self._context, self._context.checkpoints.coordinator
        coordinator.suspend()
        request = coordinator.trigger(trigger, self._epoch + 1, self._context.clock())
        context.control.ending = trigger
        self._run_epoch(request, read_sources=False, drain=trigger.drain)
        self._checkpoints.wait(context.control)
        if trigger.completed is None:
            context.control.ending = None
            failure = trigger.outcome.exception()
            logger.warning("The job goes on, its savepoint failed: %s", failure)
            if trigger.drain:
                raise CheckpointError(f"The job was drained, and then its savepoint failed: {failure}")
            return False
        if trigger.cancel_job:
            context.checkpoints.cancelled_behind(trigger.completed)
            context.control.cancel()
            context.control.check()
        self._close_in_order()
        return True

    def _finish(self) -> None:
        """The input has ended: a last checkpoint and its commit, then the rest."""
        if self._job.checkpoint.interval_ms is not None:
            self._final_checkpoint()
        else:
            self._publish_the_rest()
        self._close_in_order()

    def _close_in_order(self) -> None:
        """Functions are notified of the last checkpoint and closed."""
        for step in (self._closing_epoch, self._context.transactions.abort_strays):
            try:
                step()
            except Exception as error:
                logger.warning("All results are published, but the job did not close in order: %s", error)

    def _closing_epoch(self) -> None:
        self._run_epoch(None, read_sources=False, close=True)

    def _publish_the_rest(self) -> None:
        """Commits the transactions that nothing durable holds, as there are no checkpoints: now, or not at all."""
        for left in range(_FINAL_TRIES - 1, -1, -1):
            try:
                self._context.transactions.publish_epoch(everything=True)
                return
            except TransactionError as error:
                if not left:
                    raise PartialOutputError(
                        f"The output could not be published, or only in part: {error} Without checkpoints another "
                        "attempt would publish rows again. Remove what was published and start the job anew."
                    ) from error

    def _final_checkpoint(self) -> None:
        coordinator = self._context.checkpoints.coordinator
        for _ in range(_FINAL_TRIES):
            if self._ended_durably():
                return
            request = coordinator.trigger(SnapshotTrigger(), self._epoch + 1, self._context.clock())
            self._run_epoch(request, read_sources=False)
        if not self._ended_durably():
            raise CheckpointError(
                f"The final checkpoint failed {_FINAL_TRIES} times; the results after the last completed one are not "
                "published."
            )

    def _ended_durably(self) -> bool:
        """Whether a checkpoint holds the end of the input, once nothing is being stored any more."""
        self._checkpoints.wait(self._context.control)
        assert self._last_epoch is not None
        return self._checkpoints.durable_epoch >= self._last_epoch
