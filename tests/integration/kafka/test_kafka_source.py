"""The Kafka source on a real broker: positions, starts and ends, new partitions, and what it refuses."""

from __future__ import annotations

import pickle
import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from holdfast.common import ByteArraySchema, SimpleStringSchema, Types
from holdfast.connectors.kafka import consumers
from holdfast.connectors.kafka.source import KafkaSourceBuilder
from holdfast.datastream.connectors.kafka import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaSource,
    KafkaTopicPartition,
)
from holdfast.datastream.formats.csv import CsvRowDeserializationSchema
from holdfast.datastream.formats.json import JsonRowDeserializationSchema
from holdfast.errors import ProgramError, SourceError
from holdfast.runtime.source import ReadLimit, SourceReader
from holdfast.testing.chaos.processes import wait_until
from tests.connectors.driving import positions_of, read_all, read_epoch, readers_of, run_with_failures
from tests.kit.kafka import KafkaBroker

Topics = Callable[..., str]


def source_of(kafka: KafkaBroker, *topics: str) -> KafkaSourceBuilder:
    builder = KafkaSource.builder().set_bootstrap_servers(kafka.servers)
    builder.set_value_only_deserializer(SimpleStringSchema()).set_property("log_level", 0)
    return builder.set_topics(*topics) if topics else builder


def bounded(kafka: KafkaBroker, *topics: str) -> KafkaSourceBuilder:
    return source_of(kafka, *topics).set_bounded(KafkaOffsetsInitializer.latest())


def texts(first: int, last: int) -> list[str]:
    return [str(number) for number in range(first, last)]


def read_to_end(readers: list[SourceReader]) -> list[Any]:
    rows: list[Any] = []

    def ended() -> bool | None:
        rows.extend(read_all(readers))
        return all(reader.ended for reader in readers) or None

    wait_until(ended, 30, "the end of the source")
    return rows


def test_a_bounded_source_reads_all_partitions_in_their_order_and_ends(kafka: KafkaBroker, topic: Topics) -> None:
    name = topic(3)
    for partition in range(3):
        kafka.produce(name, texts(partition * 1000, partition * 1000 + 1000), partition)
    rows = read_to_end(readers_of(bounded(kafka, name).build(), 2))
    assert sorted(map(int, rows)) == list(range(3000))
    for partition in range(3):
        assert [row for row in map(int, rows) if row // 1000 == partition] == list(
            range(partition * 1000, partition * 1000 + 1000)
        )


def test_each_message_once_over_failures_travels_and_rescales(kafka: KafkaBroker, topic: Topics) -> None:
    names = [topic(3), topic(2)]
    for number, name in enumerate(names):
        kafka.produce(name, texts(number * 5000, number * 5000 + 5000))
    for seed in range(3):
        rows = run_with_failures(bounded(kafka, *names).build(), random.Random(seed), epoch_rows=900)
        assert sorted(map(int, rows)) == list(range(10_000))


def test_an_end_behind_marks_of_transactions_is_reached(kafka: KafkaBroker, topic: Topics) -> None:
    name = topic()
    producer = Producer({"bootstrap.servers": kafka.servers, "transactional.id": name})
    producer.init_transactions(30)
    for number in range(4):
        producer.begin_transaction()
        producer.produce(name, str(number))
        if number % 2:
            producer.flush()
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    assert read_to_end(readers_of(bounded(kafka, name).build(), 1)) == ["0", "2"]


def test_where_reading_starts(kafka: KafkaBroker, topic: Topics) -> None:
    name = topic()
    kafka.produce(name, texts(0, 5), timestamp=1_000_000)
    kafka.produce(name, texts(5, 10), timestamp=2_000_000)
    place = KafkaTopicPartition(name, 0)

    def rows(start: KafkaOffsetsInitializer, **properties: str) -> list[str]:
        builder = bounded(kafka, name).set_starting_offsets(start)
        for key, value in properties.items():
            builder.set_property(key.replace("_", "."), value)
        return read_to_end(readers_of(builder.build(), 1))

    initializer = KafkaOffsetsInitializer
    assert rows(initializer.earliest()) == texts(0, 10)
    assert rows(initializer.latest()) == []
    assert rows(initializer.timestamp(1_500_000)) == texts(5, 10)
    assert rows(initializer.timestamp(3_000_000)) == []
    assert rows(initializer.offsets({place: 7})) == texts(7, 10)
    assert rows(initializer.offsets({}, KafkaOffsetResetStrategy.EARLIEST)) == texts(0, 10)
    with pytest.raises(SourceError, match="has committed"):
        rows(initializer.committed_offsets(), group_id=name)
    assert rows(initializer.committed_offsets(KafkaOffsetResetStrategy.LATEST), group_id=name) == []
    consumer = Consumer({"bootstrap.servers": kafka.servers, "group.id": name})
    consumer.commit(offsets=[TopicPartition(name, 0, 8)], asynchronous=False)
    consumer.close()
    assert rows(initializer.committed_offsets(), group_id=name) == texts(8, 10)


def test_a_source_without_end_does_not_wait_for_data(kafka: KafkaBroker, topic: Topics) -> None:
    name = topic()
    [reader] = readers_of(source_of(kafka, name).build(), 1)
    assert read_epoch(reader) == []
    began = time.monotonic()
    for _ in range(20):
        assert read_epoch(reader) == []
    assert time.monotonic() - began < 1
    kafka.produce(name, texts(0, 100))
    rows: list[str] = []
    wait_until(lambda: rows.extend(read_epoch(reader)) or len(rows) == 100 or None, 10, "rows")
    assert rows == texts(0, 100) and not reader.ended
    reader.close()


def test_new_partitions_are_found_and_read_from_their_begin(kafka: KafkaBroker, topic: Topics) -> None:
    name = topic(1)
    kafka.produce(name, ["before"])
    builder = source_of(kafka, name).set_starting_offsets(KafkaOffsetsInitializer.latest())
    readers = readers_of(builder.set_property("partition.discovery.interval.ms", 50).build(), 2)
    assert read_all(readers) == []
    kafka.add_partitions(name, 3)
    kafka.produce(name, ["one"], 1)
    kafka.produce(name, ["two"], 2)
    rows: list[str] = []
    wait_until(lambda: rows.extend(read_all(readers)) or len(rows) == 2 or None, 20, "rows of new partitions")
    assert sorted(rows) == ["one", "two"]
    # A partition that appeared while the job was down is a new one, too.
    kafka.add_partitions(name, 4)
    kafka.produce(name, ["three"], 3)
    restored = readers_of(builder.build(), 3, positions_of(readers))
    rows = []
    wait_until(lambda: rows.extend(read_all(restored)) or rows or None, 20, "rows of new partitions")
    assert rows == ["three"]


def test_topics_by_pattern(kafka: KafkaBroker, topic: Topics) -> None:
    one, two = topic(), topic()
    kafka.produce(one, ["1"])
    kafka.produce(two, ["2"])
    builder = source_of(kafka).set_topic_pattern(f"{one}|{two[:-1]}.")
    rows = read_to_end(readers_of(builder.set_bounded(KafkaOffsetsInitializer.latest()).build(), 2))
    assert sorted(rows) == ["1", "2"]


def test_a_consumer_stays_open_between_epochs_and_is_set_back_after_a_failure(
    kafka: KafkaBroker, topic: Topics
) -> None:
    name = topic()
    kafka.produce(name, texts(0, 1000))
    [reader] = readers_of(source_of(kafka, name).build(), 1)
    assert read_epoch(reader, 10) == texts(0, 10)
    [open_one] = [consumer for key, consumer in consumers._open.items() if key == reader._key]
    before = pickle.dumps(reader)
    assert read_epoch(reader, 10) == texts(10, 20)
    failed = pickle.loads(before)
    assert read_epoch(failed, 10) == texts(10, 20)
    assert consumers._open[reader._key] is open_one
    reader.close()


class FailsOnce(SimpleStringSchema):
    """Raises at its first call in a process, as a function may."""

    calls = 0

    def deserialize_all(self, messages: Any) -> Any:
        FailsOnce.calls += 1
        # The first call, and the search for the message that it failed with.
        if FailsOnce.calls <= 2:
            raise ConnectionError("no answer")
        return super().deserialize_all(messages)


def test_messages_that_were_taken_and_not_decoded_come_again(kafka: KafkaBroker, topic: Topics) -> None:
    name = topic(2)
    for partition in range(2):
        kafka.produce(name, texts(partition * 100, partition * 100 + 100), partition)
    source = bounded(kafka, name).set_value_only_deserializer(FailsOnce()).build()
    [reader] = readers_of(source, 1)
    positions = positions_of([reader])
    with pytest.raises(SourceError, match="no answer"):
        read_epoch(reader)
    rows = read_to_end(readers_of(source, 1, positions))
    assert sorted(map(int, rows)) == list(range(200))


def test_messages_that_cannot_be_read_are_left_out_over_failures_and_rescales(
    kafka: KafkaBroker, topic: Topics
) -> None:
    """Every third one is no record; times and offsets are still those of the others."""
    name = topic(3)
    kafka.produce(name, [f"{n},a" if n % 3 else f"{n},a,b" for n in range(6000)])
    row_type = Types.ROW_NAMED(["n", "text"], [Types.INT(), Types.STRING()])
    schema = CsvRowDeserializationSchema.Builder(row_type).set_ignore_parse_errors(True).build()
    source = bounded(kafka, name).set_value_only_deserializer(schema).build()
    for seed in range(2):
        rows = run_with_failures(source, random.Random(seed), epoch_rows=700)
        assert sorted(row.n for row in rows) == [n for n in range(6000) if n % 3]


def test_the_times_of_messages_that_are_left_out_are_left_out(kafka: KafkaBroker, topic: Topics) -> None:
    name = topic()
    for number, value in enumerate([b"1", b"x", b"3"]):
        kafka.produce(name, [value.decode()], timestamp=1000 + number)
    schema = JsonRowDeserializationSchema.builder().type_info("value BIGINT").ignore_parse_errors().build()
    kafka.produce(name, ['{"value": 7}'], timestamp=2000)
    [reader] = readers_of(bounded(kafka, name).set_value_only_deserializer(schema).build(), 1)
    batches: list[Any] = []
    wait_until(lambda: batches.extend(reader.read(ReadLimit(10, time.monotonic() + 5))) or batches or None, 30, "rows")
    [batch] = batches
    assert ([row.value for row in batch.values], batch.origin.record_times) == ([7], [2000])


def test_only_chosen_partitions_are_read(kafka: KafkaBroker, topic: Topics) -> None:
    names = [topic(3), topic(2)]
    for name in names:
        for partition in range(2):
            kafka.produce(name, [f"{name} {partition}"], partition)
    chosen = {KafkaTopicPartition(names[0], 1), KafkaTopicPartition(names[1], 0)}
    expected = sorted([f"{names[0]} 1", f"{names[1]} 0"])
    assert sorted(read_to_end(readers_of(bounded(kafka).set_partitions(chosen).build(), 2))) == expected
    readers = readers_of(source_of(kafka).set_partitions(chosen).build(), 2)
    found: list[Any] = []
    wait_until(lambda: found.extend(read_all(readers)) or len(found) == 2 or None, 30, "both partitions")
    assert sorted(found) == expected
    fewer = source_of(kafka).set_partitions({KafkaTopicPartition(names[0], 1)}).build()
    kafka.produce(names[1], ["more"], 0)
    kafka.produce(names[0], ["still read"], 1)
    again = readers_of(fewer, 1, positions_of(readers))
    rows: list[Any] = []
    wait_until(lambda: rows.extend(read_all(again)) or rows or None, 30, "the partition that is still read")
    assert rows == ["still read"]
    [reader] = readers_of(bounded(kafka).set_partitions({KafkaTopicPartition(names[0], 9)}).build(), 1)
    with pytest.raises(SourceError, match=rf"the brokers do not have {names[0]}-9"):
        read_epoch(reader)
    with pytest.raises(ProgramError, match="takes a set of KafkaTopicPartition"):
        source_of(kafka).set_partitions({names[0]})  # type: ignore[arg-type]


def test_the_group_hears_of_an_offset_when_its_checkpoint_has_completed(kafka: KafkaBroker, topic: Topics) -> None:
    name = topic()
    kafka.produce(name, texts(0, 100))
    [reader] = readers_of(source_of(kafka, name).set_group_id(name).build(), 1)
    consumer = Consumer({"bootstrap.servers": kafka.servers, "group.id": name})

    def committed() -> int:
        return consumer.committed([TopicPartition(name, 0)], timeout=10)[0].offset

    read_epoch(reader, 10)
    reader.positions_at(1)
    read_epoch(reader, 10)
    reader.positions_at(2)
    assert committed() < 0
    reader.notify_checkpoint_complete(1)
    wait_until(lambda: committed() == 10 or None, 10, "the offset of checkpoint 1")
    reader.notify_checkpoint_aborted(2)
    reader.notify_checkpoint_complete(2)
    read_epoch(reader, 10)
    reader.positions_at(3)
    reader.notify_checkpoint_complete(3)
    wait_until(lambda: committed() == 30 or None, 10, "the offset of checkpoint 3")
    reader.close()
    consumer.close()


def restored_reader(builder: KafkaSourceBuilder, positions: list[Any]) -> SourceReader:
    return readers_of(builder.build(), 1, positions)[0]


def test_what_no_longer_is_where_it_was_is_an_error(kafka: KafkaBroker, topic: Topics) -> None:
    name = topic(2)
    kafka.produce(name, texts(0, 10), 0)
    builder = source_of(kafka, name)
    [reader] = readers_of(builder.build(), 1)
    read_epoch(reader)
    positions = positions_of([reader])
    beyond = [(t, p, offset + 1000, stop, i) for t, p, offset, stop, i in positions]
    with pytest.raises(SourceError, match=r"offset 10\d\d of .*no longer has"):
        read_epoch(restored_reader(builder, beyond))
    with pytest.raises(SourceError, match="partition no longer exists"):
        read_epoch(restored_reader(builder, [*positions, (name, 7, 0, None, positions[0][4])]))

    kafka.delete_topic(name)
    with pytest.raises(SourceError, match="does not have all of them"):
        read_epoch(restored_reader(builder, positions))
    kafka.create_topic(name, 2)
    kafka.produce(name, texts(100, 120), 0)
    with pytest.raises(SourceError, match="deleted and created again"):
        read_epoch(restored_reader(builder, positions))
    accepted = builder.set_property("auto.offset.reset", "earliest")
    assert read_epoch(restored_reader(accepted, positions)) == texts(100, 120)


def test_rows_of_json_and_what_is_none(kafka: KafkaBroker, topic: Topics) -> None:
    name = topic()
    kafka.produce(name, [b'{"user": "a", "n": 1}', b'{"user": "b",\n "n": 2, "more": []}', b"{}"])
    kafka.produce(name, [("gone", None)])
    schema = JsonRowDeserializationSchema.builder().type_info("user STRING, n BIGINT").build()
    builder = bounded(kafka, name).set_value_only_deserializer(schema)
    rows = read_to_end(readers_of(builder.build(), 1))
    assert [tuple(row) for row in rows] == [("a", 1), ("b", 2), (None, None)]
    kafka.produce(name, [b'{"user": "c", "n": 3}', b"no JSON"])
    with pytest.raises(SourceError, match=rf"offset 5 of {name}-0 cannot be read.*no JSON"):
        read_to_end(readers_of(builder.build(), 1))


def test_bytes_as_they_are(kafka: KafkaBroker, topic: Topics) -> None:
    name = topic()
    kafka.produce(name, [b"\xff\x00", b""])
    builder = bounded(kafka, name).set_value_only_deserializer(ByteArraySchema())
    assert read_to_end(readers_of(builder.build(), 1)) == [b"\xff\x00", b""]


def test_a_partition_that_waits_is_not_read_and_goes_on_later(kafka: KafkaBroker, topic: Topics) -> None:
    name = topic(2)
    kafka.produce(name, texts(0, 500), 0)
    kafka.produce(name, texts(500, 1_000), 1)
    [reader] = readers_of(source_of(kafka, name).build(), 1)
    waiting = {f"{name}-1"}
    limit = ReadLimit(100, time.monotonic() + 60, waiting.__contains__)
    first = [value for batch in reader.read(limit) for value in batch.values]
    assert first == texts(0, 100)
    waiting = {f"{name}-0"}
    limit = ReadLimit(2_000, time.monotonic() + 5, waiting.__contains__)
    second = [value for batch in reader.read(limit) for value in batch.values]
    assert second and second == texts(500, 500 + len(second))
    # All of them wait: nothing is read, and nothing is lost by it.
    nothing = ReadLimit(2_000, time.monotonic() + 5, lambda split: True)
    assert list(reader.read(nothing)) == []
    rest = read_epoch(reader)
    assert sorted(map(int, first + second + rest)) == list(range(1_000))
    reader.close()


def test_reading_goes_on_when_the_broker_is_back(kafka: KafkaBroker, topic: Topics) -> None:
    name = topic()
    kafka.produce(name, texts(0, 100))
    [reader] = readers_of(source_of(kafka, name).set_property("reconnect.backoff.max.ms", 500).build(), 1)
    assert read_epoch(reader) == texts(0, 100)
    kafka.kill()
    assert list(reader.read(ReadLimit(100, time.monotonic() + 1))) == []
    kafka.start()
    kafka.produce(name, texts(100, 200))
    rows: list[str] = []
    wait_until(lambda: rows.extend(read_epoch(reader)) or len(rows) == 100 or None, 30, "rows")
    assert rows == texts(100, 200)
    reader.close()
