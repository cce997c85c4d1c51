"""Takes checkpoints: decides when, collects acknowledgements, makes them visible, lets go of old ones."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from holdfast.checkpoint import course, recovery
from holdfast.checkpoint.assembly import assemble
from holdfast.checkpoint.cleaner import CheckpointsCleaner
from holdfast.checkpoint.completed import CompletedCheckpoint
from holdfast.checkpoint.failure_manager import THRESHOLD_MESSAGE, CheckpointFailureManager
from holdfast.checkpoint.job_facts import JobFacts
from holdfast.checkpoint.notifications import Notification, NotificationKind
from holdfast.checkpoint.pending import AcknowledgeResult, PendingCheckpoint
from holdfast.checkpoint.policy import CheckpointPolicy
from holdfast.checkpoint.reasons import CheckpointFailureReason
from holdfast.checkpoint.rebase import full_images_due
from holdfast.checkpoint.savepoint import SavepointLocation
from holdfast.checkpoint.schedule import CheckpointSchedule
from holdfast.checkpoint.services import JobServices
from holdfast.checkpoint.shared_files import snapshot_files
from holdfast.checkpoint.snapshot_triggers import CheckpointKind, SnapshotTrigger, TriggerQueue
from holdfast.checkpoint.statistics import CheckpointStatsTracker
from holdfast.checkpoint.storage import CheckpointStorage
from holdfast.errors import CheckpointError, LeadershipLostError, StorageError
from holdfast.failpoints import failpoint
from holdfast.state.handles import CheckpointMetadata, CheckpointRequest, SnapshotType, SubtaskSnapshot
from holdfast.state.snapshot_io import SnapshotWriter

_log = logging.getLogger(__name__)
_REMEMBERED_IDS = 16


class CheckpointCoordinator:
    """The checkpoints of one job, over all attempts of one driver. Not thread-safe: one thread drives a job.

    ``start_attempt`` comes before anything else, and again after every failure. When ``job_failure`` is set, more
    checkpoints in a row failed than the policy tolerates, and the attempt must fail with it.
    """

    def __init__(
        self,
        policy: CheckpointPolicy,
        job: JobFacts,
        storage: CheckpointStorage,
        services: JobServices,
        clock: Callable[[], int],
        random: Random | None = None,
    ) -> None:
        self.statistics = CheckpointStatsTracker()
        self.job_failure: CheckpointError | None = None
        self._policy = policy
        self._job = job
        self._storage = storage
        self._leadership = services.leadership
        self._store = services.store
        self._ids = services.ids
        self._clock = clock
        self._random = random or Random()
        self._schedule = CheckpointSchedule(policy.interval_ms, policy.min_pause_ms, policy.max_concurrent)
        self._failures = CheckpointFailureManager(policy.tolerable_failures)
        self._cleaner = CheckpointsCleaner(storage, self._needed)
        self.triggers = TriggerQueue()
        self._pending: dict[int, PendingCheckpoint] = {}
        self._ended: deque[int] = deque(maxlen=_REMEMBERED_IDS)
        self._notifications: list[Notification] = []
        self._attempt: int | None = None
        self._base: CompletedCheckpoint | None = None
        self._commits_begun_through = 0
        self._recoverable = True

    # -- attempts

    def select_for_restore(self, accept_repeated_output: bool = False) -> CompletedCheckpoint | None:
        """The checkpoint that a new attempt restores; see ``recovery.select_for_restore``."""
        self._recoverable = False
        selected = recovery.select_for_restore(self._storage, self._store, accept_repeated_output)
        self._recoverable = True
        return selected

    def start_attempt(
        self, attempt: int, restored: CompletedCheckpoint | None = None, job: JobFacts | None = None
    ) -> None:
        """A new attempt begins from ``restored``, with ``job`` as what it runs when that has changed.

        What was pending is given up, and files of earlier attempts that no retained checkpoint needs are deleted.
        Deltas build on ``restored`` only if it is a checkpoint of this job; for an operator that was rescaled the next
        image is full.
        """
        self.fail_epoch()
        first = self._attempt is None
        self._attempt = attempt
        self._job = job or self._job
        self._notifications.clear()
        self.job_failure = None
        self._base = restored if restored in self._store.all() else None
        now = self._clock()
        if restored is not None:
            self._ids.pass_over(restored.checkpoint_id)
            self.statistics.restored(restored, now)
            if self._base is not None:
                self._commits_begun_through = max(self._commits_begun_through, recovery.commits_begun_through(restored))
        self._commits_begun_through = max(self._commits_begun_through, *self._store.commits_begun(), 0)
        self._schedule.start(now, self._policy.first_delay(self._random) if first else self._policy.min_pause_ms)
        self._cleaner.sweep(attempt)
        self.triggers.open()

    def force_full_next(self) -> None:
        """Until one more checkpoint has completed, every image is full and references no file of an earlier one."""
        self._base = None

    # -- triggering

    def next_due(self) -> int | None:
        """When a checkpoint may be due, so that an idle job knows how long it may sleep; None while none can begin."""
        return self._schedule.next_due() if self._may_checkpoint and not self._leadership.in_doubt else None

    def is_asked_for_one(self) -> bool:
        """Whether a snapshot that somebody asked for can begin now."""
        return not self._leadership.in_doubt and self.triggers.waiting(self._may_checkpoint)

    @property
    def _may_checkpoint(self) -> bool:
        return len(self._pending) < self._policy.max_concurrent

    def trigger_if_due(self, epoch: int, now: int) -> CheckpointRequest | None:
        """The snapshot that epoch ``epoch`` carries, if any: one that was asked for, else a periodic checkpoint. None
        begins while it is in doubt whether this driver leads the job.
        """
        if self._leadership.in_doubt:
            return None
        trigger = self.triggers.take(self._may_checkpoint)
        if trigger is not None:
            return self.trigger(trigger, epoch, now)
        if not self._schedule.is_due(now, len(self._pending)):
            return None
        return self.trigger(SnapshotTrigger(), epoch, now)

    def trigger(self, trigger: SnapshotTrigger, epoch: int, now: int) -> CheckpointRequest:
        """Begin a snapshot in epoch ``epoch``, whatever interval, pause and concurrency say. When it cannot begin,
        ``trigger`` is told too.
        """
        try:
            number = self._ids.next()
        except (LeadershipLostError, StorageError) as error:
            lost, reasons = isinstance(error, LeadershipLostError), CheckpointFailureReason
            trigger.refuse(reasons.LEADERSHIP_LOST if lost else reasons.IO_EXCEPTION, str(error))
            raise
        base, job, savepoint = self._base_for(trigger), self._job, trigger.location
        request = CheckpointRequest(
            checkpoint_id=number,
            checkpoint_type=trigger.snapshot_type,
            timestamp=now,
            attempt=self._running_attempt(),
            epoch=epoch,
            base_epoch=base.metadata.epoch if base is not None else None,
            full=frozenset() if base is None else full_images_due(base.metadata, job.operators, job.backend),
            savepoint_format=trigger.savepoint_format if savepoint is not None else None,
            trigger_id=trigger.trigger_id,
        )
        pending = PendingCheckpoint(request, job.subtasks(), base, now + self._policy.timeout_ms)
        pending.trigger, pending.savepoint = trigger, savepoint
        self._pending[request.checkpoint_id] = pending
        self._schedule.triggered(now)
        self.statistics.triggered(request, len(pending.expected))
        course.log_begin(pending)
        return request

    def writer_for(self, request: CheckpointRequest) -> SnapshotWriter:
        """What the tasks write a pending snapshot with."""
        savepoint = self._pending[request.checkpoint_id].savepoint
        if savepoint is not None:
            return savepoint.writer(request)
        return self._storage.writer(request.checkpoint_id, request.attempt)

    def _base_for(self, trigger: SnapshotTrigger) -> CompletedCheckpoint | None:
        """The checkpoint that a snapshot builds on; None for one that stands alone."""
        incremental = self._policy.incremental or trigger.kind is CheckpointKind.INCREMENTAL
        if not incremental or trigger.kind is CheckpointKind.FULL or trigger.snapshot_type.is_savepoint:
            return None
        return self._base

    # -- the life of a pending checkpoint

    def acknowledge(self, checkpoint_id: int, snapshot: SubtaskSnapshot) -> AcknowledgeResult:
        """Take what one subtask wrote; the files of an acknowledgement that does not count are deleted."""
        pending = self._pending.get(checkpoint_id)
        if pending is not None:
            result = pending.acknowledge(snapshot)
        elif checkpoint_id in self._ended:
            result = AcknowledgeResult.DISCARDED
        else:
            result = AcknowledgeResult.UNKNOWN
        if pending is not None and result is AcknowledgeResult.SUCCESS:
            now = self._clock()
            self.statistics.acknowledged(checkpoint_id, snapshot, now)
            course.log_acknowledged(snapshot, self._job, now - pending.request.timestamp)
        elif pending is None or pending.savepoint is None:
            self._cleaner.release(snapshot_files(snapshot))
        return result

    def pending_ids(self) -> frozenset[int]:
        return frozenset(self._pending)

    def ready(self) -> list[int]:
        """Pending checkpoints that every subtask has acknowledged, oldest first; none while it is in doubt whether this
        driver leads the job.
        """
        if self._leadership.in_doubt:
            return []
        return [number for number, pending in sorted(self._pending.items()) if pending.fully_acknowledged]

    def complete(self, checkpoint_id: int, properties: Mapping[str, Any] | None = None) -> CompletedCheckpoint | None:
        """Make a checkpoint visible and let go of those it replaces; None when that failed and it was aborted.

        When this returns a checkpoint, it is durable: sinks may commit. ``properties`` are kept in its metadata.
        """
        pending = self._pending.get(checkpoint_id)
        if pending is None or not pending.fully_acknowledged:
            seen = "not pending" if pending is None else f"not acknowledged by {pending.missing()}"
            raise CheckpointError(f"checkpoint {checkpoint_id} cannot complete: it is {seen}")
        facts = {"checkpoint": checkpoint_id, "epoch": pending.request.epoch, "attempt": pending.request.attempt}
        try:
            failpoint("checkpoint.before-metadata", **facts)
            begun = {recovery.COMMITS_BEGUN_THROUGH: self._commits_begun_through}
            metadata = assemble(pending, self._job, self._clock(), {**(properties or {}), **begun})
            completed, subsumed = self._publish(metadata, pending.savepoint)
        except (CheckpointError, StorageError, OSError) as error:
            withdrawn = self._cleaner.withdraw(pending, self._leadership.check)
            self.abort(checkpoint_id, CheckpointFailureReason.FINALIZE_CHECKPOINT_FAILURE, str(error), withdrawn)
            return None
        failpoint("checkpoint.after-metadata", **facts)
        course.log_completed(pending, completed)
        self._settle(completed, pending.trigger)
        self._cleaner.release(*(replaced.files() for replaced in subsumed))
        return completed

    def abort(
        self, checkpoint_id: int, reason: CheckpointFailureReason, message: str = "", delete: bool = True
    ) -> None:
        """Give a pending checkpoint up and delete what was written for it, unless told not to. One that has ended
        already is left alone.
        """
        pending = self._pending.pop(checkpoint_id, None)
        if pending is None:
            return
        pending.discard()
        self._ended.append(checkpoint_id)
        text = f"{reason.text} {message}".rstrip()
        course.log_aborted(pending, reason, text)
        self.statistics.failed(checkpoint_id, reason, text, self._clock())
        if pending.request.checkpoint_type is not SnapshotType.SAVEPOINT:
            self._notifications.append(Notification(NotificationKind.ABORTED, checkpoint_id))
        if pending.savepoint is None and pending.trigger.counts and self._failures.failed(checkpoint_id, reason):
            self.job_failure = CheckpointError(f"{THRESHOLD_MESSAGE} Checkpoint {checkpoint_id}: {text}", reason)
        if delete:
            self._cleaner.give_up(pending)
        pending.trigger.fail(reason, message)

    def delete_files_of(self, request: CheckpointRequest) -> None:
        """What was written for an aborted snapshot, up to now."""
        self._cleaner.delete_files_of(request)

    def expire(self, now: int) -> list[int]:
        """Abort what has been pending for longer than the timeout."""
        late = sorted(number for number, pending in self._pending.items() if now >= pending.deadline)
        for number in late:
            missing = self._pending[number].missing()
            waiting = (
                f"After {self._policy.timeout_ms} ms {len(missing)} subtasks are missing, the first is {missing[:1]}."
            )
            self.abort(number, CheckpointFailureReason.CHECKPOINT_EXPIRED, waiting)
        return late

    def fail_epoch(self) -> None:
        """An epoch failed, and with it the attempt: nothing that is pending can complete."""
        self.triggers.close(CheckpointFailureReason.EPOCH_FAILED)
        for number in sorted(self._pending):
            self.abort(number, CheckpointFailureReason.EPOCH_FAILED)

    def suspend(self) -> None:
        """The job is to end with a savepoint: checkpoints that are under way would publish rows behind it."""
        for number in self._pending_checkpoints():
            self.abort(number, CheckpointFailureReason.CHECKPOINT_COORDINATOR_SUSPEND)

    def tell_completed(self, checkpoint_id: int) -> None:
        """Functions are notified of it with the next epoch."""
        self._notifications.append(Notification(NotificationKind.COMPLETE, checkpoint_id))

    @property
    def has_notifications(self) -> bool:
        """Whether functions are to be notified of something."""
        return bool(self._notifications)

    def take_notifications(self) -> list[Notification]:
        """Notifications since the last call, in order, for the next epoch to carry."""
        taken, self._notifications = self._notifications, []
        return taken

    # -- the commit of sinks

    def begin_commit(self, checkpoint_id: int) -> None:
        """Record durably that rows of a completed checkpoint may become visible from now on."""
        if all(kept.checkpoint_id != checkpoint_id for kept in self._store.all()):
            raise CheckpointError(
                f"checkpoint {checkpoint_id} is not completed; its transactions must not be committed"
            )
        self._store.mark_commit_begun(checkpoint_id)
        self._commits_begun_through = max(self._commits_begun_through, checkpoint_id)

    def committed(self, checkpoint_id: int) -> None:
        """Record that all transactions of the checkpoint are committed."""
        self._store.mark_committed(checkpoint_id)

    # -- the end

    @property
    def may_have_published(self) -> bool:
        """Whether rows of any checkpoint may be visible."""
        return self._commits_begun_through > 0

    @property
    def disposable(self) -> bool:
        """Whether retained checkpoints may be deleted. Not where that would take a way out from the user: before the
        first attempt of this driver, and after a recovery that could not choose one.
        """
        return self._attempt is not None and self._recoverable

    def shut_down(self, delete_checkpoints: bool) -> None:
        """No more checkpoints; the retained ones go too if asked and disposable."""
        self._schedule.stop()
        self.triggers.close(CheckpointFailureReason.CHECKPOINT_COORDINATOR_SHUTDOWN)
        for number in sorted(self._pending):
            self.abort(number, CheckpointFailureReason.CHECKPOINT_COORDINATOR_SHUTDOWN)
        if not delete_checkpoints or not self.disposable:
            return
        try:
            # Uploads that still go on stop when an attempt follows theirs: what told them else is swept away.
            self._leadership.next_attempt()
            for kept in self._store.all():
                self._store.remove(kept.checkpoint_id)
            self._leadership.check()
            self._cleaner.sweep(self._running_attempt() + 1)
        except StorageError as error:
            _log.warning("Checkpoints of the ended job could not be deleted: %s", error)

    def abandon(self) -> None:
        """Another driver may lead the job: it alone knows what is needed. Whoever waits for a snapshot is told."""
        self._schedule.stop()
        self.triggers.close(CheckpointFailureReason.LEADERSHIP_LOST)
        for pending in self._pending.values():
            pending.trigger.fail(CheckpointFailureReason.LEADERSHIP_LOST)

    # -- inside

    def _publish(
        self, metadata: CheckpointMetadata, savepoint: SavepointLocation | None
    ) -> tuple[CompletedCheckpoint, list[CompletedCheckpoint]]:
        """Make it visible; with a checkpoint, those that it replaces."""
        self._leadership.check()
        failpoint("checkpoint.leadership-confirmed", checkpoint=metadata.checkpoint_id)
        if savepoint is not None:
            completed = CompletedCheckpoint(metadata, savepoint.write_metadata(metadata))
            # A successor undoes what only the savepoint holds: nobody is told of one that was completed behind it.
            self._leadership.check()
            return completed, []
        completed = CompletedCheckpoint(metadata, self._storage.write_metadata(metadata))
        return completed, self._store.add(completed)

    def _settle(self, completed: CompletedCheckpoint, trigger: SnapshotTrigger) -> None:
        """Everything in memory that follows from a completion."""
        number, snapshot_type, now = completed.checkpoint_id, completed.metadata.checkpoint_type, self._clock()
        del self._pending[number]
        self._ended.append(number)
        self._schedule.completed(now)
        self.statistics.completed(completed, now)
        if snapshot_type is SnapshotType.CHECKPOINT:
            self._base = completed
            self._failures.completed(number)
        if snapshot_type is not SnapshotType.SAVEPOINT:
            for older in self._pending_checkpoints():
                if older < number:
                    self.abort(older, CheckpointFailureReason.CHECKPOINT_SUBSUMED)
            self.tell_completed(number)
        trigger.completed = completed
        if not trigger.ends_job:
            trigger.succeed()

    def _pending_checkpoints(self) -> list[int]:
        """The pending checkpoints, without savepoints, which nothing replaces."""
        return sorted(number for number, pending in self._pending.items() if pending.savepoint is None)

    def _needed(self) -> set[str]:
        files: set[str] = set()
        for kept in self._store.all():
            files |= kept.files()
        for pending in self._pending.values():
            files |= pending.needed_files()
        return files

    def _running_attempt(self) -> int:
        if self._attempt is None:
            raise CheckpointError("no attempt has started; call start_attempt first")
        return self._attempt
