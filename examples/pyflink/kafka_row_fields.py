"""Writes fields of rows to a topic of Kafka, one as the key and one as the value, and reads the values from there."""

from __future__ import annotations

import sys

from holdfast.common import Row, SimpleStringSchema, Types, WatermarkStrategy
from holdfast.common.serialization import RowFieldExtractorSchema
from holdfast.datastream import StreamExecutionEnvironment
from holdfast.datastream.connectors.base import DeliveryGuarantee
from holdfast.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)

TOPIC = "drinks-by-name"
BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())
DRINKS = [Row(b"tea", b"two cups"), Row(b"coffee", b"one cup"), Row(b"tea", b"one cup")]


def write(env: StreamExecutionEnvironment, servers: str) -> None:
    records = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(TOPIC)
        .set_key_serialization_schema(RowFieldExtractorSchema(0))
        .set_value_serialization_schema(RowFieldExtractorSchema(1))
    )
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers(servers)
        .set_record_serializer(records.build())
        .set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE)
        .build()
    )
    env.from_collection(DRINKS, Types.ROW([BYTES, BYTES])).sink_to(sink)
    env.execute("write fields")


def read(env: StreamExecutionEnvironment, servers: str) -> None:
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(servers)
        .set_topics(TOPIC)
        .set_group_id("examples")
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_value_only_deserializer(SimpleStringSchema())
        .build()
    )
    rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "fields")
    rows.print()
    env.execute("read fields")


def main(servers: str = "localhost:9092") -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    write(env, servers)
    read(env, servers)


if __name__ == "__main__":
    main(*sys.argv[1:])
