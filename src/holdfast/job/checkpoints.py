"""The checkpoint side of one job: storage, store, coordinator and lock, made from its settings."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator

import msgspec

from holdfast.checkpoint.claim import SnapshotClaim
from holdfast.checkpoint.completed import CompletedCheckpoint
from holdfast.checkpoint.coordinator import CheckpointCoordinator
from holdfast.checkpoint.job_directory import JobDirectory
from holdfast.checkpoint.job_end import JobEnd
from holdfast.checkpoint.job_home import JobHome
from holdfast.checkpoint.lease import Pause
from holdfast.checkpoint.policy import CheckpointPolicy, deletes_checkpoints
from holdfast.checkpoint.restore_rules import match_operators
from holdfast.checkpoint.storage import open_snapshot, split_checkpoint_path
from holdfast.errors import CheckpointError, JobEndedError, JobLockedError, StorageError
from holdfast.failpoints import failpoint
from holdfast.job.job import Job
from holdfast.job.restore_point import RestorePoint, restore_rules
from holdfast.job.untrusted import pickled_in, refuse_pickled
from holdfast.state.handles import CheckpointMetadata, OperatorRecord
from holdfast.state.pickled_states import PickledState, named_states
from holdfast.state.snapshot_io import SnapshotReader
from holdfast.types.settings import ClaimMode

logger = logging.getLogger(__name__)

_FINISHED = "FINISHED"


class JobCheckpoints:
    """The checkpoints of a job in this driver, from one leadership of it to the next: ``lead`` begins one, and
    ``close``, ``suspend`` or ``step_down`` ends it. Where nobody waits for another driver the first begins at once.
    """

    def __init__(self, job: Job, clock: Callable[[], int]) -> None:
        self._job = job
        self._clock = clock
        self._home = JobHome.of(job.facts.job_id, job.checkpoint, job.zookeeper)
        self.storage = self._home.storage
        self.leadership = self._home.leadership
        self._initial: RestorePoint | None = None
        #: The newest of this driver.
        self._attempt: int | None = None
        #: Whether the log says what of the job's state is pickled.
        self._named = False
        #: What the job ends with.
        self._savepoint: CompletedCheckpoint | None = None
        #: The savepoint that the job was stopped with, once that is recorded and while rows of it may be unpublished.
        self.stop_point: RestorePoint | None = None
        #: The end that the record tells of. It counts until the job has a checkpoint from behind it.
        self._recorded: JobEnd | None = None
        #: The end that this driver is to bring about: nothing else can become of the job.
        self.ending: JobEnd | None = None
        if self.leadership.waits:
            self._make_coordinator()
        else:
            self.lead(time.sleep)

    def lead(self, pause: Pause) -> JobEnd | None:
        """Lead the job from now on. How it ended, when another driver has brought it to its end meanwhile."""
        end = self.leadership.acquire(pause)
        try:
            if end is None:
                self._make_coordinator()
                self._open(self._home.directory)
        except BaseException:
            self.leadership.release()
            raise
        return end

    def _make_coordinator(self) -> None:
        settings, services = self._job.checkpoint, self._home.services()
        policy = CheckpointPolicy(
            interval_ms=settings.interval_ms,
            min_pause_ms=settings.min_pause_ms,
            timeout_ms=settings.timeout_ms,
            max_concurrent=settings.max_concurrent,
            tolerable_failures=settings.tolerable_failures,
            incremental=settings.incremental,
        )
        self.store = services.store
        self.coordinator = CheckpointCoordinator(policy, self._job.facts, self.storage, services, self._clock)

    def _open(self, directory: JobDirectory | None) -> None:
        """Find what drivers before this one left."""
        damaged = self.store.recover()
        kept = [each.checkpoint_id for each in self.store.all()] + [each.checkpoint_id for each in damaged]
        recovery, latest = self._job.recovery, self.store.latest()
        self._initial = self._savepoint = self.stop_point = self.ending = None
        self._recorded = None
        if directory is not None:
            directory.forget_overtaken_end()
            self._recorded = directory.read_end()
        if directory is not None and self._recorded is not None and self._recorded.still_holds(max(kept, default=None)):
            self._take_up_end(self._recorded, directory)
            # Its driver may have died before it could let go of them.
            for superseded in [*kept, *(each.checkpoint_id for each in self.store.overtaken)]:
                self.store.remove(superseded)
        elif latest is None:
            # Once the job has a checkpoint of its own, the other snapshot is not needed, and may be gone.
            self._initial = self._open_initial()
        elif recovery.path is not None:
            logger.warning(
                "Job %s has checkpoints of its own and goes on from %s, not from %s. To start from there, give it "
                "another holdfast.job-id.",
                self._job.facts.job_id,
                latest.location,
                recovery.path,
            )
        self._claim = SnapshotClaim(directory)
        if recovery.claim is ClaimMode.CLAIM and recovery.path is not None and self._initial is not None:
            self._claim.take(recovery.path)

    def _take_up_end(self, end: JobEnd, directory: JobDirectory) -> None:
        """The job has ended: go on from what it ended with, or bring the end about, or be refused; see ``job_end``."""
        own = not end.published or self.leadership.stood_by(end)
        try:
            initial = self._open_initial()
        except (CheckpointError, StorageError):
            # What the job was started from once may be gone.
            if not own:
                raise
            initial = None
        if initial is not None and end.is_with(initial.metadata, self._job.facts.job_id):
            self._initial = initial
        elif own:
            self.ending = end
            self.stop_point = self._open_stop_point(end) if not end.published else None
        else:
            raise directory.refusal(end)

    def _open_stop_point(self, end: JobEnd) -> RestorePoint:
        """The savepoint whose rows are still to be published."""
        location, job_id = end.savepoint or "", self._job.facts.job_id
        try:
            metadata, reader = open_snapshot(location)
        except (CheckpointError, StorageError) as error:
            raise JobEndedError(
                f"job {job_id} was stopped with the savepoint {location} at {end.at}, and its driver died before all "
                f"rows of it were published. They cannot be published from there: {error}. Bring the savepoint back, "
                "or go on from wherever it was copied to with execution.state-recovery.path, which publishes them."
            ) from error
        return RestorePoint(CompletedCheckpoint(metadata, location), reader, self._matched(metadata), foreign=True)

    def rescale(self, job: Job) -> None:
        """Between two attempts: the same job with another parallelism."""
        self._job = job

    def next_attempt(self) -> int:
        self._attempt = self.leadership.next_attempt()
        return self._attempt

    def begin_from(self, point: RestorePoint | None) -> None:
        """The attempt begins from ``point``: what earlier ones complete behind that does not count. The savepoint that
        the job was stopped with is one of its own, and what came before it is what it replaces.
        """
        own = point is not None and (not point.foreign or point is self.stop_point)
        self.leadership.begin_from(point.metadata.checkpoint_id if point is not None and own else 0)

    def select(self) -> RestorePoint | None:
        """The newest readable checkpoint of this job, else the snapshot that the job was started from, else nothing;
        before them all, the savepoint that it was stopped with.
        """
        if self.stop_point is not None:
            return self.stop_point
        accept = self._job.recovery.accept_repeated_output
        completed = self.coordinator.select_for_restore(accept)
        if completed is not None:
            return self.point_of(completed)
        return self._initial

    def point_of(self, completed: CompletedCheckpoint) -> RestorePoint:
        return RestorePoint(completed, self.storage.reader(), self._matched(completed.metadata), foreign=False)

    def _open_initial(self) -> RestorePoint | None:
        path = self._job.recovery.path
        if path is None:
            return None
        metadata, reader = open_snapshot(path)
        records = self._matched(metadata)
        if not self._job.recovery.allow_pickle:
            refuse_pickled(path, self._pickled_in(records, reader))
        return RestorePoint(CompletedCheckpoint(metadata, path), reader, records, foreign=True)

    def _pickled_in(self, records: Iterable[OperatorRecord], reader: SnapshotReader) -> Iterator[PickledState]:
        """What tasks and sinks would unpickle. What Spark reads has a position of its own form."""
        read_by_spark = {source.operator_id for source in self._job.data_frames}
        for record in records:
            if record.operator_id not in read_by_spark:
                yield from pickled_in(record, reader, self._job.sinks.get(record.operator_id))

    def _matched(self, metadata: CheckpointMetadata) -> tuple[OperatorRecord, ...]:
        """The snapshot's records under this job's operator ids."""
        facts = self._job.facts
        matching = match_operators(metadata, facts.operators, restore_rules(self._job.recovery))
        return tuple(
            msgspec.structs.replace(record, operator_id=operator_id) for operator_id, record in matching.records.items()
        )

    def dead_origin(self, point: RestorePoint | None) -> list[str]:
        """The job that wrote the restored snapshot, when it is another one and its driver is known to be gone."""
        if point is None or not point.foreign or point.metadata.job_id == self._job.facts.job_id:
            return []
        base, job_id = split_checkpoint_path(self._job.recovery.path or "")
        if job_id != point.metadata.job_id or not base:
            return []
        try:
            with JobDirectory(base, job_id):
                return [job_id]
        except JobLockedError:
            return []

    def _name_pickled(self, completed: CompletedCheckpoint) -> None:
        """What functions declare when they are opened is first seen in a checkpoint."""
        try:
            found = named_states(completed.metadata, self.storage.reader())
        except StorageError as error:
            logger.warning("Which states of checkpoint %d are pickled is not known: %s", completed.checkpoint_id, error)
            return
        for state in found:
            logger.warning("In checkpoints, %s", state.advice())

    def checkpoint_completed(self, completed: CompletedCheckpoint) -> None:
        """From now on the job goes on from its own checkpoints, also when it had ended before. A claimed snapshot
        counts as the first of them: it goes when there are enough others.
        """
        if not self._named:
            self._named = True
            self._name_pickled(completed)
        if self._recorded is not None and self._home.directory is not None:
            self.leadership.check()
            self._home.directory.forget_end()
            self._recorded = None
        if len(self.store.all()) >= self._job.checkpoint.num_retained:
            self._claim.settle()

    def stopped_with(self, savepoint: CompletedCheckpoint) -> None:
        """From here on the savepoint is what there is of the job: its rows are published, here or by whoever finds the
        record, and nothing goes back beyond it.
        """
        metadata, reader = open_snapshot(savepoint.location)
        self._savepoint = savepoint
        self.stop_point = RestorePoint(savepoint, reader, metadata.operators, foreign=True)
        # Whether a record that failed was written is not known: from here on there is no other way for this driver.
        self.ending = JobEnd.now(_FINISHED, savepoint, published=False, attempt=self._attempt)
        self.record_ending()

    def record_ending(self) -> None:
        """Before anything follows from the end that this driver brings about. Nothing happens when it is recorded."""
        if self.ending is None or self._home.directory is None or self.ending.is_same(self._recorded):
            return
        self.leadership.check()
        self._home.directory.record_end(self.ending)
        self._recorded = self.ending

    def published(self, snapshot: CheckpointMetadata) -> None:
        """All rows of a snapshot can be seen. If it is the one that the job ended with, nobody needs to see to it any
        more.
        """
        end = self._recorded
        if end is None or end.published or not end.is_with(snapshot, self._job.facts.job_id):
            return
        assert self._home.directory is not None
        try:
            self._home.directory.record_end(end.with_rows_published())
        except StorageError as error:
            logger.warning("That all rows are published could not be recorded: who finds this looks again: %s", error)
            return
        self._recorded = end.with_rows_published()

    @property
    def owes_rows(self) -> bool:
        """Whether the job has ended, and rows of that end may not be published yet."""
        return self.ending is not None and self._recorded is not None and not self._recorded.published

    def cancelled_behind(self, savepoint: CompletedCheckpoint) -> None:
        """The job ends without publishing the rows that the savepoint holds: whoever goes on from it does."""
        self._savepoint = savepoint

    @property
    def ended_with(self) -> str | None:
        """The savepoint that the job ends with, stopped or cancelled."""
        if self.ending is not None:
            return self.ending.savepoint
        return self._savepoint.location if self._savepoint is not None else None

    def left_to_others(self) -> tuple[OperatorRecord, ...]:
        """What must not be undone because a savepoint that the job ends with holds it."""
        return self._savepoint.metadata.operators if self._savepoint is not None else ()

    def close(self, status: str) -> None:
        """The job has ended: its checkpoints go, or stay, as the retention says."""
        if self.ending is not None:
            end = self.ending.with_rows_published()
        else:
            end = JobEnd.now(status, self._savepoint, attempt=self._attempt)
        try:
            delete = deletes_checkpoints(self._job.checkpoint.retention, status) and self.coordinator.disposable
            if delete and (status == _FINISHED or self.coordinator.may_have_published):
                delete = self._record_end(end)
                failpoint("driver.end-recorded", status=status)
            self.coordinator.shut_down(delete)
            self.leadership.announce_end(end)
        finally:
            self.leadership.release()

    def suspend(self) -> None:
        """The driver ends, and there is still something to do for the job: whatever the retention says, its
        checkpoints stay.
        """
        try:
            self.coordinator.shut_down(delete_checkpoints=False)
        finally:
            self.leadership.release()

    def step_down(self) -> None:
        """Another driver may lead the job by now: everything of it is left as it is."""
        self.coordinator.abandon()
        self.leadership.release()

    def _record_end(self, end: JobEnd) -> bool:
        """Before its checkpoints go: without them the next run of this id would begin anew. False when the checkpoints
        have to stay in the place of the record.
        """
        if self._home.directory is None or end == self._recorded:
            return True
        try:
            self.leadership.check()
            self._home.directory.record_end(end)
        except StorageError as error:
            logger.warning("That the job ended could not be recorded, so its checkpoints stay: %s", error)
            return False
        return True
