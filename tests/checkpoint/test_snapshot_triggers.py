"""Which request for a snapshot is taken up next."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.checkpoint.reasons import CheckpointFailureReason
from holdfast.checkpoint.snapshot_triggers import SnapshotTrigger, TriggerQueue
from holdfast.errors import CheckpointError
from holdfast.state.handles import SnapshotType


def queue(limit: int = 1000) -> TriggerQueue:
    opened = TriggerQueue(limit)
    opened.open()
    return opened


def reason_of(trigger: SnapshotTrigger) -> CheckpointFailureReason | None:
    error = trigger.outcome.exception(timeout=0)
    assert isinstance(error, CheckpointError)
    return error.reason


@given(st.lists(st.sampled_from(SnapshotType)))
def test_savepoints_come_before_checkpoints_and_older_ones_before_newer(types: list[SnapshotType]) -> None:
    waiting = queue()
    asked = [SnapshotTrigger(each) for each in types]
    for trigger in asked:
        waiting.add(trigger)
    taken = [waiting.take(may_checkpoint=True) for _ in asked]
    savepoints = [trigger for trigger in asked if trigger.snapshot_type.is_savepoint]
    assert taken == savepoints + [trigger for trigger in asked if not trigger.snapshot_type.is_savepoint]
    assert not waiting.waiting()
    assert waiting.take(may_checkpoint=True) is None


def test_a_checkpoint_waits_while_too_many_are_pending_and_a_savepoint_does_not() -> None:
    waiting = queue()
    checkpoint, savepoint = SnapshotTrigger(), SnapshotTrigger(SnapshotType.SAVEPOINT)
    waiting.add(checkpoint)
    assert waiting.take(may_checkpoint=False) is None
    assert not waiting.waiting(may_checkpoint=False)
    waiting.add(savepoint)
    assert waiting.waiting(may_checkpoint=False)
    assert waiting.take(may_checkpoint=False) is savepoint
    assert waiting.take(may_checkpoint=True) is checkpoint


@pytest.mark.parametrize(
    "last", [SnapshotTrigger(SnapshotType.SYNC_SAVEPOINT), SnapshotTrigger(SnapshotType.SAVEPOINT, cancel_job=True)]
)
def test_what_ends_the_job_is_taken_apart(last: SnapshotTrigger) -> None:
    waiting = queue()
    first = SnapshotTrigger(SnapshotType.SAVEPOINT)
    for trigger in (first, last):
        waiting.add(trigger)
    assert waiting.take_last() is None, "another savepoint comes before it"
    assert waiting.take(may_checkpoint=True) is first
    assert waiting.take_last() is last
    assert waiting.take_last() is None


def test_a_full_queue_refuses_the_next() -> None:
    waiting = queue(limit=2)
    asked = [SnapshotTrigger() for _ in range(3)]
    for trigger in asked:
        waiting.add(trigger)
    assert reason_of(asked[2]) is CheckpointFailureReason.TOO_MANY_CHECKPOINT_REQUESTS
    assert not asked[0].outcome.done()


def test_without_a_running_attempt_requests_fail_at_once() -> None:
    waiting = TriggerQueue()
    early, served, late = SnapshotTrigger(), SnapshotTrigger(), SnapshotTrigger()
    waiting.add(early)
    assert reason_of(early) is CheckpointFailureReason.NOT_ALL_REQUIRED_TASKS_RUNNING
    waiting.open()
    waiting.add(served)
    waiting.close(CheckpointFailureReason.EPOCH_FAILED)
    assert reason_of(served) is CheckpointFailureReason.EPOCH_FAILED
    waiting.add(late)
    assert reason_of(late) is CheckpointFailureReason.NOT_ALL_REQUIRED_TASKS_RUNNING
    assert not waiting.waiting()
