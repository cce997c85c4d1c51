"""Writes bytes to a topic of Kafka as they are, and reads them from there."""

from __future__ import annotations

import sys

from holdfast.common import ByteArraySchema, Types, WatermarkStrategy
from holdfast.datastream import StreamExecutionEnvironment
from holdfast.datastream.connectors.base import DeliveryGuarantee
from holdfast.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)

TOPIC = "drinks-in-bytes"
BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())
DRINKS = [b"tea", b"coffee", "maté".encode()]


def write(env: StreamExecutionEnvironment, servers: str) -> None:
    records = (
        KafkaRecordSerializationSchema.builder().set_topic(TOPIC).set_value_serialization_schema(ByteArraySchema())
    )
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers(servers)
        .set_record_serializer(records.build())
        .set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE)
        .build()
    )
    env.from_collection(DRINKS, BYTES).sink_to(sink)
    env.execute("write bytes")


def read(env: StreamExecutionEnvironment, servers: str) -> None:
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(servers)
        .set_topics(TOPIC)
        .set_group_id("examples")
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_value_only_deserializer(ByteArraySchema())
        .build()
    )
    rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "bytes")
    rows.map(lambda value: value.decode(), Types.STRING()).print()
    env.execute("read bytes")


def main(servers: str = "localhost:9092") -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    write(env, servers)
    read(env, servers)


if __name__ == "__main__":
    main(*sys.argv[1:])
