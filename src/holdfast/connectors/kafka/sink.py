"""A sink that writes to Kafka topics, under PyFlink's names."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from holdfast.connectors.delivery import DeliveryGuarantee
from holdfast.connectors.kafka.client import library
from holdfast.connectors.kafka.direct import DirectProducer, producer_of, release_producer
from holdfast.connectors.kafka.publishing import publisher_of, release_publisher
from holdfast.connectors.kafka.records import KafkaRecordSerializationSchema
from holdfast.connectors.staged_sink import StagedSink
from holdfast.connectors.staging import StagedRows
from holdfast.coverage.answers import SaysWhatToUse
from holdfast.errors import ProgramError
from holdfast.runtime.batch import Batch
from holdfast.runtime.sink import TransactionName, TwoPhaseCommitSink

_KIND = "KafkaSink"
#: May be changed with ``set_property``.
_DEFAULTS: dict[str, Any] = {
    # As Kafka's Java clients divide keys among partitions.
    "partitioner": "murmur2_random",
    "enable.idempotence": True,
    "linger.ms": 20,
    "queue.buffering.max.messages": 500_000,
    # Transactions are open only while staged rows are published. As long as brokers allow unless told otherwise.
    "transaction.timeout.ms": 900_000,
}


class ExactlyOnceKafkaSink(StagedSink):
    """Stages rows in files; a commit publishes them in one Kafka transaction, together with a marker that says so.

    The client library cannot go on with a transaction that another process has begun. So none is open before the
    checkpoint completes: what waits for it are files, and ``publishing`` says why each is published once.
    """

    kind = _KIND

    def __init__(
        self, settings: dict[str, Any], serializer: KafkaRecordSerializationSchema, prefix: str, directory: str | None
    ) -> None:
        super().__init__(directory)
        self._settings = settings
        self._serializer = serializer
        self._prefix = prefix

    def frame_of(self, batch: Batch) -> bytes:
        return msgspec.msgpack.encode(self._serializer.records_of(batch))

    def publish(self, job_id: str, operator_id: str, handles: Sequence[StagedRows]) -> None:
        publisher_of(self._settings, self._prefix, job_id, operator_id).publish(handles)

    def fence(self, job_id: str, operator_id: str) -> None:
        publisher_of(self._settings, self._prefix, job_id, operator_id)

    def release(self, job_id: str, operator_id: str) -> None:
        release_publisher(self._settings, self._prefix, job_id, operator_id)


class DirectKafkaSink(TwoPhaseCommitSink):
    """Sends rows as they come. Nothing is left to be committed: what an epoch that failed has sent stays."""

    def __init__(self, settings: dict[str, Any], serializer: KafkaRecordSerializationSchema, waits: bool) -> None:
        self._settings = settings
        self._serializer = serializer
        #: For the brokers, at the end of each epoch.
        self._waits = waits
        self._id = uuid.uuid4().hex

    def begin(self, name: TransactionName) -> DirectProducer:
        return producer_of(self._id, self._settings)

    def write(self, transaction: DirectProducer, batch: Batch) -> None:
        transaction.send(self._serializer.records_of(batch))

    def pre_commit(self, transaction: DirectProducer) -> None:
        if self._waits:
            transaction.flush()

    def discard(self, transaction: DirectProducer) -> None:
        """What was sent cannot be taken back."""

    def close(self) -> None:
        release_producer(self._id)

    def commit(self, handles: Sequence[bytes]) -> None:
        """Handles are those of a sink that was exactly once before: what they hold is published as that one would."""
        if handles:
            raise ProgramError(
                f"The restored checkpoint holds {len(handles)} transactions that a KafkaSink with EXACTLY_ONCE has not "
                "published yet. Restore it with that guarantee, and change it from a savepoint taken after that."
            )

    def open_transactions(self, job_id: str) -> Iterable[TransactionName]:
        return []

    def abort(self, name: TransactionName) -> None:
        """There is nothing to drop."""

    def name_of(self, handle: bytes) -> TransactionName:
        return StagedRows.decode(handle, _KIND).name


class KafkaSink(SaysWhatToUse):
    """Where PyFlink's programs find the builder."""

    @staticmethod
    def builder() -> KafkaSinkBuilder:
        return KafkaSinkBuilder()


class KafkaSinkBuilder:
    def __init__(self) -> None:
        self._serializer: KafkaRecordSerializationSchema | None = None
        self._guarantee = DeliveryGuarantee.NONE
        self._prefix: str | None = None
        self._directory: str | None = None
        self._properties: dict[str, Any] = {}

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSinkBuilder:
        return self.set_property("bootstrap.servers", bootstrap_servers)

    def set_record_serializer(self, record_serializer: KafkaRecordSerializationSchema) -> KafkaSinkBuilder:
        self._serializer = record_serializer
        return self

    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> KafkaSinkBuilder:
        self._guarantee = DeliveryGuarantee(delivery_guarantee)
        return self

    def set_transactional_id_prefix(self, transactional_id_prefix: str) -> KafkaSinkBuilder:
        """One that no other sink of the brokers has. The topic of markers is named after it, too."""
        self._prefix = transactional_id_prefix
        return self

    def set_staging_directory(self, directory: str) -> KafkaSinkBuilder:
        """Where rows wait for their checkpoint (EXACTLY_ONCE): a path or URI that all executors and the driver see.
        Without it, in the directory of checkpoints.
        """
        self._directory = directory
        return self

    def set_property(self, key: str, value: Any) -> KafkaSinkBuilder:
        """A property of librdkafka."""
        self._properties[key] = value
        return self

    def build(self) -> TwoPhaseCommitSink:
        library()
        if self._serializer is None or "bootstrap.servers" not in self._properties:
            raise ProgramError("A KafkaSink needs set_bootstrap_servers(...) and set_record_serializer(...).")
        settings = {**_DEFAULTS, **self._properties}
        if self._guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
            del settings["transaction.timeout.ms"]
            return DirectKafkaSink(settings, self._serializer, self._guarantee is DeliveryGuarantee.AT_LEAST_ONCE)
        if not self._prefix:
            raise ProgramError(
                "EXACTLY_ONCE needs set_transactional_id_prefix(...): a prefix that no other sink of these brokers has."
            )
        return ExactlyOnceKafkaSink(settings, self._serializer, self._prefix, self._directory)
