"""Where reading of a partition begins, and where it ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from holdfast.connectors.kafka.client import (
    REQUEST_SECONDS,
    administration,
    connection_settings,
    library,
    list_offsets,
    unreachable,
)
from holdfast.errors import SourceError


@dataclass(frozen=True, slots=True, order=True)
class KafkaTopicPartition:
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class KafkaOffsetResetStrategy(StrEnum):
    """What stands in where no offset is known."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"


class _Kind(StrEnum):
    EARLIEST = "earliest"
    LATEST = "latest"
    TIMESTAMP = "timestamp"
    COMMITTED = "committed"
    OFFSETS = "offsets"


@dataclass(frozen=True)
class KafkaOffsetsInitializer:
    """Offsets of partitions, under PyFlink's names."""

    kind: _Kind
    at: int = 0
    given: Mapping[KafkaTopicPartition, int] = field(default_factory=dict)
    otherwise: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE

    @staticmethod
    def earliest() -> KafkaOffsetsInitializer:
        return KafkaOffsetsInitializer(_Kind.EARLIEST)

    @staticmethod
    def latest() -> KafkaOffsetsInitializer:
        return KafkaOffsetsInitializer(_Kind.LATEST)

    @staticmethod
    def timestamp(timestamp: int) -> KafkaOffsetsInitializer:
        """The first message of this time (milliseconds) or later; the end where there is none."""
        return KafkaOffsetsInitializer(_Kind.TIMESTAMP, at=timestamp)

    @staticmethod
    def committed_offsets(
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE,
    ) -> KafkaOffsetsInitializer:
        """What the group has committed."""
        return KafkaOffsetsInitializer(_Kind.COMMITTED, otherwise=KafkaOffsetResetStrategy(offset_reset_strategy))

    @staticmethod
    def offsets(
        offsets: Mapping[KafkaTopicPartition, int],
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.EARLIEST,
    ) -> KafkaOffsetsInitializer:
        """The given offsets; partitions that are not named begin where the strategy says."""
        strategy = KafkaOffsetResetStrategy(offset_reset_strategy)
        return KafkaOffsetsInitializer(_Kind.OFFSETS, given=dict(offsets), otherwise=strategy)

    @property
    def needs_group(self) -> bool:
        return self.kind is _Kind.COMMITTED


class OffsetQuestions:
    """Asks the brokers what an initializer means for partitions."""

    def __init__(self, settings: Mapping[str, Any], task: str) -> None:
        self._settings = settings
        self._task = task

    def resolve(
        self, initializer: KafkaOffsetsInitializer, partitions: Iterable[KafkaTopicPartition]
    ) -> dict[KafkaTopicPartition, int]:
        wanted = sorted(partitions)
        if not wanted:
            return {}
        if initializer.kind is _Kind.COMMITTED:
            return self._or_otherwise(self._committed(wanted), initializer, wanted)
        if initializer.kind is _Kind.OFFSETS:
            return self._or_otherwise(dict(initializer.given), initializer, wanted)
        return self._listed(initializer, wanted)

    def _or_otherwise(
        self,
        known: dict[KafkaTopicPartition, int],
        initializer: KafkaOffsetsInitializer,
        wanted: list[KafkaTopicPartition],
    ) -> dict[KafkaTopicPartition, int]:
        missing = [partition for partition in wanted if partition not in known]
        if missing and initializer.otherwise is KafkaOffsetResetStrategy.NONE:
            source = f"group {self._settings.get('group.id')!r} has committed" if not initializer.given else "was given"
            raise SourceError(
                f"{self._task}: {', '.join(map(str, missing))} cannot begin, no offset {source}. Give an "
                "offset_reset_strategy (EARLIEST or LATEST) to begin there, or the offsets themselves."
            )
        found = {partition: known[partition] for partition in wanted if partition in known}
        return (
            found | self.resolve(KafkaOffsetsInitializer(_Kind(initializer.otherwise)), missing) if missing else found
        )

    def _listed(
        self, initializer: KafkaOffsetsInitializer, wanted: list[KafkaTopicPartition]
    ) -> dict[KafkaTopicPartition, int]:
        kafka, spec_of = library(), administration().OffsetSpec
        specs = {
            _Kind.EARLIEST: spec_of.earliest,
            _Kind.LATEST: spec_of.latest,
            _Kind.TIMESTAMP: lambda: spec_of.for_timestamp(initializer.at),
        }
        spec = specs[initializer.kind]()
        try:
            listed = list_offsets(self._settings, [(p.topic, p.partition) for p in wanted], spec)
        except (kafka.KafkaException, TimeoutError) as cause:
            raise unreachable(self._task, self._settings, f"ask for the {initializer.kind} offsets", cause) from cause
        found = {partition: listed[partition.topic, partition.partition] for partition in wanted}
        beyond = [partition for partition, offset in found.items() if offset < 0]
        return found | (self._listed(KafkaOffsetsInitializer.latest(), beyond) if beyond else {})

    def _committed(self, wanted: list[KafkaTopicPartition]) -> dict[KafkaTopicPartition, int]:
        kafka = library()
        group = {"group.id": self._settings["group.id"]}
        consumer = kafka.Consumer({**connection_settings(self._settings), **group, "enable.auto.commit": False})
        try:
            asked = [kafka.TopicPartition(p.topic, p.partition) for p in wanted]
            answers = consumer.committed(asked, timeout=REQUEST_SECONDS)
        except kafka.KafkaException as cause:
            raise unreachable(self._task, self._settings, f"ask for the offsets of {group}", cause) from cause
        finally:
            consumer.close()
        return {KafkaTopicPartition(at.topic, at.partition): at.offset for at in answers if at.offset >= 0}
