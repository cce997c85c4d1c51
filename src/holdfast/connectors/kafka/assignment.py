"""Which subtask reads which partition, and how far each was read. Pure: no broker is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import xxhash

from holdfast.connectors.kafka.offsets import KafkaTopicPartition
from holdfast.types.typeinfo import TupleTypeInfo, Types

#: Of a ``SplitPosition`` in checkpoints.
STORED_TYPE = TupleTypeInfo(
    [Types.STRING(), Types.INT(), Types.LONG(), Types.LONG(), Types.STRING()],
    ["topic", "partition", "offset", "stop", "topic_id"],
)


class SplitPosition(msgspec.Struct):
    """One partition in the source's state."""

    partition: KafkaTopicPartition
    #: The next message to be read.
    offset: int
    #: The first message that is not to be read; None without an end.
    stop: int | None
    #: The topic's identity: another one of the same name is another topic. Empty where brokers have none.
    topic_id: str

    @property
    def finished(self) -> bool:
        return self.stop is not None and self.offset >= self.stop

    def stored(self) -> tuple[Any, ...]:
        """As ``STORED_TYPE`` has it."""
        return self.partition.topic, self.partition.partition, self.offset, self.stop, self.topic_id

    @staticmethod
    def restored(stored: Iterable[Any]) -> SplitPosition:
        topic, partition, offset, stop, topic_id = stored
        return SplitPosition(KafkaTopicPartition(topic, partition), offset, stop, topic_id)


def owner_of(partition: KafkaTopicPartition, parallelism: int) -> int:
    """The subtask that reads a partition. It depends on nothing else, so that all subtasks agree without talking.

    Partitions of a topic go to subtasks round-robin, and topics begin at different ones.
    """
    return (xxhash.xxh32_intdigest(partition.topic.encode()) + partition.partition) % parallelism


def share_of(
    restored: Iterable[Iterable[Any]], subtask: int, parallelism: int
) -> dict[KafkaTopicPartition, SplitPosition]:
    """What a subtask reads of the union of all subtasks' positions, whatever their number was."""
    positions = map(SplitPosition.restored, restored)
    return {
        p.partition: p for p in sorted(positions, key=_by_partition) if owner_of(p.partition, parallelism) == subtask
    }


def new_partitions(
    found: Mapping[KafkaTopicPartition, str], known: Iterable[KafkaTopicPartition], subtask: int, parallelism: int
) -> list[KafkaTopicPartition]:
    """Partitions that a subtask has to begin."""
    mine = {partition for partition in found if owner_of(partition, parallelism) == subtask}
    return sorted(mine - set(known))


def _by_partition(position: SplitPosition) -> KafkaTopicPartition:
    return position.partition
