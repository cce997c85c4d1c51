"""The checkpoints of one attempt, from the acknowledgements of their tasks to the commit of what they hold."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable

from holdfast.checkpoint.completed import CompletedCheckpoint
from holdfast.checkpoint.reasons import CheckpointFailureReason
from holdfast.errors import StorageError
from holdfast.failpoints import failpoint
from holdfast.job.checkpoints import JobCheckpoints
from holdfast.job.control import JobControl
from holdfast.job.late_snapshots import LateSnapshots
from holdfast.job.transactions import SinkTransactions
from holdfast.runtime.epoch import Acknowledgement
from holdfast.runtime.upload import UploadResult
from holdfast.state.handles import CheckpointRequest, SnapshotType
from holdfast.state.snapshot_io import CheckpointNotes

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.1
_REMEMBERED = 16


class RunningCheckpoints:
    """``durable_epoch`` is the epoch of the newest checkpoint that completed, or was restored."""

    def __init__(
        self,
        checkpoints: JobCheckpoints,
        transactions: SinkTransactions,
        heartbeat_timeout_ms: int,
        durable_epoch: int,
        clock: Callable[[], int],
    ) -> None:
        self._coordinator = checkpoints.coordinator
        self._checkpoints = checkpoints
        self._transactions = transactions
        self._clock = clock
        self._late = LateSnapshots(heartbeat_timeout_ms, clock)
        #: Aborted checkpoints for which somebody may still be writing, and since when.
        self._given_up: deque[tuple[CheckpointRequest, int]] = deque(maxlen=_REMEMBERED)
        self._heartbeat_timeout = heartbeat_timeout_ms
        self.durable_epoch = durable_epoch

    @property
    def uploading(self) -> bool:
        """Whether a snapshot of an epoch that is over is still being stored."""
        return self._late.outstanding

    def take(
        self,
        request: CheckpointRequest,
        notes: CheckpointNotes | None,
        acknowledgements: list[Acknowledgement],
        own: UploadResult,
    ) -> None:
        """The epoch that carried the checkpoint is accepted. ``notes`` are where its late snapshots tell of themselves,
        ``own`` is what the driver itself stored.
        """
        for acknowledgement in acknowledgements:
            self._take_result(request, UploadResult(acknowledgement.snapshots, acknowledgement.snapshot_failure))
        self._take_result(request, own)
        self._late.expect(request, notes, [a.late_snapshots for a in acknowledgements if a.late_snapshots])
        self.settle()

    def settle(self) -> None:
        """Take what has arrived, complete what is complete and publish what it holds, abort what is late."""
        try:
            for request, result in self._late.arrived():
                self._take_result(request, result)
        except StorageError as error:
            # It is tried again. Checkpoints that wait for it expire.
            logger.warning("The checkpoint storage cannot tell what became of snapshots: %s", error)
        self._coordinator.expire(self._clock())
        for number in self._coordinator.ready():
            completed = self._coordinator.complete(number)
            if completed is not None:
                self._follow(completed)
                self._sweep_given_up()
        self._give_up(self._coordinator.pending_ids())
        if self._coordinator.job_failure is not None:
            raise self._coordinator.job_failure

    def wait(self, control: JobControl) -> None:
        """Until no snapshot is under way: being stored, or stored while it is in doubt whether this driver leads."""
        while self.uploading or self._coordinator.pending_ids():
            control.check()
            control.sleep(_POLL_SECONDS)
            self.settle()

    def abandon(self) -> None:
        """The attempt is over: nobody takes what is still being stored."""
        self._give_up(())

    def _take_result(self, request: CheckpointRequest, result: UploadResult) -> None:
        number = request.checkpoint_id
        if result.failure is not None:
            self._coordinator.abort(number, CheckpointFailureReason.CHECKPOINT_ASYNC_EXCEPTION, result.failure)
        for snapshot in result.snapshots:
            self._coordinator.acknowledge(number, self._transactions.attach(snapshot, request.epoch))

    def _follow(self, completed: CompletedCheckpoint) -> None:
        """What the type of a completed snapshot asks for: a savepoint is the user's, and nothing follows."""
        match completed.metadata.checkpoint_type:
            case SnapshotType.CHECKPOINT:
                self.durable_epoch = completed.metadata.epoch
                self._publish(completed)
                self._checkpoints.checkpoint_completed(completed)
            case SnapshotType.SYNC_SAVEPOINT:
                failpoint("driver.savepoint-completed", checkpoint=completed.checkpoint_id)
                self._checkpoints.stopped_with(completed)
                failpoint("driver.stop-recorded", checkpoint=completed.checkpoint_id)
                self._transactions.publish_checkpoint(completed.metadata.epoch)
                failpoint("driver.stop-published", checkpoint=completed.checkpoint_id)
                self._checkpoints.published(completed.metadata)
            case SnapshotType.SAVEPOINT:
                pass

    def _publish(self, completed: CompletedCheckpoint) -> None:
        if not self._transactions.has_waiting():
            return
        self._coordinator.begin_commit(completed.checkpoint_id)
        failpoint("driver.commit-begun", checkpoint=completed.checkpoint_id, epoch=completed.metadata.epoch)
        self._transactions.publish_checkpoint(completed.metadata.epoch)
        self._coordinator.committed(completed.checkpoint_id)

    def _sweep_given_up(self) -> None:
        """Delete what uploads wrote before they noticed that their checkpoint was aborted."""
        for request, since in self._given_up:
            if self._clock() - since >= self._heartbeat_timeout:
                self._coordinator.delete_files_of(request)

    def _give_up(self, pending: Iterable[int]) -> None:
        try:
            now = self._clock()
            self._given_up.extend((request, now) for request in self._late.give_up_others(frozenset(pending)))
        except StorageError as error:
            logger.warning("Uploads of an aborted checkpoint could not be told to stop: %s", error)
