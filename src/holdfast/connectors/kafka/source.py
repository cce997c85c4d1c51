"""A source of Kafka topics, under PyFlink's names."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Collection
from typing import Any

from holdfast.connectors.kafka.assignment import STORED_TYPE
from holdfast.connectors.kafka.client import library
from holdfast.connectors.kafka.offsets import KafkaOffsetsInitializer, KafkaTopicPartition
from holdfast.connectors.kafka.reader import KafkaSourceReader, ReadingOptions
from holdfast.connectors.kafka.topics import Subscription
from holdfast.connectors.kafka.watch import TopicWatch
from holdfast.connectors.serialization import DeserializationSchema
from holdfast.errors import ProgramError
from holdfast.runtime.source import ReaderContext, Source
from holdfast.types.information import TypeInformation

_DISCOVERY = "partition.discovery.interval.ms"
_COMMITS = "commit.offsets.on.checkpoint"
_DEFAULT_DISCOVERY_MS = 300_000

#: May be changed with ``set_property``.
_DEFAULTS = {
    # Positions are the checkpoint's. What they do not say is an error, never a guess.
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    # How long the brokers hold an answer back while there is nothing: an epoch may have to wait for one.
    "fetch.wait.max.ms": 100,
    "queued.max.messages.kbytes": 32_768,
}
#: What reading rests on.
_FIXED = {"enable.auto.commit": False, "enable.auto.offset.store": False, "enable.partition.eof": True}


class KafkaSource(Source):
    """Partitions of topics, each read by one subtask in the order of its offsets.

    Offsets are operator state. A restore gives every partition to the subtask that it belongs to at the parallelism of
    now; which that is depends on its name alone. The group is told of them after checkpoints, and never asked, but
    where ``KafkaOffsetsInitializer.committed_offsets()`` says so for the very first start.
    """

    has_record_times = True

    def __init__(self, options: ReadingOptions, bounded: bool) -> None:
        library()
        self._options = options
        self._id = uuid.uuid4().hex
        self.bounded = bounded

    @staticmethod
    def builder() -> KafkaSourceBuilder:
        return KafkaSourceBuilder()

    def output_type(self) -> TypeInformation | None:
        return self._options.schema.get_produced_type()

    def position_type(self) -> TypeInformation:
        return STORED_TYPE

    @staticmethod
    def typed_position(pickled: list[Any]) -> tuple[Any, ...]:
        return tuple(pickled)

    def create_reader(self, context: ReaderContext) -> KafkaSourceReader:
        return KafkaSourceReader(self._id, self._options, context)

    def watch(self) -> TopicWatch:
        return TopicWatch(self._options.subscription, self._options.settings)


class KafkaSourceBuilder:
    def __init__(self) -> None:
        self._subscription: Subscription | None = None
        self._schema: DeserializationSchema | None = None
        self._start = KafkaOffsetsInitializer.earliest()
        self._stop: KafkaOffsetsInitializer | None = None
        self._bounded = False
        self._properties: dict[str, Any] = {}

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSourceBuilder:
        return self.set_property("bootstrap.servers", bootstrap_servers)

    def set_group_id(self, group_id: str) -> KafkaSourceBuilder:
        return self.set_property("group.id", group_id)

    def set_client_id_prefix(self, prefix: str) -> KafkaSourceBuilder:
        return self.set_property("client.id", prefix)

    def set_topics(self, *topics: str) -> KafkaSourceBuilder:
        return self._subscribe(Subscription(topics=tuple(dict.fromkeys(topics))))

    def set_partitions(self, partitions: Collection[KafkaTopicPartition]) -> KafkaSourceBuilder:
        """Only these partitions."""
        wrong = [one for one in partitions if not isinstance(one, KafkaTopicPartition)]
        if wrong or not partitions:
            raise ProgramError(
                f"set_partitions() takes a set of KafkaTopicPartition(topic, partition); got {partitions!r}."
            )
        chosen = tuple(sorted(set(partitions)))
        topics = tuple(dict.fromkeys(one.topic for one in chosen))
        return self._subscribe(Subscription(topics=topics, partitions=chosen))

    def set_topic_pattern(self, topic_pattern: str) -> KafkaSourceBuilder:
        """Topics whose whole name matches a regular expression."""
        re.compile(topic_pattern)
        return self._subscribe(Subscription(pattern=topic_pattern))

    def set_starting_offsets(self, starting_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """Where partitions begin that are there at the first start; later ones begin at their first message."""
        self._start = starting_offsets_initializer
        return self

    def set_bounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """Stop at these offsets, which are found out when the job starts for the first time."""
        self._stop, self._bounded = stopping_offsets_initializer, True
        return self

    def set_unbounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer | None = None) -> KafkaSourceBuilder:
        self._stop, self._bounded = stopping_offsets_initializer, False
        return self

    def set_value_only_deserializer(self, deserialization_schema: DeserializationSchema) -> KafkaSourceBuilder:
        self._schema = deserialization_schema
        return self

    def set_property(self, key: str, value: Any) -> KafkaSourceBuilder:
        """A property of librdkafka, or ``partition.discovery.interval.ms``, ``commit.offsets.on.checkpoint``."""
        self._properties[key] = value
        return self

    def set_properties(self, props: dict[str, Any]) -> KafkaSourceBuilder:
        self._properties.update(props)
        return self

    def build(self) -> KafkaSource:
        properties = dict(self._properties)
        if self._subscription is None or "bootstrap.servers" not in properties or self._schema is None:
            raise ProgramError(
                "A KafkaSource needs set_bootstrap_servers(...), set_topics(...) or set_topic_pattern(...), and "
                "set_value_only_deserializer(...)."
            )
        discovery = int(properties.pop(_DISCOVERY, _DEFAULT_DISCOVERY_MS))
        grouped = "group.id" in properties
        commits = str(properties.pop(_COMMITS, grouped)).lower() == "true"
        if not grouped and (commits or self._start.needs_group or (self._stop and self._stop.needs_group)):
            raise ProgramError("Committed offsets are those of a group: name it with set_group_id(...).")
        fixed = [name for name, value in _FIXED.items() if properties.get(name, value) != value]
        if fixed:
            raise ProgramError(f"{', '.join(fixed)} cannot be changed: offsets are kept in checkpoints.")
        options = ReadingOptions(
            self._subscription,
            {"group.id": "holdfast", **_DEFAULTS, **properties, **_FIXED},
            self._schema,
            self._start,
            self._stop,
            discovery if discovery > 0 and not self._bounded else None,
            commits,
            time.time,
        )
        return KafkaSource(options, self._bounded)

    def _subscribe(self, subscription: Subscription) -> KafkaSourceBuilder:
        if self._subscription is not None:
            raise ProgramError(f"The source reads {self._subscription} already; name its topics once.")
        if not subscription.topics and not subscription.pattern:
            raise ProgramError("set_topics() was given no topic.")
        self._subscription = subscription
        return self
