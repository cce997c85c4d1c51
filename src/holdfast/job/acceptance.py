"""Whether an epoch counts. Pure: acknowledgements in, nonces out, or an error that says what did not agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.errors import IncompleteInputError, MixedExecutionError
from holdfast.runtime.envelope import GROUP_SIZE
from holdfast.runtime.epoch import Acknowledgement, senders_of


def accept_epoch(
    acknowledgements: Sequence[Acknowledgement], epoch: int, levels: range, slots: int, partitions: Mapping[int, int]
) -> tuple[tuple[str, ...], ...]:
    """The one nonce of every task, as [level][slot]; a level without tasks of the job's own has none.

    An epoch counts only if every task acknowledged it exactly once and every consumer of a task read the very
    execution that the task's store committed. ``partitions`` are the DataFrame partitions of level 0 per group.
    """
    by_task = _by_task(acknowledgements, epoch)
    expected = {(0, level, slot) for level in levels for slot in range(slots)}
    expected |= {(group, 0, index) for group, count in partitions.items() for index in range(count)}
    missing = sorted(expected - by_task.keys())
    if missing:
        raise IncompleteInputError(
            f"Epoch {epoch}: {len(missing)} of {len(expected)} tasks did not acknowledge, the first is (group, "
            f"level, slot) {missing[0]}."
        )
    unknown = sorted(by_task.keys() - expected)
    if unknown:
        raise IncompleteInputError(
            f"Epoch {epoch}: an acknowledgement came from a task that is none of the job's: {unknown[0]}."
        )
    for consumer in acknowledgements:
        if consumer.consumed.keys() != set(senders_of(consumer.level, levels, slots, partitions)):
            raise IncompleteInputError(
                f"Epoch {epoch}: slot {consumer.slot} of level {consumer.level} read from senders "
                f"{sorted(consumer.consumed)}, which are not those of "
                "the level before."
            )
        for sender, nonce in consumer.consumed.items():
            group, index = divmod(sender, GROUP_SIZE)
            producer = by_task[group, consumer.level - 1 if group == 0 else 0, index]
            if producer.nonce != nonce:
                raise MixedExecutionError(
                    f"Epoch {epoch}: slot {consumer.slot} of level {consumer.level} read execution {nonce} of its "
                    f"sender {index} (group {group}), whose "
                    f"acknowledged execution is {producer.nonce}. Spark ran the subtask twice; the epoch is not "
                    "accepted."
                )
    return tuple(
        tuple(by_task[0, level, slot].nonce for slot in range(slots) if level in levels) for level in range(levels.stop)
    )


def _by_task(acknowledgements: Sequence[Acknowledgement], epoch: int) -> dict[tuple[int, int, int], Acknowledgement]:
    by_task: dict[tuple[int, int, int], Acknowledgement] = {}
    for acknowledgement in acknowledgements:
        if acknowledgement.epoch != epoch:
            raise MixedExecutionError(f"An acknowledgement of epoch {acknowledgement.epoch} came with epoch {epoch}.")
        task = (acknowledgement.group, acknowledgement.level, acknowledgement.slot)
        other = by_task.setdefault(task, acknowledgement)
        if other.nonce != acknowledgement.nonce:
            raise MixedExecutionError(
                f"Epoch {epoch}: two executions of (group, level, slot) {task} acknowledged ({other.nonce} and "
                f"{acknowledgement.nonce})."
            )
    return by_task
