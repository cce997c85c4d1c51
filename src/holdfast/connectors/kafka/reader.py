"""One subtask of a Kafka source."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.connectors.kafka import consumers
from holdfast.connectors.kafka.assignment import SplitPosition, new_partitions, share_of
from holdfast.connectors.kafka.offsets import KafkaOffsetsInitializer, KafkaTopicPartition, OffsetQuestions
from holdfast.connectors.kafka.topics import Subscription, partitions_of
from holdfast.connectors.reading import Budget
from holdfast.connectors.serialization import DeserializationSchema
from holdfast.errors import SourceError
from holdfast.runtime.batch import Batch, Origin
from holdfast.runtime.source import ReaderContext, ReadLimit, SourceReader

logger = logging.getLogger(__name__)

#: Positions of checkpoints of which nothing more was heard are forgotten beyond this number.
_REMEMBERED_CHECKPOINTS = 64


@dataclass(frozen=True)
class ReadingOptions:
    """What a source's builder was told. Picklable."""

    subscription: Subscription
    #: Of the consumer, with its defaults.
    settings: Mapping[str, Any]
    schema: DeserializationSchema
    start: KafkaOffsetsInitializer
    stop: KafkaOffsetsInitializer | None
    #: None: partitions are looked for once.
    discovery_ms: int | None
    commits: bool
    clock: Callable[[], float]

    @property
    def can_end(self) -> bool:
        """The partitions are those of the first start, and each of them has an end."""
        return self.stop is not None and self.discovery_ms is None


class KafkaSourceReader(SourceReader):
    """Reads the partitions that are its subtask's, in whatever order their messages arrive.

    The brokers are asked for the first time in ``read``, so that making a reader costs nothing. Partitions that appear
    later are read from their first message on: all of it came after the job's start.
    """

    def __init__(self, source_id: str, options: ReadingOptions, context: ReaderContext) -> None:
        self._key = (source_id, context.subtask)
        self._options = options
        self._task = context.task
        self._place = (context.subtask, context.parallelism)
        self._fresh = context.restored is None
        self._splits = share_of(context.restored or [], *self._place)
        self._looked_at: float | None = None
        self._checkpoints: dict[int, dict[KafkaTopicPartition, int]] = {}

    def read(self, limit: ReadLimit) -> Iterator[Batch]:
        if limit.rows <= 0:
            return
        self._look_for_partitions()
        active = self._active()
        if active:
            yield from self._read_from(active, limit)
        self._update_ended()

    def positions(self) -> list[Any]:
        # A snapshot ahead of the first read must say where reading begins.
        self._look_for_partitions()
        return [split.stored() for split in self._splits.values()]

    def positions_at(self, checkpoint_id: int) -> list[Any]:
        positions = self.positions()
        if self._options.commits:
            self._checkpoints[checkpoint_id] = {p: split.offset for p, split in self._splits.items()}
            for old in sorted(self._checkpoints)[:-_REMEMBERED_CHECKPOINTS]:
                del self._checkpoints[old]
        return positions

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        offsets = self._checkpoints.get(checkpoint_id)
        for known in [known for known in self._checkpoints if known <= checkpoint_id]:
            del self._checkpoints[known]
        if offsets:
            consumers.obtain(self._key, self._options.settings, self._task).commit(offsets)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._checkpoints.pop(checkpoint_id, None)

    def close(self) -> None:
        consumers.close(self._key)

    # -- messages

    def _active(self) -> dict[KafkaTopicPartition, int]:
        """Where the partitions stand from which more may come."""
        covers = self._options.subscription.covers
        return {p: s.offset for p, s in self._splits.items() if not s.finished and covers(p)}

    def _read_from(self, active: dict[KafkaTopicPartition, int], limit: ReadLimit) -> Iterator[Batch]:
        consumer = consumers.obtain(self._key, self._options.settings, self._task)
        splits = frozenset(map(str, active))
        budget = Budget(limit)
        while splits and (rows := budget.next_chunk()):
            wanted = {p: offset for p, offset in self._active().items() if not limit.waits(str(p))}
            if not wanted:
                return
            consumer.stand_at(wanted)
            polled = consumer.next_messages(rows, limit.deadline)
            for partition, messages in polled.runs:
                batch = self._take(self._splits[partition], messages, splits)
                if batch is not None:
                    budget.spend(len(batch))
                    yield batch
            for partition, end in polled.ends.items():
                split = self._splits[partition]
                # What lies between is not for readers: marks of transactions, and those that were aborted.
                split.offset = max(split.offset, end)
            if not polled:
                return
            splits = frozenset(map(str, self._active()))

    def _take(self, split: SplitPosition, messages: list[Any], splits: frozenset[str]) -> Batch | None:
        """The rows of messages of one partition; None where there are none."""
        next_offset = messages[-1].offset() + 1
        if split.stop is not None and next_offset > split.stop:
            stop = split.stop
            messages = [message for message in messages if message.offset() < stop]
        # A message without a value says that its key was deleted, and holds no row.
        messages = [message for message in messages if message.value() is not None]
        batch, kept = self._decode(messages) if messages else (None, None)
        messages = messages if kept is None else [messages[place] for place in kept]
        if batch is not None:
            batch.origin = Origin(str(split.partition), splits, [message.timestamp()[1] for message in messages])
        split.offset = next_offset
        return batch

    def _decode(self, messages: list[Any]) -> tuple[Batch | None, Sequence[int] | None]:
        """Rows, and which of the messages they are of."""
        schema = self._options.schema
        values = [message.value() for message in messages]
        try:
            batch, kept = schema.read_all(values)
        except Exception as error:
            raise self._bad_message(messages, error) from error
        return (batch if len(batch) else None), kept

    def _bad_message(self, messages: list[Any], error: Exception) -> SourceError:
        first = messages[0]
        for message in messages:
            try:
                self._options.schema.deserialize_all([message.value()])
            except Exception as found:
                first, error = message, found
                break
        shown = first.value()[:200]
        return SourceError(
            f"{self._task}: the message at offset {first.offset()} of {first.topic()}-{first.partition()} cannot be "
            f"read as {type(self._options.schema).__name__} ({type(error).__name__}: {error}). It begins with "
            f"{shown!r}. Correct the schema, or read bytes (ByteArraySchema) and decide in a function; nothing was "
            "skipped."
        )

    def _update_ended(self) -> None:
        self.ended = self._options.can_end and not self._active()

    # -- partitions

    def _look_for_partitions(self) -> None:
        now = self._options.clock()
        if not self._look_is_due(now):
            return
        found = partitions_of(self._options.subscription, self._options.settings, self._task)
        first = self._looked_at is None
        if first and not self._fresh:
            self._check_restored(found)
        if self._fresh or not self._options.can_end:
            self._begin(found, first and self._fresh)
        self._looked_at = now

    def _look_is_due(self, now: float) -> bool:
        if self._looked_at is None:
            return True
        interval = self._options.discovery_ms
        # A wall clock that was set back must not stop the search.
        return interval is not None and not 0 <= (now - self._looked_at) * 1000 < interval

    def _begin(self, found: Mapping[KafkaTopicPartition, str], at_start: bool) -> None:
        options = self._options
        new = new_partitions(found, self._splits, *self._place)
        questions = OffsetQuestions(options.settings, self._task)
        starts = questions.resolve(options.start if at_start else KafkaOffsetsInitializer.earliest(), new)
        stops = questions.resolve(options.stop, new) if options.stop is not None else {}
        for partition in new:
            self._splits[partition] = SplitPosition(
                partition, starts[partition], stops.get(partition), found[partition]
            )
        if new and not at_start:
            logger.info("%s begins new partitions: %s", self._task, ", ".join(map(str, new)))

    def _check_restored(self, found: Mapping[KafkaTopicPartition, str]) -> None:
        """Positions must be of what the brokers have; those of topics that are no longer read stay as they are."""
        reset = self._options.settings["auto.offset.reset"]
        for partition, split in self._splits.items():
            if not self._options.subscription.covers(partition):
                logger.warning("%s no longer reads %s; its position is kept", self._task, partition)
                continue
            if split.finished:
                continue
            if partition not in found:
                raise SourceError(
                    f"{self._task} had read {partition} up to offset {split.offset}, and the partition no longer "
                    "exists. Bring it back, or give the source another uid to begin without its position."
                )
            if found[partition] == split.topic_id:
                continue
            if reset == "error":
                raise SourceError(
                    f"{self._task} had read {partition} up to offset {split.offset}, and topic {partition.topic!r} was "
                    f"deleted and created again since (its id was {split.topic_id}, and is {found[partition]}). Set "
                    "the property 'auto.offset.reset' to 'earliest' or 'latest' to begin it there, or give the source "
                    "another uid."
                )
            self._begin_again(split, found[partition], reset)

    def _begin_again(self, split: SplitPosition, topic_id: str, reset: str) -> None:
        end = KafkaOffsetsInitializer.latest() if reset in ("latest", "largest", "end") else None
        start = end or KafkaOffsetsInitializer.earliest()
        offsets = OffsetQuestions(self._options.settings, self._task).resolve(start, [split.partition])
        split.offset, split.topic_id = offsets[split.partition], topic_id
        logger.warning(
            "%s begins %s again at offset %d: it is another topic", self._task, split.partition, split.offset
        )
