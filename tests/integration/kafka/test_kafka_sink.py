"""The Kafka sink on a real broker: the contract of sinks, and a crash at every step of a commit."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Configuration, SimpleStringSchema, Types
from holdfast.connectors.kafka import direct, publishing
from holdfast.connectors.kafka.publishing import forget_publishers
from holdfast.datastream import StreamExecutionEnvironment
from holdfast.datastream.connectors.kafka import DeliveryGuarantee, KafkaRecordSerializationSchema, KafkaSink
from holdfast.errors import ProgramError, TransactionError
from holdfast.runtime.batch import Batch
from holdfast.runtime.sink import TwoPhaseCommitSink
from holdfast.testing.contracts.sinks import (
    JOB,
    ExternalSinkContract,
    commit_in_process,
    pre_commit,
    transaction_name,
)
from tests.kit.faults import FaultPlan
from tests.kit.kafka import KafkaBroker

GUARANTEE = DeliveryGuarantee


def sink_to(
    kafka: KafkaBroker, topic: Any, directory: Path, guarantee: DeliveryGuarantee = GUARANTEE.EXACTLY_ONCE
) -> TwoPhaseCommitSink:
    records = KafkaRecordSerializationSchema.builder().set_value_serialization_schema(SimpleStringSchema())
    records = records.set_topic(topic) if isinstance(topic, str) else records.set_topic_selector(topic)
    builder = KafkaSink.builder().set_bootstrap_servers(kafka.servers).set_record_serializer(records.build())
    builder.set_transactional_id_prefix(f"prefix-{uuid.uuid4().hex[:8]}").set_property("log_level", 0)
    return builder.set_staging_directory(str(directory / "staging")).set_delivery_guarantee(guarantee).build()


class Published:
    """The topic of one test, and a sink to it."""

    def __init__(self, kafka: KafkaBroker, name: str, directory: Path) -> None:
        self.kafka = kafka
        self.name = name
        self.directory = directory
        self.sink = sink_to(kafka, name, directory)

    def visible(self) -> list[int]:
        return sorted(int(value) for value in self.kafka.committed(self.name))

    def commit_and_die(self, handles: list[bytes], point: str) -> None:
        """Commit in a process that is killed at a failpoint."""
        plan = FaultPlan(self.directory / uuid.uuid4().hex)
        plan.add(point, "kill")
        assert commit_in_process(self.sink, handles, self.directory, **plan.environment) == -9
        assert plan.not_reached() == []


@pytest.fixture
def published(kafka: KafkaBroker, topic: Any, tmp_path: Path) -> Published:
    return Published(kafka, topic(), tmp_path)


class TestExactlyOnce(ExternalSinkContract):
    @pytest.fixture
    def sink(self, published: Published) -> TwoPhaseCommitSink:
        self._published = published
        return published.sink

    def visible(self, tmp_path: Path) -> list[int]:
        return self._published.visible()


@pytest.mark.parametrize("point", ["fenced", "marked", "committed"])
def test_a_commit_that_dies_anywhere_is_completed_once(published: Published, point: str) -> None:
    sink = published.sink
    first = [pre_commit(sink, [1, 2], epoch=1)]
    sink.commit(first)
    forget_publishers()
    handles = [pre_commit(sink, [3, 4], epoch=2), pre_commit(sink, [5], epoch=2, subtask=1)]
    published.commit_and_die(handles, f"kafka-publisher.{point}")
    if point != "marked":
        # In that case a transaction is open, and a reader waits for its end.
        assert published.visible() == ([1, 2, 3, 4, 5] if point == "committed" else [1, 2])

    for _ in range(2):
        sink.recover_and_commit(handles)
        sink.recover_and_commit(first)
        forget_publishers()

    assert published.visible() == [1, 2, 3, 4, 5]
    assert list(sink.open_transactions(JOB)) == []


def test_commits_that_die_again_and_again(published: Published) -> None:
    handles = [pre_commit(published.sink, list(range(epoch * 10, epoch * 10 + 10)), epoch=epoch) for epoch in range(6)]
    for point in ("produced", "fenced", "marked", "committed"):
        published.commit_and_die(handles[:4], f"kafka-publisher.{point}")
    published.sink.recover_and_commit(handles[:4])
    published.sink.commit(handles[4:])
    assert published.visible() == list(range(60))


_HELD = """
import pickle, sys
from holdfast.errors import TransactionError
sink, handles = pickle.load(open(sys.argv[1], "rb"))
try:
    sink.commit(handles)
except TransactionError as error:
    print(error)
    sys.exit(3)
"""


def held_commit(published: Published, handles: list[bytes], plan: FaultPlan) -> subprocess.Popen[str]:
    """A driver that does not know that it was given up."""
    import os
    import pickle

    argument = published.directory / "held.pickle"
    argument.write_bytes(pickle.dumps((published.sink, handles)))
    path = os.pathsep.join(each for each in sys.path if each)
    environment = {**os.environ, "PYTHONPATH": path, **plan.environment}
    command = [sys.executable, "-c", _HELD, str(argument)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("successor", ["commits", "aborts"])
def test_a_driver_that_was_given_up_cannot_publish_any_more(published: Published, successor: str) -> None:
    handle = pre_commit(published.sink, [1, 2, 3])
    plan = FaultPlan(published.directory / "plan")
    trigger = plan.add("kafka-publisher.marked", "hold:60000")
    with held_commit(published, [handle], plan) as zombie:
        plan.wait(trigger)
        if successor == "commits":
            published.sink.recover_and_commit([handle])
        else:
            published.sink.abort(transaction_name())
        plan.release(trigger)
        output, _ = zombie.communicate(timeout=60)
        assert zombie.returncode == 3 and "could not publish" in output
    assert published.visible() == ([1, 2, 3] if successor == "commits" else [])


def test_of_two_drivers_the_second_finds_what_the_first_published(published: Published) -> None:
    handles = [pre_commit(published.sink, [epoch], epoch=epoch) for epoch in range(3)]
    published.sink.recover_and_commit(handles[:2])
    assert commit_in_process(published.sink, handles, published.directory) == 0
    # This one does not know yet that it was fenced; what it misses makes it look again.
    with pytest.raises(TransactionError, match="lost"):
        published.sink.commit(handles[2:])
    published.sink.recover_and_commit(handles)
    published.sink.commit([pre_commit(published.sink, [3], epoch=3)])
    assert published.visible() == [0, 1, 2, 3]


def test_a_broker_that_dies_during_a_commit(published: Published) -> None:
    handles = [pre_commit(published.sink, list(range(50_000)))]
    published.sink.commit([pre_commit(published.sink, [50_000], epoch=0)])

    def commit() -> None:
        with suppress(TransactionError):
            published.sink.commit(handles)

    committer = threading.Thread(target=commit)
    committer.start()
    time.sleep(0.15)
    published.kafka.restart()
    committer.join()
    published.sink.recover_and_commit(handles)
    assert published.visible() == list(range(50_001))


def test_an_open_transaction_of_another_job_hides_no_marker(published: Published, kafka: KafkaBroker) -> None:
    from confluent_kafka import Producer

    handle = pre_commit(published.sink, [1])
    published.sink.commit([pre_commit(published.sink, [0], epoch=0)])
    other = Producer({"bootstrap.servers": kafka.servers, "transactional.id": uuid.uuid4().hex})
    other.init_transactions(30)
    other.begin_transaction()
    other.produce(f"{published.sink._prefix}-markers", b"\x80", b"another job")
    other.flush(30)
    published.sink.commit([handle])
    forget_publishers()
    ender = threading.Timer(1, other.abort_transaction)
    ender.start()
    published.sink.recover_and_commit([handle])
    ender.join()
    assert published.visible() == [0, 1]


def test_damaged_rows_are_not_published(published: Published) -> None:
    handle = pre_commit(published.sink, [1, 2, 3])
    [file] = (published.directory / "staging").rglob("*.records")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(TransactionError, match="checksum"):
        published.sink.commit([handle])
    assert published.visible() == []


@pytest.mark.parametrize("guarantee", [GUARANTEE.AT_LEAST_ONCE, GUARANTEE.NONE])
def test_rows_without_transactions(kafka: KafkaBroker, topic: Any, tmp_path: Path, guarantee: Any) -> None:
    name = topic()
    sink = sink_to(kafka, name, tmp_path, guarantee)
    for epoch in range(3):
        transaction = sink.begin(transaction_name(epoch=epoch))
        sink.write(transaction, Batch(list(range(epoch * 100, epoch * 100 + 100))))
        assert sink.pre_commit(transaction) is None
    if guarantee is GUARANTEE.NONE:
        transaction.flush()
    assert sorted(map(int, kafka.committed(name))) == list(range(300))
    assert list(sink.open_transactions(JOB)) == []


def test_records_that_the_brokers_refuse_fail_the_epoch(kafka: KafkaBroker, topic: Any, tmp_path: Path) -> None:
    sink = sink_to(kafka, topic(1, **{"max.message.bytes": "200"}), tmp_path, GUARANTEE.AT_LEAST_ONCE)
    transaction = sink.begin(transaction_name())
    sink.write(transaction, Batch(["x" * 10_000]))
    with pytest.raises(TransactionError, match="not taken"):
        sink.pre_commit(transaction)


def test_topics_keys_and_times_of_rows(kafka: KafkaBroker, topic: Any, tmp_path: Path) -> None:
    names = [topic(), topic()]
    sink = sink_to(kafka, lambda row: names[row % 2], tmp_path)
    sink._serializer._keys = SimpleStringSchema()
    transaction = sink.begin(transaction_name())
    sink.write(transaction, Batch([1, 2, 3], [1000, None, 3000]))
    sink.commit([sink.pre_commit(transaction)])
    even, odd = kafka.messages(names[0]), kafka.messages(names[1])
    assert [(m.key(), m.value()) for m in even] == [(b"2", b"2")]
    assert [(m.key(), m.timestamp()[1]) for m in odd] == [(b"1", 1000), (b"3", 3000)]


def test_a_builder_says_what_is_missing(tmp_path: Path) -> None:
    records = KafkaRecordSerializationSchema.builder()
    with pytest.raises(ProgramError, match="set_topic"):
        records.build()
    made = records.set_topic("t").set_value_serialization_schema(SimpleStringSchema()).build()
    builder = KafkaSink.builder().set_bootstrap_servers("127.0.0.1:1").set_record_serializer(made)
    builder.set_delivery_guarantee(GUARANTEE.EXACTLY_ONCE)
    with pytest.raises(ProgramError, match="set_transactional_id_prefix"):
        builder.build()
    sink = builder.set_transactional_id_prefix("p").build()
    with pytest.raises(ProgramError, match="set_staging_directory"):
        sink.bind_checkpoint_directory(None)
    sink.bind_checkpoint_directory(str(tmp_path / "checkpoints"))
    pre_commit(sink, [1])
    assert len(list((tmp_path / "checkpoints").rglob("*.records"))) == 1


@pytest.mark.parametrize("guarantee", [GUARANTEE.EXACTLY_ONCE, GUARANTEE.AT_LEAST_ONCE, GUARANTEE.NONE])
def test_the_clients_of_a_job_end_with_it(
    published: Published, guarantee: DeliveryGuarantee, in_process: Any, tmp_path: Path
) -> None:
    """A driver or a worker that lives for weeks has had many jobs."""
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict({"holdfast.state.local-dir": str(tmp_path / "local")})
    )
    rows = [str(number) for number in range(20)]
    env.from_collection(rows, Types.STRING()).sink_to(sink_to(published.kafka, published.name, tmp_path, guarantee))
    before = dict(publishing._publishers), dict(direct._open)
    env.execute("publishes")
    assert (publishing._publishers, direct._open) == before
    assert published.visible() == list(range(20))
