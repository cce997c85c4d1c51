"""Consumers that a worker process keeps open from epoch to epoch.

A consumer is a cache and never the truth: the truth is the position that a reader has. One that stands elsewhere (an
epoch ran in another worker, or failed) is told where to go on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from holdfast.connectors.kafka.client import library
from holdfast.connectors.kafka.offsets import KafkaTopicPartition
from holdfast.errors import SourceError

logger = logging.getLogger(__name__)

#: One that nobody asked for in this time is closed: its subtask runs elsewhere by now.
_UNUSED_SECONDS = 60.0
#: How long the library may collect messages before what it has is looked at.
_SLICE_SECONDS = 0.05
#: An epoch waits no longer than this for brokers that say nothing.
_SILENCE_SECONDS = 2.0

_open: dict[tuple[str, int], OpenConsumer] = {}


def obtain(key: tuple[str, int], settings: Mapping[str, Any], task: str) -> OpenConsumer:
    """The consumer of a source's subtask in this process, made where there is none."""
    now = time.monotonic()
    for other in [other for other, consumer in _open.items() if now - consumer.used > _UNUSED_SECONDS]:
        close(other)
    found = _open.get(key)
    if found is None:
        found = _open[key] = OpenConsumer(settings, task)
    found.used = now
    return found


def close(key: tuple[str, int]) -> None:
    """Close what this process has open of a subtask, if anything."""
    consumer = _open.pop(key, None)
    if consumer is not None:
        consumer.close()


@dataclass(frozen=True, slots=True)
class Polled:
    """Messages by partition, in their order, and partitions whose end was reached, with that end."""

    runs: list[tuple[KafkaTopicPartition, list[Any]]]
    ends: dict[KafkaTopicPartition, int]

    def __bool__(self) -> bool:
        return bool(self.runs or self.ends)


class OpenConsumer:
    """Reads the partitions that it was assigned, and knows which of them have nothing more at the moment."""

    def __init__(self, settings: Mapping[str, Any], task: str) -> None:
        kafka = library()
        try:
            self._consumer = kafka.Consumer(dict(settings), logger=logger)
        except kafka.KafkaException as cause:
            raise SourceError(
                f"{task}: the Kafka client refuses its properties: {cause}. Properties are those of librdkafka, which "
                "are not in all cases those of Kafka's Java client."
            ) from cause
        self._kafka = kafka
        self._task = task
        self._at: dict[KafkaTopicPartition, int] = {}
        self._caught_up: set[KafkaTopicPartition] = set()
        self._paused: set[KafkaTopicPartition] = set()
        self.used = 0.0

    def stand_at(self, offsets: Mapping[KafkaTopicPartition, int]) -> None:
        """Read on from these offsets, and nothing else. Costs nothing where it stands there already."""
        surplus = self._at.keys() - offsets.keys() - self._paused
        if all(self._at.get(partition) == offset for partition, offset in offsets.items()):
            if surplus:
                # Assigning anew would throw away what was fetched of the others.
                self._consumer.pause([self._kafka.TopicPartition(p.topic, p.partition) for p in surplus])
                self._paused |= surplus
            if not self._paused & offsets.keys():
                return
        self._consumer.assign([self._kafka.TopicPartition(p.topic, p.partition, o) for p, o in offsets.items()])
        self._at = dict(offsets)
        self._caught_up.clear()
        self._paused.clear()

    def next_messages(self, most: int, deadline: float) -> Polled:
        """What there is, at most so many messages. Waits only for what the brokers have not answered yet."""
        silent_since = time.monotonic()
        while True:
            now = time.monotonic()
            waits = not self._is_caught_up() and now < min(deadline, silent_since + _SILENCE_SECONDS)
            polled = self._take(most, _SLICE_SECONDS if waits else 0)
            if polled or not waits:
                return polled

    def _take(self, most: int, seconds: float) -> Polled:
        """The library is beyond what it hands out: so is this, whatever becomes of it."""
        standing, self._at = self._at, {}
        messages = self._consumer.consume(most, seconds)
        good = [message for message in messages if message.error() is None]
        polled = Polled(
            [(KafkaTopicPartition(*place), list(run)) for place, run in groupby(good, key=_place_of)],
            self._ends_in(messages, standing) if len(good) < len(messages) else {},
        )
        for partition, run in polled.runs:
            standing[partition] = run[-1].offset() + 1
            self._caught_up.discard(partition)
        for partition, end in polled.ends.items():
            standing[partition] = max(standing[partition], end)
            self._caught_up.add(partition)
        # Only now: after an error on the way here nothing is known, and reading begins where a reader says.
        self._at = standing
        return polled

    def commit(self, offsets: Mapping[KafkaTopicPartition, int]) -> None:
        """Tell the group, without waiting for its answer."""
        places = [self._kafka.TopicPartition(p.topic, p.partition, offset) for p, offset in offsets.items()]
        try:
            self._consumer.commit(offsets=places, asynchronous=True)
        except self._kafka.KafkaException as error:
            logger.warning(
                "%s could not commit its offsets to the group, which is for monitoring only: %s", self._task, error
            )

    def close(self) -> None:
        self._consumer.close()

    def _is_caught_up(self) -> bool:
        for partition in self._at.keys() - self._caught_up - self._paused:
            place = self._kafka.TopicPartition(partition.topic, partition.partition)
            _, high = self._consumer.get_watermark_offsets(place, cached=True)
            if high < 0 or self._at[partition] < high:
                return False
        return True

    def _ends_in(
        self, messages: list[Any], standing: Mapping[KafkaTopicPartition, int]
    ) -> dict[KafkaTopicPartition, int]:
        ends = {}
        for message in messages:
            error = message.error()
            if error is None:
                continue
            if error.code() != self._kafka.KafkaError._PARTITION_EOF:
                self._check(message, error, standing)
                continue
            ends[KafkaTopicPartition(message.topic(), message.partition())] = message.offset()
        return ends

    def _check(self, message: Any, error: Any, standing: Mapping[KafkaTopicPartition, int]) -> None:
        """Raise what does not pass by itself."""
        codes = self._kafka.KafkaError
        place = f"{message.topic()}-{message.partition()}"
        if error.code() == codes._AUTO_OFFSET_RESET:
            at = standing.get(KafkaTopicPartition(message.topic(), message.partition()))
            raise SourceError(
                f"{self._task} is at offset {at} of {place}, which the topic no longer has ({error.str()}). Messages "
                "were deleted before they were read, or it is another topic of that name. Set the property "
                "'auto.offset.reset' to 'earliest' or 'latest' to accept that and go on there; nothing was skipped."
            )
        if error.code() in (codes.UNKNOWN_TOPIC_OR_PART, codes._UNKNOWN_TOPIC, codes._UNKNOWN_PARTITION):
            raise SourceError(
                f"{self._task} reads {place}, which no longer exists ({error.str()}). Bring it back, or give the "
                "source another uid to begin without its position; nothing was skipped."
            )
        if error.fatal() or error.code() in (codes.TOPIC_AUTHORIZATION_FAILED, codes._AUTHENTICATION):
            raise SourceError(f"{self._task} cannot read {place}: {error.str()}; nothing was skipped.")
        logger.warning("%s: %s; the client goes on trying", self._task, error.str())


def _place_of(message: Any) -> tuple[str, int]:
    return message.topic(), message.partition()
