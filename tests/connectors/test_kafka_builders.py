"""What the builders of Kafka sources accept, and schemas of values. No broker."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import pytest

from holdfast.common import Row, SimpleStringSchema, Types
from holdfast.connectors.kafka.source import KafkaSourceBuilder
from holdfast.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from holdfast.datastream.formats.avro import AvroRowDeserializationSchema, AvroRowSerializationSchema
from holdfast.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema
from holdfast.errors import MissingExtraError, ProgramError, RowTypeError
from holdfast.runtime.source import ReaderContext
from holdfast.types.row import NamesOf

pytest.importorskip("confluent_kafka")


def builder() -> KafkaSourceBuilder:
    made = KafkaSource.builder().set_bootstrap_servers("127.0.0.1:1").set_topics("a")
    return made.set_value_only_deserializer(SimpleStringSchema())


def test_a_source_knows_its_type_and_whether_it_ends() -> None:
    source = builder().build()
    assert source.output_type() == Types.STRING() and not source.bounded
    assert builder().set_bounded(KafkaOffsetsInitializer.latest()).build().bounded


def test_making_a_reader_asks_no_broker() -> None:
    source = pickle.loads(pickle.dumps(builder().build()))
    reader = source.create_reader(ReaderContext(0, 1, [["a", 0, 5, None, "id"]]))
    assert not reader.ended


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b: b.set_topics("b"), "already"),
        (lambda b: b.set_topic_pattern("b.*"), "already"),
        (lambda b: b.set_property("enable.auto.commit", True).build(), "cannot be changed"),
        (lambda b: b.set_property("commit.offsets.on.checkpoint", "true").build(), "set_group_id"),
        (lambda b: b.set_starting_offsets(KafkaOffsetsInitializer.committed_offsets()).build(), "set_group_id"),
    ],
)
def test_what_cannot_be(change: Any, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        change(builder())


def test_what_is_missing() -> None:
    with pytest.raises(ProgramError, match="set_bootstrap_servers"):
        KafkaSource.builder().set_topics("a").build()


def test_without_the_client_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(MissingExtraError, match=r"holdfast\[kafka\]"):
        builder().build()


ORDER = Row("user", "n", "tags")
TYPE = "user STRING, n BIGINT, tags ARRAY<STRING>"


def test_json_there_and_back() -> None:
    rows = [ORDER("a", 1, ["x"]), ORDER(None, None, None)]
    writing = pickle.loads(pickle.dumps(JsonRowSerializationSchema.builder().with_type_info(TYPE).build()))
    reading = JsonRowDeserializationSchema.builder().type_info(TYPE).build()
    messages = writing.serialize_all(rows)
    assert messages[0] == b'{"user":"a","n":1,"tags":["x"]}'
    reading.deserialize_all(messages)
    assert pickle.loads(pickle.dumps(reading)).deserialize_all(messages).values == rows
    assert JsonRowSerializationSchema().serialize({"a": [1]}) == b'{"a":[1]}'


@pytest.mark.parametrize("messages", [[b"{}", b""], [b"{} {}"], [b"[1]"], [b'{"n": "x"}']])
def test_messages_that_are_not_one_object_of_the_type(messages: list[bytes]) -> None:
    reading = JsonRowDeserializationSchema.builder().type_info(TYPE).build()
    with pytest.raises(ValueError):
        reading.deserialize_all(messages)


def test_json_rows_of_another_type_are_refused() -> None:
    with pytest.raises(RowTypeError):
        JsonRowSerializationSchema("n BIGINT").serialize(Row(n="x"))


AVRO = """{"type": "record", "name": "Order", "fields": [
    {"name": "user", "type": "string"}, {"name": "n", "type": ["null", "long"]},
    {"name": "tags", "type": {"type": "array", "items": "string"}}]}"""


def test_avro_there_and_back() -> None:
    pytest.importorskip("fastavro")
    writing = pickle.loads(pickle.dumps(AvroRowSerializationSchema(avro_schema_string=AVRO)))
    reading = AvroRowDeserializationSchema(avro_schema_string=AVRO)
    rows = [ORDER("a", 1, ["x"]), ORDER("b", None, [])]
    messages = writing.serialize_all(rows)
    assert writing.serialize({"user": "a", "n": 1, "tags": ["x"]}) == messages[0]
    # Its names say no more than the positions, and are none of the record's.
    by_position = Row.factory(["f0", "f1", "f2"], NamesOf.POSITIONS)(["a", 1, ["x"]])
    assert writing.serialize(by_position) == writing.serialize(Row("a", 1, ["x"])) == messages[0]
    assert reading.deserialize_all(messages).values == rows
    assert pickle.loads(pickle.dumps(reading)).deserialize(messages[1]) == rows[1]
    types = [Types.STRING(), Types.LONG(), Types.PICKLED_BYTE_ARRAY()]
    assert reading.get_produced_type() == Types.ROW_NAMED(["user", "n", "tags"], types)
    with pytest.raises(ValueError, match="left behind"):
        reading.deserialize(messages[0] + b"x")


def test_avro_needs_the_schema_of_a_record() -> None:
    for wrong in (None, "{", '"string"'):
        with pytest.raises(ProgramError, match="avro_schema_string"):
            AvroRowDeserializationSchema(avro_schema_string=wrong)
