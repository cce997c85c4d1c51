"""Harnesses of the two ends of a job: sources and sinks."""

from __future__ import annotations

from typing import Any, Unpack

from holdfast.errors import ProgramError
from holdfast.job.transactions import SinkTransactions
from holdfast.runtime.endpoints import SourceOperator
from holdfast.runtime.epoch import Acknowledgement
from holdfast.runtime.sink import SinkFunction, TwoPhaseCommitSink
from holdfast.runtime.source import Source, SourceFunction
from holdfast.state.handles import CheckpointRequest, SubtaskSnapshot
from holdfast.state.snapshot_io import SnapshotWriter
from holdfast.testing.harness import Harness
from holdfast.testing.operator_places import AsSink, AsSource
from holdfast.testing.options import HarnessOptions, Setup
from holdfast.testing.outputs import Output
from holdfast.testing.pushing import OneInput
from holdfast.testing.snapshot import HarnessSnapshot


class SourceHarness(Harness):
    """One subtask of a ``Source`` or a ``SourceFunction``. Options are those of ``HarnessOptions``."""

    def __init__(self, source: Source | SourceFunction, **options: Unpack[HarnessOptions]) -> None:
        super().__init__(AsSource(source), Setup.of(options))

    def read(self, rows: int = 1_000) -> list[Any]:
        """The rows of one epoch, for which the source is asked for at most so many."""
        self._running().read(rows)
        self.end_epoch()
        return self.take_output()

    @property
    def ended(self) -> bool:
        """Whether the source has said that nothing more will come."""
        head = self._head()
        assert isinstance(head, SourceOperator)
        return head.ended


class SinkHarness(OneInput):
    """One subtask of a sink, and what the driver does with its transactions.

    ``end_epoch`` pre-commits the transaction of the epoch, ``snapshot`` commits all up to it, ``fail`` discards that of
    the running epoch. A harness that is ``restored`` first commits what the snapshot holds and aborts all others that
    are open. Options are those of ``HarnessOptions``.
    """

    def __init__(self, sink: TwoPhaseCommitSink | SinkFunction, **options: Unpack[HarnessOptions]) -> None:
        super().__init__(AsSink(sink), Setup.of(options))

    def _begin_attempt(self) -> None:
        sink, snapshot = self._place.function, self._setup.snapshot
        sinks = {self.operator_id: sink} if isinstance(sink, TwoPhaseCommitSink) else {}
        self._transactions = SinkTransactions(self.job_id, sinks)
        #: Handles of the last epoch, as ``pre_commit`` gave them.
        self.pre_committed: list[bytes] = []
        # One driver recovers the transactions of all subtasks.
        if snapshot is not None and self._setup.subtask == 0:
            self._transactions.recover([snapshot.record], snapshot.job_ids, self.attempt)

    def snapshot(self, full: bool = False, commit: bool = True) -> HarnessSnapshot:
        """A checkpoint that completes, and whose transactions are committed; without ``commit`` the driver is lost
        between the two, and it is for the next attempt to commit them.
        """
        taken = super().snapshot(full)
        if commit:
            self._transactions.publish_checkpoint(taken.epoch)
        return taken

    def checkpoint(self, request: CheckpointRequest, writer: SnapshotWriter) -> SubtaskSnapshot:
        return self._transactions.attach(super().checkpoint(request, writer), request.epoch)

    def _finish_epoch(self) -> Acknowledgement:
        acknowledgement = super()._finish_epoch()
        self.pre_committed = [each.handle for each in acknowledgement.transactions]
        self._transactions.add(acknowledgement.epoch, acknowledgement.transactions)
        self._transactions.publish_epoch(everything=False)
        return acknowledgement

    def _output(self) -> Output:
        raise ProgramError("A sink has no output: look at what it has written.")
