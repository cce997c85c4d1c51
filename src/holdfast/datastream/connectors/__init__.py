"""Sources and sinks, under PyFlink's names."""

from __future__ import annotations

from holdfast.datastream.connectors.base import DeliveryGuarantee, Sink, Source
from holdfast.datastream.connectors.file_system import (
    BucketAssigner,
    FileSink,
    FileSource,
    FileSourceBuilder,
    OutputFileConfig,
    RollingPolicy,
    StreamFormat,
)
from holdfast.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions, JdbcSink
from holdfast.datastream.connectors.kafka import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaRecordSerializationSchemaBuilder,
    KafkaSink,
    KafkaSinkBuilder,
    KafkaSource,
    KafkaSourceBuilder,
    KafkaTopicPartition,
)
from holdfast.datastream.connectors.number_seq import NumberSequenceSource, SequenceSource
from holdfast.datastream.connectors.sql import SqlSink

__all__ = [
    "BucketAssigner",
    "DeliveryGuarantee",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "JdbcConnectionOptions",
    "JdbcExecutionOptions",
    "JdbcSink",
    "KafkaOffsetResetStrategy",
    "KafkaOffsetsInitializer",
    "KafkaRecordSerializationSchema",
    "KafkaRecordSerializationSchemaBuilder",
    "KafkaSink",
    "KafkaSinkBuilder",
    "KafkaSource",
    "KafkaSourceBuilder",
    "KafkaTopicPartition",
    "NumberSequenceSource",
    "OutputFileConfig",
    "RollingPolicy",
    "SequenceSource",
    "Sink",
    "Source",
    "SqlSink",
    "StreamFormat",
]
