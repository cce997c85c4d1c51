"""Writes rows to a topic of Kafka as JSON, and reads them from there."""

from __future__ import annotations

import sys

from holdfast.common import Types, WatermarkStrategy
from holdfast.datastream import StreamExecutionEnvironment
from holdfast.datastream.connectors.base import DeliveryGuarantee
from holdfast.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from holdfast.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema

TOPIC = "drinks-in-json"
DRINK = Types.ROW_NAMED(["id", "name", "price"], [Types.INT(), Types.STRING(), Types.DOUBLE()])
DRINKS = [(1, "tea", 2.5), (2, "coffee", 3.0), (3, "mate", 2.75)]


def write(env: StreamExecutionEnvironment, servers: str) -> None:
    schema = JsonRowSerializationSchema.builder().with_type_info(DRINK).build()
    records = KafkaRecordSerializationSchema.builder().set_topic(TOPIC).set_value_serialization_schema(schema).build()
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers(servers)
        .set_record_serializer(records)
        .set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE)
        .build()
    )
    env.from_collection(DRINKS, DRINK).sink_to(sink)
    env.execute("write json")


def read(env: StreamExecutionEnvironment, servers: str) -> None:
    schema = JsonRowDeserializationSchema.builder().type_info(DRINK).ignore_parse_errors().build()
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(servers)
        .set_topics(TOPIC)
        .set_group_id("examples")
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_value_only_deserializer(schema)
        .build()
    )
    rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "json")
    rows.print()
    env.execute("read json")


def main(servers: str = "localhost:9092") -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    write(env, servers)
    read(env, servers)


if __name__ == "__main__":
    main(*sys.argv[1:])
