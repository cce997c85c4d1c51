"""Whole jobs into PostgreSQL: drivers, workers, attempts and the server fail; the tables equal the oracle."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from holdfast.testing.chaos.processes import kill_worker
from tests.integration.sql.tables import Job
from tests.kit.driver import DriverProgram
from tests.kit.faults import FaultPlan
from tests.kit.postgres import PostgresServer

pytestmark = pytest.mark.slow

#: Where a driver may die while it publishes.
DRIVER_POINTS = [
    "checkpoint.after-metadata",
    "sink.before-commit",
    "sql-sink.written",
    "sql-sink.recorded",
    "sql-sink.committed",
    "sink.after-commit",
]


def test_seeded_faults_of_drivers_attempts_and_the_server(postgres: PostgresServer, tmp_path: Path) -> None:
    """Without Spark: what fails here is the logic of drivers, tasks and sinks, not Spark."""
    chosen = random.Random(6)
    job = Job(postgres, tmp_path, 200_000, 97)
    faults = Counter[str]()
    rounds = [*DRIVER_POINTS, "server", "server", "server"]
    chosen.shuffle(rounds)
    for number, where in enumerate([*rounds, "end"]):
        plan = FaultPlan(tmp_path / f"faults-{number}")
        if where in DRIVER_POINTS:
            plan.add(where, "kill", hit=chosen.randint(2, 6))
        given = {
            "settings": {"holdfast.epoch.max-rows": "4000"},
            "in_process": {"seed": chosen.randrange(1000), "faults": 2, "epochs": 6},
        }
        with job.driver(plan, **given) as driver:
            if where == "server":
                _wait_for_epochs(driver, chosen.randint(1, 3))
                postgres.restart()
                _wait_for_epochs(driver, chosen.randint(4, 6))
                driver.kill()
                faults["server"] += 1
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


def test_on_spark_with_a_worker_killed_and_the_server_restarted(postgres: PostgresServer, tmp_path: Path) -> None:
    job = Job(postgres, tmp_path, 200_000, 1009)
    settings = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "holdfast.epoch.max-rows": "40000",
        "execution.checkpointing.interval": "500 ms",
    }
    plan = FaultPlan(tmp_path / "faults")
    committed = plan.add("sql-sink.committed", "touch", hit=2)
    with job.driver(plan, settings=settings) as driver:
        plan.wait(committed, 120)
        kill_worker(driver.pid, 0)
        postgres.restart()
        assert driver.wait(240) == 0, driver.output[-4000:]
    job.check()
