from __future__ import annotations

from holdfast.datastream import connectors
from holdfast.datastream.connectors import base, file_system, jdbc, kafka, number_seq, sql


def test_the_public_names_are_these():
    assert file_system.__all__ == [
        "BAD_RECORD_TYPE",
        "BucketAssigner",
        "ConcatFileCompactor",
        "DefaultRollingPolicy",
        "FileCompactStrategy",
        "FileCompactor",
        "FileOrder",
        "FileSink",
        "FileSource",
        "FileSourceBuilder",
        "IdenticalFileCompactor",
        "OnCheckpointRollingPolicy",
        "OutputFileConfig",
        "RollingPolicy",
        "StreamFormat",
    ]
    assert number_seq.__all__ == ["NumberSequenceSource", "SequenceSource"]
    assert base.__all__ == ["DeliveryGuarantee", "Sink", "Source"]
    assert jdbc.__all__ == ["JdbcConnectionOptions", "JdbcExecutionOptions", "JdbcSink"]
    assert sql.__all__ == ["SqlSink"]
    assert kafka.__all__ == [
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
    doors = [file_system, number_seq, base, kafka, jdbc, sql]
    assert connectors.__all__ == sorted({name for door in doors for name in door.__all__})
    assert all(hasattr(connectors, name) for name in connectors.__all__)
