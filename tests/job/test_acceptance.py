"""Whether an epoch counts: every task acknowledged once, and everybody read the execution that was committed."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.errors import IncompleteInputError, MixedExecutionError
from holdfast.job.acceptance import accept_epoch
from holdfast.runtime.envelope import GROUP_SIZE
from holdfast.runtime.epoch import Acknowledgement

EPOCH, LEVELS, SLOTS = 4, 3, 2


def nonce(level: int, slot: int, group: int = 0) -> str:
    return f"{group}-{level}-{slot}"


def acknowledgements(partitions: dict[int, int] | None = None) -> list[Acknowledgement]:
    """A complete epoch: each task read all tasks of the level before; level 1 read the partitions of DataFrames too."""
    partitions = partitions or {}
    found = [
        Acknowledgement(group, 0, index, EPOCH, nonce(0, index, group), {})
        for group, count in partitions.items()
        for index in range(count)
    ]
    for level in range(LEVELS):
        consumed = {slot: nonce(level - 1, slot) for slot in range(SLOTS)} if level else {}
        if level == 1:
            consumed |= {
                group * GROUP_SIZE + index: nonce(0, index, group)
                for group, count in partitions.items()
                for index in range(count)
            }
        found += [Acknowledgement(0, level, slot, EPOCH, nonce(level, slot), consumed) for slot in range(SLOTS)]
    return found


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
    found = acknowledgements(partitions)
    position = next(i for i, a in enumerate(found) if (a.group, a.level, a.slot) == (0, level, 1))
    found[position] = msgspec.structs.replace(found[position], consumed={**found[position].consumed, sender: "another"})
    with pytest.raises(
        MixedExecutionError, match=f"slot 1 of level {level} read execution another of its sender {sender % GROUP_SIZE}"
    ):
        accept(found, partitions)


@pytest.mark.parametrize("partitions", [{}, {1: 2}])
@pytest.mark.parametrize("level", [1, 2])
def test_a_consumer_that_read_less_than_all_senders_fails_the_epoch(partitions: dict[int, int], level: int) -> None:
    found = acknowledgements(partitions)
    position = next(i for i, a in enumerate(found) if a.level == level)
    consumed = dict(found[position].consumed)
    consumed.popitem()
    found[position] = msgspec.structs.replace(found[position], consumed=consumed)
    with pytest.raises(IncompleteInputError, match=f"slot 0 of level {level} read from senders"):
        accept(found, partitions)


def test_a_consumer_that_read_somebody_else_fails_the_epoch() -> None:
    found = acknowledgements()
    found[-1] = msgspec.structs.replace(found[-1], consumed={**found[-1].consumed, 7: "x"})
    with pytest.raises(IncompleteInputError, match="not those of the level before"):
        accept(found)


def test_a_job_that_reads_nothing_but_data_frames_has_no_tasks_in_level_0() -> None:
    found = [Acknowledgement(1, 0, 0, EPOCH, nonce(0, 0, 1), {})]
    for level, consumed in ((1, {GROUP_SIZE: nonce(0, 0, 1)}), (2, {slot: nonce(1, slot) for slot in range(SLOTS)})):
        found += [Acknowledgement(0, level, slot, EPOCH, nonce(level, slot), consumed) for slot in range(SLOTS)]
    expected = ((), ("0-1-0", "0-1-1"), ("0-2-0", "0-2-1"))
    assert accept_epoch(found, EPOCH, range(1, LEVELS), SLOTS, {1: 1}) == expected
    without_rows = [msgspec.structs.replace(a, consumed={}) if a.level == 1 else a for a in found[1:]]
    assert accept_epoch(without_rows, EPOCH, range(1, LEVELS), SLOTS, {}) == expected
    with pytest.raises(IncompleteInputError, match=r"none of the job's: \(0, 0, 0\)"):
        accept_epoch([*found, Acknowledgement(0, 0, 0, EPOCH, "x", {})], EPOCH, range(1, LEVELS), SLOTS, {1: 1})
