"""Publishing staged rows, each transaction once, whoever dies when.

A publisher is the only one of its (job, operator): ``init_transactions`` fences whoever had its transactional id
before, and returns only when that one's last transaction is decided. What the topic of markers says after that is
final: a transaction whose marker is there was published, one whose marker is not there never will be by anyone else.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec

from holdfast.connectors.kafka.client import (
    PATIENCE_SECONDS,
    REQUEST_SECONDS,
    admin_client,
    administration,
    connection_settings,
    library,
    list_offsets,
)
from holdfast.connectors.kafka.records import Records, wait_for_brokers
from holdfast.connectors.markers import MOST_NAMES, Marker, due
from holdfast.connectors.staging import StagedRows
from holdfast.errors import TransactionError
from holdfast.failpoints import failpoint

#: Kept by the driver's process from commit to commit until the job ends, by transactional id.
_publishers: dict[tuple[str, str], Publisher] = {}


def publisher_of(settings: Mapping[str, Any], prefix: str, job_id: str, operator_id: str) -> Publisher:
    """The publisher of this process. A new one fences all others of its transactional id."""
    key = _key_of(settings, prefix, job_id, operator_id)
    if key not in _publishers:
        _publishers[key] = Publisher(settings, f"{prefix}-markers", key[1], key_of(job_id, operator_id))
    return _publishers[key]


def release_publisher(settings: Mapping[str, Any], prefix: str, job_id: str, operator_id: str) -> None:
    """Forget it: its client ends with the last reference to it."""
    _publishers.pop(_key_of(settings, prefix, job_id, operator_id), None)


def forget_publishers() -> None:
    """As when the process ends."""
    _publishers.clear()


def _key_of(settings: Mapping[str, Any], prefix: str, job_id: str, operator_id: str) -> tuple[str, str]:
    return settings["bootstrap.servers"], f"{prefix}-{job_id}-{operator_id}"


class Publisher:
    """One transactional producer, and what the markers say."""

    def __init__(self, settings: Mapping[str, Any], marker_topic: str, transactional_id: str, key: bytes) -> None:
        self._kafka = library()
        self._settings = settings
        self._topic = marker_topic
        self._id = transactional_id
        self._key = key
        try:
            self._producer = self._kafka.Producer({**settings, "transactional.id": transactional_id})
            ensure_marker_topic(settings, marker_topic)
            self._producer.init_transactions(PATIENCE_SECONDS)
            self._marker = newest(read_markers(settings, marker_topic), key)
        except (self._kafka.KafkaException, TimeoutError) as cause:
            raise self._failure("prepare to publish", cause) from cause
        failpoint("kafka-publisher.fenced", id=transactional_id)

    def publish(self, handles: Sequence[StagedRows]) -> None:
        """Publish those that were not published before."""
        try:
            waiting = iter(due(handles, self._marker, f"the topic {self._topic!r}"))
            while some := list(islice(waiting, MOST_NAMES)):
                self._publish(some)
                failpoint("kafka-publisher.committed", id=self._id)
                # Before the next transaction begins: the marker of this one says that these files are of no use.
                for handle in some:
                    handle.delete()
        except BaseException:
            # What was published, by this one or by another that has fenced it, is not known here any more. Whoever
            # comes next fences and reads the markers.
            self._forget()
            raise

    def _publish(self, handles: Sequence[StagedRows]) -> None:
        for handle in handles:
            handle.check()
        marker = self._marker.after(handle.name for handle in handles)
        decoder = msgspec.msgpack.Decoder(Records)
        try:
            self._producer.begin_transaction()
            for handle in handles:
                for frame in handle.frames():
                    decoder.decode(frame).produce(self._producer)
            failpoint("kafka-publisher.produced", id=self._id)
            self._producer.produce(self._topic, marker.encode(), self._key)
            failpoint("kafka-publisher.marked", id=self._id)
            wait_for_brokers(self._producer, 0)
            self._producer.commit_transaction(PATIENCE_SECONDS)
        except (self._kafka.KafkaException, BufferError) as cause:
            raise self._failure(f"publish {len(handles)} transactions", cause) from cause
        self._marker = marker

    def _forget(self) -> None:
        for key in [key for key, publisher in _publishers.items() if publisher is self]:
            del _publishers[key]

    def _failure(self, doing: str, cause: Exception) -> TransactionError:
        return TransactionError(
            f"The Kafka sink could not {doing} at {self._settings['bootstrap.servers']} as {self._id!r}: {cause}. The "
            "checkpoint stays valid; the next attempt finds out what was published, and publishes the rest."
        )


def ensure_marker_topic(settings: Mapping[str, Any], topic: str) -> None:
    """Create the topic of markers where it does not exist: one partition, compacted."""
    kafka, new_topic = library(), administration().NewTopic
    admin = admin_client(connection_settings(settings))
    if topic in admin.list_topics(timeout=REQUEST_SECONDS).topics:
        return
    config = {"cleanup.policy": "compact", "segment.ms": "3600000", "min.cleanable.dirty.ratio": "0.1"}
    [made] = admin.create_topics(
        [new_topic(topic, num_partitions=1, replication_factor=-1, config=config)], request_timeout=REQUEST_SECONDS
    ).values()
    try:
        made.result(REQUEST_SECONDS)
    except kafka.KafkaException as error:
        if error.args[0].code() != kafka.KafkaError.TOPIC_ALREADY_EXISTS:
            raise
    # The brokers hear of it from the controller a moment later.
    deadline = time.monotonic() + REQUEST_SECONDS
    while topic not in admin.list_topics(timeout=REQUEST_SECONDS).topics and time.monotonic() < deadline:
        time.sleep(0.05)


def read_markers(settings: Mapping[str, Any], topic: str) -> list[tuple[bytes, bytes]]:
    """All markers of transactions that are committed, up to the end that the topic has now.

    That end counts transactions of others that are still open: they are waited for, since a marker of ours may lie
    behind theirs.
    """
    kafka = library()
    of_reader = {"group.id": "holdfast-markers", "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = kafka.Consumer({**connection_settings(settings), **of_reader, "isolation.level": "read_committed"})
    try:
        # Asked here: a consumer's own answer ends at the first transaction that is open.
        end = list_offsets(settings, [(topic, 0)], administration().OffsetSpec.latest())[topic, 0]
        consumer.assign([kafka.TopicPartition(topic, 0, kafka.OFFSET_BEGINNING)])
        found: list[tuple[bytes, bytes]] = []
        reached = 0
        deadline = time.monotonic() + PATIENCE_SECONDS
        while reached < end:
            for message in consumer.consume(1000, 0.05):
                if message.error() is None:
                    found.append((message.key(), message.value()))
                    reached = message.offset() + 1
                elif message.error().code() == kafka.KafkaError._PARTITION_EOF:
                    reached = max(reached, message.offset())
            if time.monotonic() > deadline:
                raise TransactionError(
                    f"The topic {topic!r} could be read up to offset {reached} of {end} only: a "
                    "transaction of another job is open in it. The next attempt tries again."
                )
        return found
    finally:
        consumer.close()


def key_of(job_id: str, operator_id: str) -> bytes:
    return msgspec.msgpack.encode([job_id, operator_id])


def newest(messages: Iterable[tuple[bytes, bytes]], key: bytes) -> Marker:
    """The marker of a key in a topic's messages, which are in the order of their offsets: it can be compacted."""
    found = dict(messages)
    return Marker.decode(found[key]) if key in found else Marker()
