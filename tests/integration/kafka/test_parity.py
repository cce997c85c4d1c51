"""What PyFlink's examples with Kafka do, on a broker, with the rows that PyFlink gave (tests/parity)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Types
from holdfast.datastream.formats.avro import AvroRowDeserializationSchema, AvroRowSerializationSchema
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import environment
from tests.kit.kafka import KafkaBroker, broker
from tests.kit.unavailable import Unavailable
from tests.parity import records
from tests.parity.runner import OUTSIDE, load
from tests.parity.test_recorded import differences, judge

PROGRAMS = sorted(records.read("kafka"))


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaBroker]:
    """Topics are made by whoever writes first."""
    try:
        with broker({"auto.create.topics.enable": "true", "num.partitions": "2"}) as running:
            yield running
    except Unavailable as reason:
        pytest.skip(f"no test with a Kafka broker: {reason}")


@pytest.fixture(autouse=True)
def address(kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OUTSIDE["kafka"], kafka.servers)


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_example_gives_the_rows_of_pyflink(in_process: InProcessEngine, tmp_path: Path, name: str) -> None:
    judge(f"kafka.{name}", differences(f"kafka.{name}", records.read("kafka")[name], tmp_path))


@pytest.mark.slow
def test_an_example_gives_them_on_spark(spark: Any, tmp_path: Path) -> None:
    """Through keyed state, from one topic into another one."""
    judge("kafka.counted_by_key", differences("kafka.counted_by_key", ["STREAMING-2"], tmp_path))


def test_rows_in_avro_come_back(in_process: InProcessEngine, tmp_path: Path) -> None:
    """As PyFlink's example has it, which does not run on Flink 2: the Java classes that it names are gone."""
    programs = load("kafka", "holdfast")
    fields = [{"name": "id", "type": "int"}, {"name": "name", "type": "string"}]
    schema = json.dumps({"type": "record", "name": "Named", "fields": fields})
    env = environment(**{"holdfast.state.local-dir": str(tmp_path), "holdfast.epoch.idle-wait": "1 ms"})
    topic = programs.new_topic()
    rows = env.from_collection(programs.ROWS, programs.KIND)
    programs.write(env, rows, topic, AvroRowSerializationSchema(avro_schema_string=schema))
    found = programs.read(env, topic, AvroRowDeserializationSchema(avro_schema_string=schema))
    with found.map(
        lambda row: (row.id, row.name), Types.TUPLE([Types.INT(), Types.STRING()])
    ).execute_and_collect() as came:
        assert sorted(came) == sorted(programs.ROWS)
