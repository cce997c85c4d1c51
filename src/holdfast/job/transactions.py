"""The driver's half of two-phase commit: which transactions wait for which checkpoint, and what recovery does with
them.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

import msgspec

from holdfast.errors import TransactionError
from holdfast.failpoints import failpoint
from holdfast.runtime.epoch import SinkHandle
from holdfast.runtime.sink import PublishOn, TwoPhaseCommitSink
from holdfast.state.handles import OperatorRecord, SubtaskSnapshot

logger = logging.getLogger(__name__)

_Owner = tuple[str, int]


class SinkTransactions:
    """Handles that were pre-committed and not yet committed, per (sink, subtask), in the order of their epochs.

    ``confirm`` is called ahead of everything that others can see; it raises when this driver does not lead the job any
    more. Should it lose the job right behind that, nothing is done that its successor would not do: what is committed
    is in a completed checkpoint, and of the job's transactions none is aborted that began after this attempt.
    """

    def __init__(
        self, job_id: str, sinks: Mapping[str, TwoPhaseCommitSink], confirm: Callable[[], None] = lambda: None
    ) -> None:
        self._job_id = job_id
        self._sinks = sinks
        self._confirm = confirm
        self._attempt = 0
        self._waiting: dict[_Owner, list[tuple[int, bytes]]] = defaultdict(list)

    def recover(
        self,
        restored: Iterable[OperatorRecord],
        snapshot_jobs: Iterable[str],
        attempt: int,
        left_to_others: Iterable[OperatorRecord] = (),
    ) -> None:
        """``attempt`` begins, or was the last one: commit what the restored checkpoint holds, abort everything else
        that is open and not ``left_to_others``.

        ``snapshot_jobs`` are jobs whose open transactions are ours to abort: this one, and one that is known to be
        dead.
        """
        self._waiting.clear()
        self._attempt = attempt
        held, others = _handles_of(restored), _handles_of(left_to_others)
        jobs = [self._job_id, *snapshot_jobs]
        for operator_id, sink in self._sinks.items():
            handles = held.get(operator_id, [])
            if handles:
                self._confirm()
                _commit(sink, handles, recovering=True)
            self._abort_others(operator_id, jobs, handles + others.get(operator_id, []))

    def abort_strays(self) -> None:
        """At the end of the job: drop what was left by executions that Spark repeated, of which only one counts."""
        for operator_id in self._sinks:
            waiting = [h for owner, due in self._waiting.items() if owner[0] == operator_id for _, h in due]
            self._abort_others(operator_id, [self._job_id], waiting)

    def _abort_others(self, operator_id: str, jobs: Iterable[str], handles: Iterable[bytes]) -> None:
        """Abort the sink's open transactions of these jobs, except those that ``handles`` need."""
        self._confirm()
        sink = self._sinks[operator_id]
        kept = {name for handle in handles for name in sink.needs(handle)}
        for job in jobs:
            for name in list(sink.open_transactions(job)):
                if job == self._job_id and name.attempt > self._attempt:
                    continue
                if name not in kept and (name.operator_id == operator_id or name.operator_id not in self._sinks):
                    logger.info("Aborting transaction %s: it is in no completed checkpoint", name)
                    sink.abort(name)

    def add(self, epoch: int, handles: Iterable[SinkHandle]) -> None:
        for handle in handles:
            self._waiting[handle.operator_id, handle.subtask].append((epoch, handle.handle))

    def attach(self, snapshot: SubtaskSnapshot, epoch: int) -> SubtaskSnapshot:
        """A sink's snapshot holds every transaction up to its epoch that is not committed yet."""
        waiting = self._waiting.get((snapshot.operator_id, snapshot.subtask))
        if not waiting:
            return snapshot
        return msgspec.structs.replace(snapshot, transactions=tuple(h for e, h in waiting if e <= epoch))

    def publish_epoch(self, everything: bool) -> None:
        """At an epoch's end: commit sinks that publish then, or all of them (at least once; end of input without
        checkpoints).
        """
        self._commit({i: s for i, s in self._sinks.items() if everything or s.publish_on is PublishOn.EPOCH}, None)

    def publish_checkpoint(self, epoch: int) -> None:
        """A checkpoint of this epoch is durable: commit what it holds."""
        self._commit(self._sinks, epoch)

    def release(self) -> None:
        """Nothing more is committed by this driver: sinks let go of what they kept open for it."""
        for operator_id, sink in self._sinks.items():
            try:
                sink.release(self._job_id, operator_id)
            except Exception as error:
                logger.warning("%s could not let go of its clients: %s", type(sink).__name__, error)

    def has_waiting(self) -> bool:
        return any(self._waiting.values())

    def _commit(self, sinks: Mapping[str, TwoPhaseCommitSink], through: int | None) -> None:
        for operator_id, sink in sinks.items():
            owners = [owner for owner in self._waiting if owner[0] == operator_id]
            due = sorted(
                (e, owner[1], h) for owner in owners for e, h in self._waiting[owner] if through is None or e <= through
            )
            if not due:
                continue
            self._confirm()
            failpoint("sink.before-commit", operator=operator_id)
            _commit(sink, [handle for _, _, handle in due], recovering=False)
            failpoint("sink.after-commit", operator=operator_id)
            for owner in owners:
                self._waiting[owner] = [(e, h) for e, h in self._waiting[owner] if through is not None and e > through]


def _handles_of(records: Iterable[OperatorRecord]) -> dict[str, list[bytes]]:
    return {record.operator_id: [handle for s in record.subtasks for handle in s.transactions] for record in records}


def _commit(sink: TwoPhaseCommitSink, handles: list[bytes], recovering: bool) -> None:
    try:
        if recovering:
            sink.recover_and_commit(handles)
        else:
            sink.commit(handles)
    except TransactionError:
        raise
    except Exception as error:
        raise TransactionError(
            f"{type(sink).__name__} could not commit {len(handles)} transactions: {type(error).__name__}: {error}. "
            "The checkpoint stays valid; the next attempt commits them again."
        ) from error
