"""Whole jobs from Kafka to Kafka: drivers, workers, attempts and the broker fail; a read_committed consumer sees every
result once."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.testing.chaos import KillDriver, KillService, KillWorker, Moments, run_chaos
from tests.integration.kafka.places import Job
from tests.kit.driver import DriverProgram
from tests.kit.faults import FaultPlan
from tests.kit.kafka import KafkaBroker

pytestmark = pytest.mark.slow

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


def test_seeded_faults_of_drivers_attempts_and_the_broker(
    kafka: KafkaBroker, topic: Callable[..., str], tmp_path: Path
) -> None:
    """Without Spark: what fails here is the logic of drivers, tasks, sources and sinks, not Spark."""
    chosen = random.Random(20)
    job = Job(kafka, topic, tmp_path, 200_000, 97)
    faults = Counter[str]()
    rounds = [*DRIVER_POINTS, "broker"]
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
    assert faults.total() >= 16, dict(faults)


def _wait_for_epochs(driver: DriverProgram, count: int) -> None:
    driver.wait_for_line(rf"(?s)(EPOCH.*?){{{count}}}", 90)


def test_on_spark_with_workers_drivers_and_the_broker_killed(
    kafka: KafkaBroker, topic: Callable[..., str], tmp_path: Path
) -> None:
    """The large one, a million rows and twenty kills, is the scenario ``kafka-million`` of ``make chaos``."""
    job = Job(kafka, topic, tmp_path, 200_000, 1009)
    # So many epochs that the job does not end before the last fault comes.
    settings = {"holdfast.epoch.max-rows": "4000", "execution.checkpointing.interval": "500 ms"}
    faults, moments = [KillWorker(), KillDriver(), KillService(kafka)], Moments(6, faults=3, pause=(0.1, 1.0))
    result = run_chaos(job.program("kafka", settings), job.oracle(), faults, moments, tmp_path / "logs")
    print(result)
    assert result.exactly_once, result.error
    assert sum(result.faults.values()) == 3
