"""Rows to Kafka and back in the formats of PyFlink's examples but for Avro, whose Java classes are gone in Flink 2.

``PARITY_KAFKA`` says where the broker is; topics are made by whoever writes first.
"""

import json
import os
import uuid

from pyflink.common import ByteArraySchema, Row, SimpleStringSchema, Types, WatermarkStrategy
from pyflink.common.serialization import RowFieldExtractorSchema
from pyflink.datastream.connectors.kafka import (
    DeliveryGuarantee,
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from pyflink.datastream.formats.csv import CsvRowDeserializationSchema, CsvRowSerializationSchema
from pyflink.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema

from tests.parity.case import program

ROWS = [(1, "hi"), (2, "hello"), (3, "a, \"b\" and 'c'"), (4, "grün"), (5, ""), (6, "hello"), (6, "hello")]
KIND = Types.ROW([Types.INT(), Types.STRING()])
NAMED = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])
BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())


def new_topic():
    return f"parity-{uuid.uuid4().hex[:12]}"


def sink_of(records):
    sink = KafkaSink.builder().set_bootstrap_servers(os.environ["PARITY_KAFKA"])
    return sink.set_record_serializer(records.build()).set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE).build()


def records_of(topic, values):
    return KafkaRecordSerializationSchema.builder().set_topic(topic).set_value_serialization_schema(values)


def write(env, rows, topic, values):
    rows.sink_to(sink_of(records_of(topic, values)))
    env.execute(f"write {topic}")


def read(env, topic, values):
    source = (
        KafkaSource.builder()
        .set_topics(topic)
        .set_value_only_deserializer(values)
        .set_properties({"bootstrap.servers": os.environ["PARITY_KAFKA"], "group.id": topic})
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_bounded(KafkaOffsetsInitializer.latest())
        .build()
    )
    return env.from_source(source, watermark_strategy=WatermarkStrategy.no_watermarks(), source_name="kafka source")


def there_and_back(env, kind, writing, reading):
    """The texts that are in the topic, and the rows that are read from it."""
    topic = new_topic()
    write(env, env.from_collection(ROWS, kind), topic, writing)
    texts = read(env, topic, SimpleStringSchema()).map(lambda text: f"text {text}", Types.STRING())
    return texts.union(read(env, topic, reading).map(lambda row: f"row {row}", Types.STRING()))


@program()
def json_rows(env, out):
    return there_and_back(
        env,
        KIND,
        JsonRowSerializationSchema.Builder().with_type_info(KIND).build(),
        JsonRowDeserializationSchema.Builder().type_info(KIND).build(),
    )


@program()
def json_rows_with_names(env, out):
    return there_and_back(
        env,
        NAMED,
        JsonRowSerializationSchema.Builder().with_type_info(NAMED).build(),
        JsonRowDeserializationSchema.builder().type_info(NAMED).ignore_parse_errors().build(),
    )


@program(8)
def csv_rows(env, out):
    return there_and_back(
        env,
        KIND,
        CsvRowSerializationSchema.Builder(KIND).build(),
        CsvRowDeserializationSchema.Builder(KIND).build(),
    )


@program(8)
def csv_rows_with_settings(env, out):
    return there_and_back(
        env,
        NAMED,
        CsvRowSerializationSchema.Builder(NAMED).set_field_delimiter(";").set_quote_character("'").build(),
        CsvRowDeserializationSchema.Builder(NAMED).set_field_delimiter(";").set_quote_character("'").build(),
    )


@program()
def byte_arrays(env, out):
    topic = new_topic()
    values = env.from_collection([(json.dumps({"id": n}).encode(),) for n in range(3)], Types.ROW([BYTES]))
    write(env, values.map(lambda row: row[0], BYTES), topic, ByteArraySchema())
    return read(env, topic, ByteArraySchema()).map(lambda value: value.decode("utf-8"), Types.STRING())


@program()
def strings(env, out):
    topic = new_topic()
    write(env, env.from_collection(["a", "grün", ""], Types.STRING()), topic, SimpleStringSchema())
    return read(env, topic, SimpleStringSchema())


@program(8)
def fields_as_keys_and_values(env, out):
    topic = new_topic()
    rows = [Row(f"user {n % 2}".encode(), json.dumps({"n": n}).encode()) for n in range(4)]
    records = records_of(topic, RowFieldExtractorSchema(1)).set_key_serialization_schema(RowFieldExtractorSchema(0))
    env.from_collection(rows, Types.ROW([BYTES, BYTES])).sink_to(sink_of(records))
    env.execute("fields")
    return read(env, topic, SimpleStringSchema())


@program(modes=("STREAMING",))
def counted_by_key(env, out):
    """Rows of a topic through keyed state into another one. In a batch PyFlink gives them a time that Kafka refuses."""
    topic, counts = new_topic(), new_topic()
    write(
        env, env.from_collection(ROWS, NAMED), topic, JsonRowSerializationSchema.Builder().with_type_info(NAMED).build()
    )
    rows = read(env, topic, JsonRowDeserializationSchema.builder().type_info(NAMED).build())
    pair = Types.TUPLE([Types.STRING(), Types.INT()])
    summed = rows.map(lambda row: (row.name, 1), pair).key_by(lambda one: one[0], key_type=Types.STRING()).sum(1)
    write(env, summed.map(lambda one: f"{one[0]}: {one[1]}", Types.STRING()), counts, SimpleStringSchema())
    return read(env, counts, SimpleStringSchema())
