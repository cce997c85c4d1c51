"""Small forms of PyFlink's common classes: typed configuration, options of a program, states of jobs, fields."""

from __future__ import annotations

import pytest

import holdfast.common
from holdfast.common import ConfigOptions, Configuration, Duration, JobStatus, Row, Time
from holdfast.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from holdfast.common.serialization import RowFieldExtractorSchema
from holdfast.connectors.kafka.records import KafkaRecordSerializationSchema, KafkaTopicSelector
from holdfast.datastream.closeable_iterator import CloseableIterator
from holdfast.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema
from holdfast.errors import ConfigurationError, ProgramError, RowTypeError
from holdfast.runtime.batch import Batch


def typed() -> Configuration:
    configuration = Configuration()
    configuration.set_string("k1", "v1").set_integer("k2", 1).set_float("k3", 1.2)
    return configuration.set_boolean("k4", True).set_bytearray("k5", bytearray([1, 2, 3]))


VALUES = {"k1": "v1", "k2": 1, "k3": 1.2, "k4": True, "k5": bytearray([1, 2, 3])}


def test_a_dict_gets_values_as_they_were_set() -> None:
    given: dict[str, object] = {"k0": 0}
    typed().add_all_to_dict(given)
    assert given == {"k0": 0, **VALUES}
    assert typed().to_dict() == {"k1": "v1", "k2": "1", "k3": "1.2", "k4": "true", "k5": "010203"}


def test_types_travel_with_their_values() -> None:
    copied: dict[str, object] = {}
    more = Configuration(typed()).add_all(typed(), "p.")
    more.set_string("k2", "2")
    more.remove_config("k3")
    more.add_all_to_dict(copied)
    assert copied == {
        **{key: value for key, value in VALUES.items() if key not in ("k2", "k3")},
        "k2": "2",
        **{f"p.{key}": value for key, value in VALUES.items()},
    }
    assert typed() == Configuration.from_dict(map=typed().to_dict())


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        ("file:///a.jar;file:///b.jar", ["file:///a.jar", "file:///b.jar"]),
        ("- file:///a.jar\n- file:///b.jar", ["file:///a.jar", "file:///b.jar"]),
        ("[a, b]", ["a", "b"]),
    ],
)
def test_lists_are_parsed(text: str, parts: list[str]) -> None:
    assert Configuration.parse_list_value(text) == parts


def test_options_of_a_program() -> None:
    option = ConfigOptions.key("My.limit").int_type().default_value(3)
    configuration = Configuration()
    assert (configuration.get(option), configuration.contains(option)) == (3, False)
    configuration.set_integer("My.limit", 5)
    assert configuration.get(option) == 5
    configuration.set_string("My.limit", "many")
    with pytest.raises(ConfigurationError, match=r"My\.limit"):
        configuration.get(option)
    assert configuration.get(ConfigOptions.key("a").string_type().no_default_value()) is None
    kinds = ConfigOptions.key("k4")
    assert typed().get(kinds.boolean_type().default_value(False)) is True
    assert typed().get(ConfigOptions.key("k3").double_type().no_default_value()) == 1.2
    assert typed().get(ConfigOptions.key("k2").long_type().no_default_value()) == 1
    assert typed().get(ConfigOptions.key("k3").float_type().default_value(0.5)) == 1.2


def test_states_of_jobs() -> None:
    terminal = {status for status in JobStatus if status.is_terminal_state()}
    everywhere = {status for status in JobStatus if status.is_globally_terminal_state()}
    assert everywhere == {JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED}
    assert terminal == {*everywhere, JobStatus.SUSPENDED}


def test_a_time_is_made_of_milliseconds() -> None:
    assert Time(milliseconds=5) == Time.milliseconds(5) < Time(6)
    assert Time(5).to_milliseconds() == 5
    assert hash(Time(5)) == hash(Time.milliseconds(5)) and Duration.of_millis(5).to_millis() == 5
    assert (MIN_LONG_VALUE, MAX_LONG_VALUE) == (-(2**63), 2**63 - 1)


def test_an_iterator_has_next() -> None:
    closed: list[bool] = []
    with CloseableIterator(iter([1, 2]), lambda: closed.append(True)) as rows:
        assert (rows.next(), next(rows)) == (1, 2)
        with pytest.raises(StopIteration):
            rows.next()
    assert closed == [True]


def test_a_field_of_a_row_is_a_record() -> None:
    class ByLength(KafkaTopicSelector):
        def apply(self, data: Row) -> str:
            return f"topic-{len(data[1])}"

    builder = KafkaRecordSerializationSchema.builder().set_topic_selector(ByLength())
    builder.set_key_serialization_schema(RowFieldExtractorSchema(0))
    records = builder.set_value_serialization_schema(RowFieldExtractorSchema(1)).build().records_of(
        Batch([Row(b"k", b"v"), (b"k", bytearray(b"vv"))])
    )
    assert (records.topics, records.keys, records.values) == (["topic-1", "topic-2"], [b"k", b"k"], [b"v", b"vv"])
    with pytest.raises(ValueError, match="non-negative, got: -1"):
        RowFieldExtractorSchema(-1)
    with pytest.raises(RowTypeError, match=r"Field 0 of .* is str; RowFieldExtractorSchema takes bytes"):
        RowFieldExtractorSchema(0).serialize(Row("text"))


def test_formats_are_where_pyflink_has_them_too() -> None:
    assert holdfast.common.JsonRowDeserializationSchema is JsonRowDeserializationSchema
    assert JsonRowSerializationSchema.Builder().build().serialize({"a": 1}) == b'{"a":1}'
    assert isinstance(JsonRowDeserializationSchema.builder(), JsonRowDeserializationSchema.Builder)


def test_missing_fields_of_json_fail_where_they_must_not_miss() -> None:
    builder = JsonRowDeserializationSchema.builder().type_info("a BIGINT, b STRING")
    assert tuple(builder.build().deserialize(b'{"a": 1}')) == (1, None)
    schema = builder.fail_on_missing_field().build()
    assert tuple(schema.deserialize(b'{"a": 1, "b": null}')) == (1, None)
    with pytest.raises(ValueError, match="Could not find field with name 'b'"):
        schema.deserialize(b'{"a": 1}')
    with pytest.raises(ProgramError, match="Leave one out"):
        builder.ignore_parse_errors().build()


def test_messages_that_are_no_json_are_left_out_where_the_program_says_so() -> None:
    schema = JsonRowDeserializationSchema.builder().type_info("a BIGINT").ignore_parse_errors().build()
    batch, kept = schema.read_all([b'{"a": 1}', b"{", b'{"a": "x"}', b'{"a": 4}'])
    assert ([row.a for row in batch.values], kept) == ([1, 4], [0, 3])
    assert schema.deserialize(b"{") is None
    assert schema.get_produced_type() is not None
    with pytest.raises(ProgramError, match=r"declare the fields with type_info"):
        JsonRowDeserializationSchema.builder().json_schema("{}")
