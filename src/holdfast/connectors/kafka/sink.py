"""A sink that writes to Kafka topics, under PyFlink's names."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from holdfast.connectors.delivery import DeliveryGuarantee
from holdfast.connectors.kafka.client import library
from holdfast.connectors.kafka.direct import DirectProducer, producer_of
from holdfast.connectors.kafka.publishing import publisher_of
from holdfast.connectors.kafka.records import KafkaRecordSerializationSchema
from holdfast.connectors.kafka.staging import StagedRecords, StagingTransaction, delete_staged, staged_names
from holdfast.errors import ProgramError, StorageError
from holdfast.runtime.batch import Batch
from holdfast.runtime.sink import TransactionName, TwoPhaseCommitSink
from holdfast.storage.filesystem import Storage

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


class ExactlyOnceKafkaSink(TwoPhaseCommitSink):
    """Stages rows in files; a commit publishes them in one Kafka transaction, together with a marker that says so.

    The client library cannot go on with a transaction that another process has begun. So none is open before the
    checkpoint completes: what waits for it are files, and ``publishing`` says why each is published once.
    """

    def __init__(
        self, settings: dict[str, Any], serializer: KafkaRecordSerializationSchema, prefix: str, directory: str | None
    ) -> None:
        self._settings = settings
        self._serializer = serializer
        self._prefix = prefix
        self._directory = directory

    def bind_checkpoint_directory(self, directory: str | None) -> None:
        told = self._directory or directory
        if told is None:
            raise ProgramError(
                "A KafkaSink with EXACTLY_ONCE keeps rows in files until their checkpoint completes, and this job "
                "keeps checkpoints in memory. Set execution.checkpointing.dir, or set_staging_directory(...) of the "
                "sink, to a directory that all executors and the driver see."
            )
        self._directory = Storage.absolute(told)

    @property
    def _storage(self) -> Storage:
        assert self._directory is not None, "bind_checkpoint_directory has set it"
        return Storage.for_uri(self._directory)

    def begin(self, name: TransactionName) -> StagingTransaction:
        return StagingTransaction(self._storage, name)

    def write(self, transaction: StagingTransaction, batch: Batch) -> None:
        if len(batch):
            transaction.write(self._serializer.records_of(batch))

    def pre_commit(self, transaction: StagingTransaction) -> bytes | None:
        staged = transaction.finish()
        return None if staged is None else staged.encode()

    def discard(self, transaction: StagingTransaction) -> None:
        with suppress(StorageError):
            transaction.discard()

    def commit(self, handles: Sequence[bytes]) -> None:
        owners: dict[tuple[str, str], list[StagedRecords]] = defaultdict(list)
        for handle in map(StagedRecords.decode, handles):
            owners[handle.name.job_id, handle.name.operator_id].append(handle)
        for owner, staged in owners.items():
            publisher_of(self._settings, self._prefix, *owner).publish(staged)

    def open_transactions(self, job_id: str) -> Iterable[TransactionName]:
        """All that the job has staged in the directory: also of another sink of the job, if two share it."""
        return staged_names(self._storage, job_id)

    def abort(self, name: TransactionName) -> None:
        # Whoever is publishing it, a driver that was given up, must not end with that.
        publisher_of(self._settings, self._prefix, name.job_id, name.operator_id)
        delete_staged(self._storage, name)

    def name_of(self, handle: bytes) -> TransactionName:
        return StagedRecords.decode(handle).name


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
        return StagedRecords.decode(handle).name


class KafkaSink:
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
