"""Kafka: source and sink."""

from __future__ import annotations

from holdfast.connectors.delivery import DeliveryGuarantee
from holdfast.connectors.kafka.offsets import KafkaOffsetResetStrategy, KafkaOffsetsInitializer, KafkaTopicPartition
from holdfast.connectors.kafka.records import (
    KafkaRecordSerializationSchema,
    KafkaRecordSerializationSchemaBuilder,
    KafkaTopicSelector,
)
from holdfast.connectors.kafka.sink import KafkaSink, KafkaSinkBuilder
from holdfast.connectors.kafka.source import KafkaSource, KafkaSourceBuilder
from holdfast.coverage.answers import answer_missing_names as _answer_missing_names

__all__ = [
    "DeliveryGuarantee",
    "KafkaOffsetResetStrategy",
    "KafkaOffsetsInitializer",
    "KafkaRecordSerializationSchema",
    "KafkaRecordSerializationSchemaBuilder",
    "KafkaSink",
    "KafkaSinkBuilder",
    "KafkaSource",
    "KafkaSourceBuilder",
    "KafkaTopicPartition",
    "KafkaTopicSelector",
]

_answer_missing_names(__name__)
