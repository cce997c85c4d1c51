"""Rows as records of topics."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from holdfast.connectors.kafka.client import PATIENCE_SECONDS
from holdfast.connectors.serialization import SerializationSchema
from holdfast.errors import ProgramError
from holdfast.runtime.batch import Batch

TopicSelector = Callable[[Any], str]


class KafkaTopicSelector(ABC):
    """Says which topic a row goes to. Picklable; called in tasks."""

    @abstractmethod
    def apply(self, data: Any) -> str:
        """The name of the topic."""


class Records(msgspec.Struct, array_like=True):
    """The records of one batch, a column for each part. ``topics`` is one name where all go to one topic."""

    topics: str | list[str]
    keys: list[bytes] | None
    values: list[bytes]
    #: Milliseconds; None for the time of publishing.
    times: list[int | None] | None

    def produce(self, producer: Any) -> None:
        """Hand every record to a producer."""
        size = len(self.values)
        topics = [self.topics] * size if isinstance(self.topics, str) else self.topics
        keys: Sequence[bytes | None] = self.keys if self.keys is not None else [None] * size
        times: Sequence[int | None] = self.times if self.times is not None else [None] * size
        produce = producer.produce
        for topic, value, key, at in zip(topics, self.values, keys, times, strict=True):
            more = {} if at is None else {"timestamp": at}
            try:
                produce(topic, value, key, **more)
            except BufferError:
                wait_for_brokers(producer, len(producer) // 2)
                produce(topic, value, key, **more)
        producer.poll(0)


def wait_for_brokers(producer: Any, at_most: int) -> None:
    """Until no more records than that are buffered. BufferError when the brokers take none for a long time."""
    left, since = len(producer), time.monotonic()
    while left > at_most:
        producer.poll(0.1)
        now = time.monotonic()
        if len(producer) < left:
            left, since = len(producer), now
        elif now - since > PATIENCE_SECONDS:
            raise BufferError(f"{left} records are buffered, and the brokers have taken none for {now - since:.0f} s")


class KafkaRecordSerializationSchema:
    """Makes Kafka records of rows. Picklable; used in tasks."""

    def __init__(
        self, topic: str | TopicSelector, value_schema: SerializationSchema, key_schema: SerializationSchema | None
    ) -> None:
        self._topic = topic
        self._values = value_schema
        self._keys = key_schema

    @staticmethod
    def builder() -> KafkaRecordSerializationSchemaBuilder:
        return KafkaRecordSerializationSchemaBuilder()

    def records_of(self, batch: Batch) -> Records:
        rows = batch.values
        topic = self._topic
        keys = None if self._keys is None else self._keys.serialize_all(rows)
        times = None if batch.timestamps is None else [None if t is None or t < 0 else t for t in batch.timestamps]
        return Records(
            topic if isinstance(topic, str) else [topic(row) for row in rows],
            keys,
            self._values.serialize_all(rows),
            times,
        )


class KafkaRecordSerializationSchemaBuilder:
    def __init__(self) -> None:
        self._topic: str | TopicSelector | None = None
        self._values: SerializationSchema | None = None
        self._keys: SerializationSchema | None = None

    def set_topic(self, topic: str) -> KafkaRecordSerializationSchemaBuilder:
        self._topic = topic
        return self

    def set_topic_selector(self, topic_selector: Any) -> KafkaRecordSerializationSchemaBuilder:
        """A function from a row to the name of its topic, or an object with ``apply(row)``."""
        self._topic = getattr(topic_selector, "apply", topic_selector)
        return self

    def set_key_serialization_schema(
        self, key_serialization_schema: SerializationSchema
    ) -> KafkaRecordSerializationSchemaBuilder:
        self._keys = key_serialization_schema
        return self

    def set_value_serialization_schema(
        self, value_serialization_schema: SerializationSchema
    ) -> KafkaRecordSerializationSchemaBuilder:
        self._values = value_serialization_schema
        return self

    def build(self) -> KafkaRecordSerializationSchema:
        if self._topic is None or self._values is None:
            raise ProgramError(
                "A KafkaRecordSerializationSchema needs set_topic(...) or set_topic_selector(...), and "
                "set_value_serialization_schema(...)."
            )
        return KafkaRecordSerializationSchema(self._topic, self._values, self._keys)
