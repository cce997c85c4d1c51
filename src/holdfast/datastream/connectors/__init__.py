"""Sources and sinks, under PyFlink's names."""

from __future__ import annotations

from holdfast.coverage.answers import answer_missing_names as _answer_missing_names
from holdfast.datastream.connectors.base import DeliveryGuarantee, Sink, Source
from holdfast.datastream.connectors.file_system import (
    BAD_RECORD_TYPE,
    BucketAssigner,
    ConcatFileCompactor,
    DefaultRollingPolicy,
    FileCompactor,
    FileCompactStrategy,
    FileOrder,
    FileSink,
    FileSource,
    FileSourceBuilder,
    IdenticalFileCompactor,
    OnCheckpointRollingPolicy,
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
    KafkaTopicSelector,
)
from holdfast.datastream.connectors.number_seq import NumberSequenceSource, SequenceSource
from holdfast.datastream.connectors.sql import SqlSink

__all__ = [
    "BAD_RECORD_TYPE",
    "BucketAssigner",
    "ConcatFileCompactor",
    "DefaultRollingPolicy",
    "DeliveryGuarantee",
    "FileCompactStrategy",
    "FileCompactor",
    "FileOrder",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "IdenticalFileCompactor",
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
    "KafkaTopicSelector",
    "NumberSequenceSource",
    "OnCheckpointRollingPolicy",
    "OutputFileConfig",
    "RollingPolicy",
    "SequenceSource",
    "Sink",
    "Source",
    "SqlSink",
    "StreamFormat",
]

_answer_missing_names(__name__)
