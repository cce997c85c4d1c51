"""Which topics a source reads, and which partitions they have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.connectors.kafka.client import REQUEST_SECONDS, admin_client, connection_settings, library, unreachable
from holdfast.connectors.kafka.offsets import KafkaTopicPartition
from holdfast.errors import SourceError


@dataclass(frozen=True)
class Subscription:
    """Topics by name, or all whose whole name matches a pattern, or partitions of topics."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    #: What is read of the topics; all, if empty.
    partitions: tuple[KafkaTopicPartition, ...] = ()

    def covers(self, partition: KafkaTopicPartition) -> bool:
        return partition in self.partitions if self.partitions else self.covers_topic(partition.topic)

    def covers_topic(self, topic: str) -> bool:
        if self.pattern is None:
            return topic in self.topics
        return re.fullmatch(self.pattern, topic) is not None

    def __str__(self) -> str:
        if self.partitions:
            return f"partitions {', '.join(map(str, self.partitions))}"
        return f"topics that match {self.pattern!r}" if self.pattern is not None else f"topics {', '.join(self.topics)}"


def partitions_of(subscription: Subscription, settings: Mapping[str, Any], task: str) -> dict[KafkaTopicPartition, str]:
    """All partitions that the brokers have of it, with the identity of their topic."""
    kafka = library()
    admin = admin_client(connection_settings(settings))
    try:
        names = list(subscription.topics)
        if subscription.pattern is not None:
            names = [
                name for name in admin.list_topics(timeout=REQUEST_SECONDS).topics if subscription.covers_topic(name)
            ]
        if not names:
            return {}
        answers = admin.describe_topics(kafka.TopicCollection(names), request_timeout=REQUEST_SECONDS)
        described = [answer.result(REQUEST_SECONDS) for answer in answers.values()]
    except (kafka.KafkaException, TimeoutError) as cause:
        code = cause.args[0].code() if isinstance(cause, kafka.KafkaException) else None
        if code == kafka.KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise SourceError(
                f"{task} reads {subscription}, and {settings['bootstrap.servers']} does not have all of them. Create "
                "what is missing, or correct the name; nothing was skipped."
            ) from cause
        raise unreachable(task, settings, f"look for {subscription}", cause) from cause
    found = {
        KafkaTopicPartition(topic.name, partition.id): "" if topic.topic_id is None else str(topic.topic_id)
        for topic in described
        for partition in topic.partitions
    }
    return _wanted(subscription, found, task) if subscription.partitions else found


def _wanted(
    subscription: Subscription, found: Mapping[KafkaTopicPartition, str], task: str
) -> dict[KafkaTopicPartition, str]:
    missing = [partition for partition in subscription.partitions if partition not in found]
    if missing:
        raise SourceError(
            f"{task} reads {subscription}, and the brokers do not have {', '.join(map(str, missing))}. Correct the "
            "partitions, or give their topics more of them; nothing was skipped."
        )
    return {partition: found[partition] for partition in subscription.partitions}
