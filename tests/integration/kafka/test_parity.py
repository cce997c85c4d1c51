"""What PyFlink's examples with Kafka do, on a broker, with the rows that PyFlink gave (tests/parity)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.testing.in_process import InProcessEngine
from tests.kit.kafka import KafkaBroker, broker
from tests.kit.unavailable import Unavailable
from tests.parity import records
from tests.parity.runner import OUTSIDE
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


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_example_gives_the_rows_of_pyflink(
    kafka: KafkaBroker, in_process: InProcessEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    monkeypatch.setenv(OUTSIDE["kafka"], kafka.servers)
    judge(f"kafka.{name}", differences(f"kafka.{name}", records.read("kafka")[name], tmp_path))
