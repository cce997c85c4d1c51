"""The driver's half of two-phase commit, with a sink that keeps its transactions in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pytest

from holdfast.errors import LeadershipLostError, TransactionError
from holdfast.job.transactions import SinkTransactions
from holdfast.runtime.batch import Batch
from holdfast.runtime.epoch import SinkHandle
from holdfast.runtime.sink import PublishOn, TransactionName, TwoPhaseCommitSink
from holdfast.state.handles import OperatorRecord, SubtaskSnapshot

JOB = "job"


class MemorySink(TwoPhaseCommitSink):
    """Committed rows in the order of their commits; a handle is the encoded name of its transaction."""

    def __init__(self, publish_on: PublishOn = PublishOn.CHECKPOINT) -> None:
        self.publish_on = publish_on
        self.open: dict[TransactionName, list[Any]] = {}
        self.published: list[Any] = []
        self.committed: set[TransactionName] = set()
        self.recovered: list[bytes] = []
        self.broken: Exception | None = None

    def begin(self, name: TransactionName) -> TransactionName:
        self.open[name] = []
        return name

    def write(self, transaction: TransactionName, batch: Batch) -> None:
        self.open[transaction] += batch.values

    def pre_commit(self, transaction: TransactionName) -> bytes:
        return msgspec.msgpack.encode(transaction)

    def discard(self, transaction: TransactionName) -> None:
        self.abort(transaction)

    def commit(self, handles: Sequence[bytes]) -> None:
        if self.broken is not None:
            raise self.broken
        for name in map(self.name_of, handles):
            if name in self.committed:
                continue
            if name not in self.open:
                raise TransactionError(f"{name} is lost")
            self.published += self.open.pop(name)
            self.committed.add(name)

    def recover_and_commit(self, handles: Sequence[bytes]) -> None:
        self.recovered += handles
        self.commit(handles)

    def open_transactions(self, job_id: str) -> Iterable[TransactionName]:
        return [name for name in self.open if name.job_id == job_id]

    def abort(self, name: TransactionName) -> None:
        self.open.pop(name, None)

    def name_of(self, handle: bytes) -> TransactionName:
        return msgspec.msgpack.decode(handle, type=TransactionName)


def pre_commit(
    sink: MemorySink, epoch: int, rows: list[Any], subtask: int = 0, operator_id: str = "sink", job_id: str = JOB
) -> SinkHandle:
    transaction = sink.begin(TransactionName(job_id, operator_id, subtask, 1, epoch, f"n{epoch}"))
    sink.write(transaction, Batch(rows))
    return SinkHandle(operator_id, subtask, sink.pre_commit(transaction))


def record(operator_id: str, *handles: bytes) -> OperatorRecord:
    snapshot = SubtaskSnapshot(operator_id, 0, transactions=handles)
    return OperatorRecord(operator_id, None, operator_id, 1, 128, (snapshot,))


def manager(sink: MemorySink, operator_id: str = "sink") -> SinkTransactions:
    return SinkTransactions(JOB, {operator_id: sink})


def test_a_checkpoint_publishes_what_was_pre_committed_up_to_its_epoch() -> None:
    sink = MemorySink()
    transactions = manager(sink)
    for epoch in (1, 2, 3):
        transactions.add(epoch, [pre_commit(sink, epoch, [epoch * 10])])
    transactions.publish_checkpoint(2)
    assert sink.published == [10, 20]
    assert transactions.has_waiting()
    transactions.publish_checkpoint(3)
    assert sink.published == [10, 20, 30]
    assert not transactions.has_waiting()


def test_transactions_are_committed_in_the_order_of_epochs_then_subtasks() -> None:
    sink = MemorySink()
    transactions = manager(sink)
    for epoch in (1, 2):
        transactions.add(epoch, [pre_commit(sink, epoch, [(epoch, subtask)], subtask) for subtask in (1, 0)])
    transactions.publish_checkpoint(2)
    assert sink.published == [(1, 0), (1, 1), (2, 0), (2, 1)]


def test_a_snapshot_takes_the_handles_of_its_own_subtask_up_to_its_epoch() -> None:
    sink = MemorySink()
    transactions = manager(sink)
    handles = {(e, s): pre_commit(sink, e, [e], s) for e in (1, 2, 3) for s in (0, 1)}
    for (epoch, _), handle in handles.items():
        transactions.add(epoch, [handle])
    attached = transactions.attach(SubtaskSnapshot("sink", 1, bytes_written=7), 2)
    assert attached.transactions == (handles[1, 1].handle, handles[2, 1].handle)
    assert attached.bytes_written == 7


def test_snapshots_of_others_and_of_sinks_without_transactions_stay_as_they_are() -> None:
    transactions = manager(MemorySink())
    snapshot = SubtaskSnapshot("map", 0)
    assert transactions.attach(snapshot, 9) is snapshot


def test_a_handle_stays_in_snapshots_until_it_is_committed() -> None:
    sink = MemorySink()
    transactions = manager(sink)
    handle = pre_commit(sink, 1, [1])
    transactions.add(1, [handle])
    for epoch in (1, 2):  # the first checkpoint was aborted
        assert transactions.attach(SubtaskSnapshot("sink", 0), epoch).transactions == (handle.handle,)
    transactions.publish_checkpoint(2)
    assert transactions.attach(SubtaskSnapshot("sink", 0), 3).transactions == ()


@pytest.mark.parametrize(
    ("publish_on", "everything", "published"),
    [(PublishOn.EPOCH, False, [1]), (PublishOn.CHECKPOINT, False, []), (PublishOn.CHECKPOINT, True, [1])],
    ids=["sink that publishes per epoch", "exactly once", "at least once"],
)
def test_the_end_of_an_epoch(publish_on: PublishOn, everything: bool, published: list[int]) -> None:
    sink = MemorySink(publish_on)
    transactions = manager(sink)
    transactions.add(1, [pre_commit(sink, 1, [1])])
    transactions.publish_epoch(everything)
    assert sink.published == published
    transactions.publish_epoch(everything)
    assert sink.published == published


# -- recovery ----------------------------------------------------------------------------------------------------------


def test_recovery_commits_what_the_checkpoint_holds_and_aborts_the_rest() -> None:
    sink = MemorySink()
    kept, lost = pre_commit(sink, 1, [1]), pre_commit(sink, 2, [2])
    manager(sink).recover([record("sink", kept.handle)], [], 9)
    assert sink.published == [1]
    assert sink.open == {}
    assert lost.handle not in sink.recovered


def test_recovery_is_idempotent() -> None:
    sink = MemorySink()
    handle = pre_commit(sink, 1, [1]).handle
    sink.commit([handle])
    for _ in range(2):
        manager(sink).recover([record("sink", handle)], [], 9)
    assert sink.published == [1]


def test_recovery_without_a_checkpoint_aborts_everything_of_the_job_and_forgets_what_waited() -> None:
    sink = MemorySink()
    transactions = manager(sink)
    transactions.add(1, [pre_commit(sink, 1, [1])])
    pre_commit(sink, 1, ["other"], job_id="another job")
    transactions.recover([], [], 9)
    assert not transactions.has_waiting()
    assert [name.job_id for name in sink.open] == ["another job"]
    assert sink.published == []


def test_transactions_of_a_dead_job_whose_snapshot_is_restored_are_aborted_too() -> None:
    sink = MemorySink()
    kept, lost = pre_commit(sink, 1, [1], job_id="dead"), pre_commit(sink, 2, [2], job_id="dead")
    manager(sink).recover([record("sink", kept.handle)], ["dead"], 9)
    assert sink.published == [1]
    assert sink.open == {}
    assert lost.handle not in sink.recovered


def test_two_sinks_on_one_place_leave_each_other_alone() -> None:
    shared = MemorySink()
    kept = {name: pre_commit(shared, 1, [name], operator_id=name).handle for name in ("a", "b")}
    for name in ("a", "b"):
        pre_commit(shared, 2, ["lost"], operator_id=name)
    transactions = SinkTransactions(JOB, {"a": shared, "b": shared})
    transactions.recover([record(name, handle) for name, handle in kept.items()], [], 9)
    assert shared.published == ["a", "b"]
    assert shared.open == {}


def test_transactions_of_an_operator_that_the_program_no_longer_has_are_aborted() -> None:
    sink = MemorySink()
    pre_commit(sink, 1, ["old"], operator_id="gone")
    manager(sink).recover([], [], 9)
    assert sink.open == {}


def test_a_driver_that_does_not_lead_any_more_neither_commits_nor_aborts() -> None:
    sink = MemorySink()
    lost = LeadershipLostError("another driver was elected")

    def confirm() -> None:
        raise lost

    transactions = SinkTransactions(JOB, {"sink": sink}, confirm)
    waiting = pre_commit(sink, 1, ["a"])
    transactions.add(1, [waiting])
    for act in (
        lambda: transactions.publish_checkpoint(1),
        lambda: transactions.publish_epoch(everything=True),
        transactions.abort_strays,
        lambda: transactions.recover([record("sink", waiting.handle)], [], 9),
        lambda: transactions.recover([], [], 9),
    ):
        with pytest.raises(LeadershipLostError):
            act()
    assert sink.published == []
    assert sink.open.keys() == {sink.name_of(waiting.handle)}


# -- failures ----------------------------------------------------------------------------------------------------------


def test_a_failed_commit_keeps_the_handles_and_says_what_follows() -> None:
    sink = MemorySink()
    transactions = manager(sink)
    transactions.add(1, [pre_commit(sink, 1, [1])])
    sink.broken = OSError("disk is gone")
    with pytest.raises(
        TransactionError,
        match=r"MemorySink could not commit 1 transactions: OSError: disk is gone.*next attempt commits them again",
    ):
        transactions.publish_checkpoint(1)
    sink.broken = None
    transactions.publish_checkpoint(1)
    assert sink.published == [1]


def test_a_lost_transaction_is_an_error_of_its_own() -> None:
    sink = MemorySink()
    handle = pre_commit(sink, 1, [1]).handle
    sink.open.clear()
    with pytest.raises(TransactionError, match="is lost"):
        manager(sink).recover([record("sink", handle)], [], 9)


def test_at_the_end_of_a_job_what_a_repeated_execution_left_is_dropped() -> None:
    sink = MemorySink()
    transactions = manager(sink)
    transactions.recover([], [], attempt=1)
    committed, waiting = pre_commit(sink, 1, ["a"]), pre_commit(sink, 2, ["b"])
    transactions.add(1, [committed])
    transactions.add(2, [waiting])
    transactions.publish_checkpoint(1)
    stray = sink.begin(TransactionName(JOB, "sink", 0, 1, 1, "another execution"))
    foreign = sink.begin(TransactionName("another job", "sink", 0, 1, 1, "n1"))
    newer = sink.begin(TransactionName(JOB, "sink", 0, 2, 1, "of the driver that took over"))
    transactions.abort_strays()
    assert stray not in sink.open
    assert sink.open.keys() == {sink.name_of(waiting.handle), foreign, newer}
    assert sink.published == ["a"]
