"""Whether an epoch counts: every task acknowledged once, and everybody read the execution that was committed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.errors import IncompleteInputError, MixedExecutionError
from holdfast.job.acceptance import accept_epoch
from holdfast.runtime.envelope import GROUP_SIZE
from holdfast.runtime.epoch import Acknowledgement, Consumed

EPOCH, LEVELS, SLOTS = 4, 3, 2


def nonce(level: int, slot: int, group: int = 0) -> str:
    return f"{group}-{level}-{slot}"


def sender_id(group: int, index: int) -> int:
    return group * GROUP_SIZE + index


def acknowledgements(partitions: dict[int, int] | None = None) -> list[Acknowledgement]:
    """A complete epoch. Each task read two messages of every task of the level before, and one of each partition of
    DataFrames; but the tasks of slot 1 send nothing to slot 0.
    """
    partitions = partitions or {}
    frames = [(group, index) for group, count in partitions.items() for index in range(count)]
    every = {slot: 1 for slot in range(SLOTS)}
    found = [Acknowledgement(group, 0, index, EPOCH, nonce(0, index, group), {}, every) for group, index in frames]
    for level in range(LEVELS):
        for slot in range(SLOTS):
            heard = [] if level == 0 else [sender for sender in range(SLOTS) if (sender, slot) != (1, 0)]
            consumed = {sender: Consumed(nonce(level - 1, sender), 2) for sender in heard}
            if level == 1:
                consumed |= {sender_id(*each): Consumed(nonce(0, each[1], each[0]), 1) for each in frames}
            sent = {to: 2 for to in range(SLOTS) if (slot, to) != (1, 0)}
            found.append(Acknowledgement(0, level, slot, EPOCH, nonce(level, slot), consumed, sent))
    return found


def changed(
    found: list[Acknowledgement], task: tuple[int, int, int], **changes: Any
) -> list[Acknowledgement]:
    """Acknowledgements with another one of (group, level, slot)."""
    return [msgspec.structs.replace(a, **changes) if (a.group, a.level, a.slot) == task else a for a in found]


def of(found: list[Acknowledgement], task: tuple[int, int, int]) -> Acknowledgement:
    return next(a for a in found if (a.group, a.level, a.slot) == task)


def accept(found: list[Acknowledgement], partitions: dict[int, int] | None = None) -> tuple[tuple[str, ...], ...]:
    return accept_epoch(found, EPOCH, range(LEVELS), SLOTS, partitions or {})


def test_a_complete_epoch_gives_one_nonce_per_level_and_slot() -> None:
    assert accept(acknowledgements()) == (("0-0-0", "0-0-1"), ("0-1-0", "0-1-1"), ("0-2-0", "0-2-1"))


def test_the_order_of_acknowledgements_does_not_matter() -> None:
    assert accept(list(reversed(acknowledgements()))) == accept(acknowledgements())


def test_an_acknowledgement_that_spark_collected_twice_is_one() -> None:
    assert accept([*acknowledgements(), acknowledgements()[0]]) == accept(acknowledgements())


def test_partitions_of_data_frames_must_acknowledge_too_and_hold_no_state() -> None:
    partitions = {1: 3, 2: 1}
    assert accept(acknowledgements(partitions), partitions) == accept(acknowledgements())


@pytest.mark.parametrize("lost", range(len(acknowledgements({1: 2}))))
def test_any_missing_task_fails_the_epoch(lost: int) -> None:
    found = acknowledgements({1: 2})
    gone = found.pop(lost)
    with pytest.raises(
        IncompleteInputError, match=rf"1 of 8 tasks did not acknowledge.*\({gone.group}, {gone.level}, {gone.slot}\)"
    ):
        accept(found, {1: 2})


def test_a_task_that_is_none_of_the_jobs_fails_the_epoch() -> None:
    with pytest.raises(IncompleteInputError, match=r"none of the job's: \(0, 0, 2\)"):
        accept([*acknowledgements(), Acknowledgement(0, 0, 2, EPOCH, "x", {})])


def test_an_acknowledgement_of_another_epoch_fails_the_epoch() -> None:
    found = acknowledgements()
    found[0] = msgspec.structs.replace(found[0], epoch=3)
    with pytest.raises(MixedExecutionError, match="of epoch 3 came with epoch 4"):
        accept(found)


def test_two_executions_of_one_task_fail_the_epoch() -> None:
    found = acknowledgements()
    with pytest.raises(
        MixedExecutionError,
        match=r"two executions of \(group, level, slot\) \(0, 1, 0\) acknowledged \(0-1-0 and other\)",
    ):
        accept([*found, Acknowledgement(0, 1, 0, EPOCH, "other", found[2].consumed)])


@pytest.mark.parametrize(("level", "sender"), [(1, 0), (1, 1), (2, 0), (1, GROUP_SIZE + 1)])
def test_a_consumer_that_read_another_execution_fails_the_epoch(level: int, sender: int) -> None:
    partitions = {1: 2}
    found, task = acknowledgements(partitions), (0, level, 1)
    mixed = {**of(found, task).consumed, sender: Consumed("another", 2)}
    with pytest.raises(
        MixedExecutionError, match=f"slot 1 of level {level} read execution another of its sender {sender % GROUP_SIZE}"
    ):
        accept(changed(found, task, consumed=mixed), partitions)


@pytest.mark.parametrize("partitions", [{}, {1: 2}])
@pytest.mark.parametrize("task", [(0, 1, 0), (0, 1, 1), (0, 2, 0), (0, 2, 1)])
def test_messages_that_nobody_read_fail_the_epoch(partitions: dict[int, int], task: tuple[int, int, int]) -> None:
    """All messages of a sender to a receiver are lost: to the receiver it looks as if the sender had nothing to say."""
    found = acknowledgements(partitions)
    for lost in of(found, task).consumed:
        less = {sender: read for sender, read in of(found, task).consumed.items() if sender != lost}
        with pytest.raises(IncompleteInputError, match=f"slot {task[2]} of level {task[1]} read nothing of its sender"):
            accept(changed(found, task, consumed=less), partitions)


def test_a_silent_execution_is_none_that_somebody_read() -> None:
    """The first execution of a task sent something, which was read; the one that counts sent nothing."""
    found = acknowledgements()
    silent = changed(found, (0, 0, 1), sent={})
    with pytest.raises(IncompleteInputError, match=r"slot 1 of level 1 read 2 messages of its sender 1 .*sent 0"):
        accept(silent)


def test_an_execution_that_sent_to_somebody_who_heard_of_no_execution_fails_the_epoch() -> None:
    """The first execution of a task was silent, and the one that counts was not."""
    found = changed(acknowledgements(), (0, 1, 1), sent={0: 1, 1: 2})
    with pytest.raises(IncompleteInputError, match=r"slot 0 of level 2 read nothing of its sender 1 .*sent 1 messages"):
        accept(found)


@pytest.mark.parametrize("read", [1, 3])
def test_a_consumer_that_read_less_or_more_than_was_sent_fails_the_epoch(read: int) -> None:
    found, task = acknowledgements(), (0, 2, 1)
    other = {**of(found, task).consumed, 0: Consumed(nonce(1, 0), read)}
    with pytest.raises(IncompleteInputError, match=f"slot 1 of level 2 read {read} messages of its sender 0 .*sent 2"):
        accept(changed(found, task, consumed=other))


def test_a_consumer_that_read_somebody_else_fails_the_epoch() -> None:
    found, task = acknowledgements(), (0, 2, 1)
    other = {**of(found, task).consumed, 7: Consumed("x", 1)}
    with pytest.raises(IncompleteInputError, match="read from sender 7, which is none of the level before"):
        accept(changed(found, task, consumed=other))


def test_what_the_last_level_sends_is_for_the_driver_alone() -> None:
    assert accept(changed(acknowledgements(), (0, 2, 0), sent={0: 5, 1: 7})) == accept(acknowledgements())


def test_a_job_that_reads_nothing_but_data_frames_has_no_tasks_in_level_0() -> None:
    frame = Acknowledgement(1, 0, 0, EPOCH, nonce(0, 0, 1), {}, {0: 1})
    found = [frame]
    for level in (1, 2):
        for slot in range(SLOTS):
            consumed = {slot: Consumed(nonce(1, slot), 1)} if level == 2 else {}
            if (level, slot) == (1, 0):
                consumed = {GROUP_SIZE: Consumed(frame.nonce, 1)}
            found.append(Acknowledgement(0, level, slot, EPOCH, nonce(level, slot), consumed, {slot: 1}))
    expected = ((), ("0-1-0", "0-1-1"), ("0-2-0", "0-2-1"))
    assert accept_epoch(found, EPOCH, range(1, LEVELS), SLOTS, {1: 1}) == expected
    without_rows = changed(found[1:], (0, 1, 0), consumed={})
    assert accept_epoch(without_rows, EPOCH, range(1, LEVELS), SLOTS, {}) == expected
    with pytest.raises(IncompleteInputError, match=r"none of the job's: \(0, 0, 0\)"):
        accept_epoch([*found, Acknowledgement(0, 0, 0, EPOCH, "x", {})], EPOCH, range(1, LEVELS), SLOTS, {1: 1})
