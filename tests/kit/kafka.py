"""A real Kafka broker on loopback (KRaft, one node), from the jars of Maven Central.

Where they cannot be had, ``broker()`` raises ``Unavailable``.
"""

from __future__ import annotations

import base64
import importlib.util
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any

from holdfast.testing.chaos import Service
from holdfast.testing.chaos.processes import die_with_parent, wait_until
from tests.kit.maven import jars_of
from tests.kit.unavailable import Unavailable

KAFKA = "4.1.0"
_CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"
_TOKENS = "org.apache.spark:spark-token-provider-kafka-0-10_2.13"
_START_SECONDS = 60.0
_STOP_SECONDS = 30.0


def _jars() -> Path:
    if importlib.util.find_spec("confluent_kafka") is None:
        raise Unavailable("the extra 'kafka' is not installed")
    if shutil.which("java") is None:
        raise Unavailable("there is no java on the path")
    return jars_of(f"org.apache.kafka:kafka_2.13:{KAFKA}", "org.slf4j:slf4j-simple:1.7.36")


def spark_connector() -> Path:
    """The folder with the jars of Spark's own connector: of the installed version of Spark or, where that is not
    published, of the newest releases before it that are.
    """
    try:
        return jars_of(f"{_CONNECTOR}:{version('pyspark')}")
    except Unavailable:
        return jars_of(f"{_CONNECTOR}:4.2.0", f"{_TOKENS}:4.0.0")


class KafkaBroker(Service):
    """One node that is broker and controller. It keeps its ports and its data over ``kill`` and ``start``."""

    name = "broker"

    def __init__(self, jars: Path, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        self._jars = jars
        self._directory = directory
        self._settings = dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._port, self._controller = _free_ports(2)
        self._format()

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self._port}"

    def __enter__(self) -> KafkaBroker:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Start without waiting until it answers."""
        flags = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        flags.append("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
        command = ["java", *flags, "-cp", f"{self._jars}/*", "kafka.Kafka", str(self._directory / "server.properties")]
        with (self._directory / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=die_with_parent
            )

    def wait(self) -> None:
        """Until it serves clients."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})

        def answers() -> bool | None:
            assert self._process is not None
            if self._process.poll() is not None:
                log = (self._directory / "broker.log").read_text(errors="replace")
                raise RuntimeError(f"The broker ended with {self._process.returncode}:\n{log}")
            try:
                return bool(admin.list_topics(timeout=1).brokers) or None
            except KafkaException:
                return None

        wait_until(answers, _START_SECONDS, "an answer of the broker", interval=0.1)

    def kill(self) -> None:
        """SIGKILL. Data stays."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(20)
            self._process = None

    def stop(self) -> None:
        """SIGTERM, and what does not end by that is killed."""
        if self._process is not None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_SECONDS)
        self.kill()

    def restart(self) -> None:
        self.kill()
        self.start()

    def create_topic(self, name: str, partitions: int = 1, **config: str) -> str:
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": self.servers})
        [made] = admin.create_topics([NewTopic(name, partitions, 1, config=config)]).values()
        made.result(30)
        # Clients learn of a topic from the broker's metadata, which follows the controller's.
        wait_until(lambda: len(_partitions(admin, name)) == partitions or None, 20, f"topic {name}")
        return name

    def add_partitions(self, name: str, total: int) -> None:
        from confluent_kafka.admin import AdminClient, NewPartitions

        admin = AdminClient({"bootstrap.servers": self.servers})
        [made] = admin.create_partitions([NewPartitions(name, total)]).values()
        made.result(30)
        wait_until(lambda: len(_partitions(admin, name)) == total or None, 20, f"partitions of {name}")

    def delete_topic(self, name: str) -> None:
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({"bootstrap.servers": self.servers})
        [gone] = admin.delete_topics([name]).values()
        gone.result(30)
        wait_until(lambda: not _partitions(admin, name) or None, 20, f"end of topic {name}")

    def produce(self, topic: str, rows: Any, partition: int | None = None, **more: Any) -> None:
        """Write values, or (key, value) pairs."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 20, "queue.buffering.max.messages": 10**6})
        place = {} if partition is None else {"partition": partition}
        for row in rows:
            key, value = row if isinstance(row, tuple) else (None, row)
            producer.produce(topic, value, key, **place, **more)
        assert producer.flush(60) == 0

    def committed(self, topic: str, partitions: int = 1) -> list[bytes]:
        """All values that a ``read_committed`` consumer sees, up to the end of each partition."""
        return [message.value() for message in self.messages(topic, partitions)]

    def end_offsets(self, topic: str, partitions: int = 1) -> list[int]:
        """The offset behind the newest record or mark of a transaction, of each partition. A broker that was just
        started may not lead its partitions yet.
        """
        from confluent_kafka import KafkaException, TopicPartition

        def look() -> list[int] | None:
            places = [TopicPartition(topic, number) for number in range(partitions)]
            try:
                return [self._looker.get_watermark_offsets(place, timeout=5)[1] for place in places]
            except KafkaException:
                return None

        return wait_until(look, _START_SECONDS, f"the offsets of {topic}", interval=0.1)

    @cached_property
    def _looker(self) -> Any:
        from confluent_kafka import Consumer

        settings = {"group.id": "looker", "log_level": 0, "reconnect.backoff.max.ms": 500}
        return Consumer({"bootstrap.servers": self.servers, **settings})

    def messages(self, topic: str, partitions: int = 1, isolation: str = "read_committed") -> list[Any]:
        from confluent_kafka import Consumer, KafkaError, TopicPartition

        settings = {"bootstrap.servers": self.servers, "group.id": "reader", "enable.auto.commit": False}
        consumer = Consumer({**settings, "isolation.level": isolation, "enable.partition.eof": True})
        try:
            consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
            found, ended = [], set()
            while len(ended) < partitions:
                for message in consumer.consume(10_000, 0.2):
                    if message.error() is None:
                        found.append(message)
                    elif message.error().code() == KafkaError._PARTITION_EOF:
                        ended.add(message.partition())
            return found
        finally:
            consumer.close()

    def _format(self) -> None:
        """What ``kafka-storage format`` would write, without a JVM for it."""
        data = self._directory / "data"
        data.mkdir(parents=True)
        name = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        identity = {"version": "1", "cluster.id": name, "node.id": "1", "directory.id": name}
        (data / "meta.properties").write_text(_properties(identity))
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self._port},CONTROLLER://127.0.0.1:{self._controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self._port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(data),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "group.initial.rebalance.delay.ms": "0",
            # The default would be half of this broker's memory.
            "log.cleaner.dedupe.buffer.size": str(4 << 20),
            "auto.create.topics.enable": "false",
            # A broker that was killed is back at once.
            "broker.session.timeout.ms": "1000",
            "broker.heartbeat.interval.ms": "200",
            **self._settings,
        }
        (self._directory / "server.properties").write_text(_properties(settings))


@contextmanager
def broker(settings: Mapping[str, str] | None = None) -> Iterator[KafkaBroker]:
    """A running broker with a directory of its own; nothing of it stays. Settings go above those of ours."""
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-kafka-") as directory,
        KafkaBroker(_jars(), Path(directory), settings) as running,
    ):
        yield running


def _partitions(admin: Any, topic: str) -> dict[int, Any]:
    found = admin.list_topics(timeout=10).topics.get(topic)
    return {} if found is None else dict(found.partitions)


def _properties(values: dict[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in values.items())


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
