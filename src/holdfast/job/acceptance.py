"""Whether an epoch counts. Pure: acknowledgements in, nonces out, or an error that says what did not agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.errors import IncompleteInputError, MixedExecutionError
from holdfast.runtime.envelope import GROUP_SIZE
from holdfast.runtime.epoch import Acknowledgement, Consumed, senders_of


def accept_epoch(
    acknowledgements: Sequence[Acknowledgement], epoch: int, levels: range, slots: int, partitions: Mapping[int, int]
) -> tuple[tuple[str, ...], ...]:
    """The one nonce of every task, as [level][slot]; a level without tasks of the job's own has none.

    An epoch counts only if every task acknowledged it exactly once and every consumer of a task read all that the very
    execution sent whose store committed. Who sent a consumer nothing is not known to it. ``partitions`` are the
    DataFrame partitions of level 0 per group.
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
        senders = senders_of(consumer.level, levels, slots, partitions)
        for sender, consumed in consumer.consumed.items():
            if sender not in senders:
                raise IncompleteInputError(
                    f"Epoch {epoch}: slot {consumer.slot} of level {consumer.level} read from sender {sender}, which "
                    "is none of the level before."
                )
            _compare(consumer, sender, consumed, _producer(by_task, consumer.level, sender))
    for producer in acknowledgements:
        if producer.level + 1 in levels:
            _compare_silence(producer, by_task)
    return tuple(
        tuple(by_task[0, level, slot].nonce for slot in range(slots) if level in levels) for level in range(levels.stop)
    )


def _producer(
    by_task: Mapping[tuple[int, int, int], Acknowledgement], level: int, sender: int
) -> Acknowledgement:
    """The acknowledgement of a sender to a level."""
    group, index = divmod(sender, GROUP_SIZE)
    return by_task[group, level - 1 if group == 0 else 0, index]


def _compare(consumer: Acknowledgement, sender: int, consumed: Consumed, producer: Acknowledgement) -> None:
    """What a task read is what the acknowledged execution of its sender sent."""
    where = f"Epoch {consumer.epoch}: slot {consumer.slot} of level {consumer.level} read"
    if producer.nonce != consumed.nonce:
        raise MixedExecutionError(
            f"{where} execution {consumed.nonce} of its sender {producer.slot} (group {producer.group}), whose "
            f"acknowledged execution is {producer.nonce}. Spark ran the subtask twice; the epoch is not accepted."
        )
    sent = producer.sent.get(consumer.slot, 0)
    if sent != consumed.envelopes:
        raise IncompleteInputError(
            f"{where} {consumed.envelopes} messages of its sender {producer.slot} (group {producer.group}), which sent "
            f"{sent}. The epoch is not accepted."
        )


def _compare_silence(producer: Acknowledgement, by_task: Mapping[tuple[int, int, int], Acknowledgement]) -> None:
    """Whom a task sent something, has read it: nothing else tells a silent sender from one whose messages are lost."""
    sender = producer.group * GROUP_SIZE + producer.slot
    for slot, count in producer.sent.items():
        if sender not in by_task[0, producer.level + 1, slot].consumed:
            raise IncompleteInputError(
                f"Epoch {producer.epoch}: slot {slot} of level {producer.level + 1} read nothing of its sender "
                f"{producer.slot} (group {producer.group}), which sent {count} messages: they are lost, or another "
                "execution of the sender sent none. The epoch is not accepted."
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
