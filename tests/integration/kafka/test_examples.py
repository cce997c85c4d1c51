"""Examples that talk to Kafka, as they are, on a broker: all on the engine without Spark, and on Spark."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.testing.in_process import InProcessEngine
from tests.job.test_examples import EXAMPLES, WITH_KAFKA
from tests.kit.kafka import KafkaBroker, broker
from tests.kit.unavailable import Unavailable
from tests.parity.case import printed_line

DRINKS = ["+I[1,tea,2.5]", "+I[2,coffee,3.0]", "+I[3,mate,2.75]"]
#: What each program prints, in any order.
PRINTED: dict[str, list[str]] = {
    "kafka_avro": DRINKS,
    "kafka_bytes": ["tea", "coffee", "maté"],
    "kafka_csv": [*DRINKS[:2], "+I[3,mate; cold,2.75]"],
    "kafka_json": DRINKS,
    "kafka_row_fields": ["two cups", "one cup", "one cup"],
}


@pytest.fixture(params=[1, 2], ids="parallelism {}".format)
def configured(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "parallelism.default": request.param,
        "restart-strategy.type": "none",
        "holdfast.state.local-dir": str(tmp_path / "local"),
        "holdfast.epoch.idle-wait": "1 ms",
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(given))
    monkeypatch.setenv("HOLDFAST_CONF_DIR", str(tmp_path))


@pytest.fixture
def kafka() -> Iterator[KafkaBroker]:
    """The topics of an example are its own, and are made by who writes first: each run has a broker for itself."""
    try:
        with broker({"auto.create.topics.enable": "true", "num.partitions": "2"}) as running:
            yield running
    except Unavailable as reason:
        pytest.skip(f"no test with a Kafka broker: {reason}")


def run_all(names: list[str], kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> dict[str, list[str]]:
    printed = {}
    for name in names:
        monkeypatch.setattr(sys, "argv", [f"{name}.py", kafka.servers])
        capfd.readouterr()
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        printed[name] = sorted(printed_line(line).removeprefix("N> ") for line in capfd.readouterr().out.splitlines())
    return printed


EXPECTED = {name: sorted(lines) for name, lines in PRINTED.items()}


def test_every_example_with_kafka_is_run() -> None:
    assert set(PRINTED) == WITH_KAFKA


@pytest.mark.usefixtures("configured")
def test_examples_with_kafka(
    in_process: InProcessEngine, kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    assert run_all(list(PRINTED), kafka, monkeypatch, capfd) == EXPECTED


@pytest.mark.usefixtures("configured")
def test_examples_with_kafka_on_spark(
    spark: Any, kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    assert run_all(list(PRINTED), kafka, monkeypatch, capfd) == EXPECTED
