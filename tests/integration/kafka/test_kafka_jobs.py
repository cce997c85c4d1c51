"""Whole jobs from Kafka to Kafka: drivers, workers, attempts and the broker fail; a read_committed consumer sees every
result once."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.kafka.kafka_job import expected
from tests.kit.driver import DriverProgram
from tests.kit.faults import FaultPlan
from tests.kit.kafka import KafkaBroker
from tests.kit.processes import kill_worker

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("kafka_job.py")
PARTITIONS = 4
#: Where a driver may die while it publishes.
DRIVER_POINTS = [
    "kafka-publisher.fenced",
    "kafka-publisher.produced",
    "kafka-publisher.marked",
    "kafka-publisher.committed",
    "sink.before-commit",
    "sink.after-commit",
    "checkpoint.after-metadata",
]


class Job:
    """One job, and the topics that it reads and writes."""

    def __init__(self, kafka: KafkaBroker, topic: Callable[..., str], directory: Path, rows: int, keys: int) -> None:
        self.kafka = kafka
        self.directory = directory
        self.rows, self.keys = rows, keys
        self.input, self.output = topic(PARTITIONS), topic(PARTITIONS)
        self._runs = 0
        kafka.produce(self.input, (str(number) for number in range(rows)))

    def driver(self, faults: FaultPlan | None = None, **given: object) -> DriverProgram:
        self._runs += 1
        arguments = {"servers": self.kafka.servers, "input": self.input, "output": self.output, "keys": self.keys}
        return DriverProgram(
            PROGRAM,
            [str(self.directory), json.dumps({"settings": {}, **arguments, **given})],
            self.directory / f"log-{self._runs}",
            faults.environment if faults is not None else {},
        )

    def check(self) -> None:
        seen = Counter(self.kafka.committed(self.output, PARTITIONS))
        wanted = expected(self.rows, self.keys)
        lost, repeated = wanted - seen, seen - wanted
        assert not lost and not repeated, f"{lost.total()} lost, {repeated.total()} repeated or foreign"
        assert not [path for path in (self.directory / "checkpoints").rglob("*.records")], "files are left"


def test_twenty_seeded_faults_of_drivers_attempts_and_the_broker(
    kafka: KafkaBroker, topic: Callable[..., str], tmp_path: Path
) -> None:
    """Without Spark: what fails here is the logic of drivers, tasks, sources and sinks, not Spark."""
    chosen = random.Random(20)
    job = Job(kafka, topic, tmp_path, 200_000, 97)
    faults = Counter[str]()
    rounds = [*DRIVER_POINTS, "broker", "broker", "broker"]
    chosen.shuffle(rounds)
    for number, where in enumerate([*rounds, "end"]):
        plan = FaultPlan(tmp_path / f"faults-{number}")
        if where in DRIVER_POINTS:
            plan.add(where, "kill", hit=1 if where.endswith("fenced") else chosen.randint(2, 4))
        given = {
            "settings": {"holdfast.epoch.max-rows": "3000"},
            "in_process": {"seed": chosen.randrange(1000), "faults": 2, "epochs": 6},
        }
        with job.driver(plan, **given) as driver:
            if where == "broker":
                _wait_for_epochs(driver, chosen.randint(1, 3))
                kafka.kill()
                time.sleep(chosen.random() / 2)
                kafka.start()
                _wait_for_epochs(driver, chosen.randint(4, 6))
                driver.kill()
                faults["broker"] += 1
            code = driver.wait(120)
            faults["attempt"] += driver.output.count("FAULT attempt")
            assert code == (0 if where == "end" else -9), f"{where}: {driver.output[-4000:]}"
            assert plan.not_reached() == []
            faults["driver"] += where != "end"
    job.check()
    print(f"{job.rows} rows, {dict(faults)}")
    assert faults.total() >= 20, dict(faults)


def _wait_for_epochs(driver: DriverProgram, count: int) -> None:
    driver.wait_for_line(rf"(?s)(EPOCH.*?){{{count}}}", 90)


def test_on_spark_with_a_worker_and_the_broker_killed(
    kafka: KafkaBroker, topic: Callable[..., str], tmp_path: Path
) -> None:
    job = Job(kafka, topic, tmp_path, 400_000, 1009)
    settings = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "holdfast.epoch.max-rows": "60000",
        "execution.checkpointing.interval": "1 s",
    }
    plan = FaultPlan(tmp_path / "faults")
    committed = plan.add("kafka-publisher.committed", "touch", hit=2)
    with job.driver(plan, settings=settings) as driver:
        plan.wait(committed, 120)
        kill_worker(driver.pid, 0)
        kafka.restart()
        assert driver.wait(240) == 0, driver.output[-4000:]
    job.check()
