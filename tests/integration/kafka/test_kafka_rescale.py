"""The parallelism of a Kafka source changes over savepoints, and event time goes by partitions: whole jobs without
Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from holdfast.common import Duration, JobClient, SimpleStringSchema, Types, WatermarkStrategy
from holdfast.common.watermark_strategy import TimestampAssigner
from holdfast.datastream import KeyedProcessFunction
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from holdfast.testing.chaos.processes import wait_until
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import environment, published
from tests.job.counting import settings
from tests.kit.kafka import KafkaBroker


def texts(first: int, last: int) -> list[str]:
    return [str(number) for number in range(first, last)]


def copying(kafka: KafkaBroker, topic: str, tmp_path: Path, parallelism: int, **changes: str) -> JobClient:
    """A job that writes the numbers of a topic to files."""
    given = {"execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints"), **changes}
    env = environment(**settings(tmp_path, **given)).set_parallelism(parallelism)
    source = KafkaSource.builder().set_bootstrap_servers(kafka.servers).set_topics(topic)
    source.set_property("partition.discovery.interval.ms", 100).set_property("log_level", 0)
    made = source.set_value_only_deserializer(SimpleStringSchema()).build()
    rows = env.from_source(made, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    rows.map(int, Types.LONG()).sink_to(FileSink.json(str(tmp_path / "out"))).uid("sink")
    return env.execute_async("copying")


def test_partitions_are_neither_lost_nor_read_twice(
    in_process: InProcessEngine, kafka: KafkaBroker, topic: Callable[..., str], tmp_path: Path
) -> None:
    name = topic(5)
    changes: dict[str, str] = {}
    for round_number, parallelism in enumerate((2, 3, 1, 4)):
        kafka.produce(name, texts(round_number * 1000, round_number * 1000 + 1000))
        if round_number == 2:
            kafka.add_partitions(name, 7)
        client = copying(kafka, name, tmp_path, parallelism, **changes)
        wanted = (round_number + 1) * 1000
        wait_until(lambda least=wanted: len(published(tmp_path / "out")) >= least or None, 60, f"{wanted} rows")
        path = client.stop_with_savepoint(False).result(30)
        client.get_job_execution_result().result(30)
        changes = {"execution.state-recovery.path": path}
    assert published(tmp_path / "out") == [(number,) for number in range(4000)]


class ByText(TimestampAssigner):
    def extract_timestamp(self, value: str, record_timestamp: int) -> int:
        return int(value)


class LateOnes(KeyedProcessFunction):
    """Gives rows that came behind the watermark."""

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        if ctx.timestamp() <= ctx.timer_service().current_watermark():
            yield value


def test_a_partition_that_is_read_first_makes_no_row_of_another_late(
    in_process: InProcessEngine, kafka: KafkaBroker, topic: Callable[..., str], tmp_path: Path
) -> None:
    name = topic(3)
    # One after the other: whatever is read first is far ahead of the others.
    for partition in range(3):
        kafka.produce(name, texts(1, 3000), partition)
    env = environment(**settings(tmp_path, **{"holdfast.epoch.max-rows": "700"})).set_parallelism(1)
    source = KafkaSource.builder().set_bootstrap_servers(kafka.servers).set_topics(name).set_property("log_level", 0)
    source.set_value_only_deserializer(SimpleStringSchema()).set_bounded(KafkaOffsetsInitializer.latest())
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(0))
    rows = env.from_source(source.build(), strategy.with_timestamp_assigner(ByText()), "rows")
    keyed = rows.key_by(lambda row: row[-1], Types.STRING())
    keyed.process(LateOnes(), Types.STRING()).sink_to(FileSink.json(str(tmp_path / "late")))
    env.execute("late")
    assert published(tmp_path / "late") == []
