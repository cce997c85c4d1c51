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
    """Topics by name, or all whose whole name matches a pattern."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None

    def covers(self, topic: str) -> bool:
        if self.pattern is None:
            return topic in self.topics
        return re.fullmatch(self.pattern, topic) is not None

    def __str__(self) -> str:
        return f"topics that match {self.pattern!r}" if self.pattern is not None else f"topics {', '.join(self.topics)}"


def partitions_of(subscription: Subscription, settings: Mapping[str, Any], task: str) -> dict[KafkaTopicPartition, str]:
    """All partitions that the brokers have of it, with the identity of their topic."""
    kafka = library()
    admin = admin_client(connection_settings(settings))
    try:
        names = list(subscription.topics)
        if subscription.pattern is not None:
            names = [name for name in admin.list_topics(timeout=REQUEST_SECONDS).topics if subscription.covers(name)]
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
    return {
        KafkaTopicPartition(topic.name, partition.id): "" if topic.topic_id is None else str(topic.topic_id)
        for topic in described
        for partition in topic.partitions
    }
