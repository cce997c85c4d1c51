"""Processes are killed at named and at random moments; what was published must be what an undisturbed run gives."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from holdfast.testing.chaos import KillDriver, KillWorker, Moments, Oracle, run_chaos
from tests.integration.audited_job import audit, published, run
from tests.integration.kill_points import kill_workers
from tests.kit.driver import program as chaos_program
from tests.kit.faults import FaultPlan

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("audited_job.py")
ROWS, KEYS = 4_000, 60
BACKENDS = ["lmdb", "heap", "rocksdb"]


def test_workers_killed_at_named_points(spark: Any, tmp_path: Path) -> None:
    """A job on each backend; points and moments come to one or another. More seeds: the scenario ``points`` of ``make
    chaos``.
    """
    faults = FaultPlan(tmp_path / "faults")
    kill_workers(faults, random.Random(0))
    restarts = 0
    with faults.among(spark):
        for backend in BACKENDS:
            settings = {"state.backend": backend, "execution.checkpointing.interval": "300 ms"}
            restarts += run(tmp_path / backend, settings, ROWS, KEYS).restarts
    assert not faults.not_reached()
    assert restarts >= 4
    for backend in BACKENDS:
        audit(tmp_path / backend, ROWS, KEYS)


def test_drivers_and_workers_killed_at_random_moments(tmp_path: Path) -> None:
    given = {"settings": {"spark.master": "local[2]"}, "rows": ROWS, "keys": KEYS}
    job = tmp_path / "job"
    oracle = Oracle(
        rows_in=lambda: range(ROWS),
        rows_out=lambda: [row[0] for row in published(job / "first")],
        check=lambda: audit(job, ROWS, KEYS),
    )
    disturbed = chaos_program("audited", PROGRAM, [str(job), json.dumps(given)], tmp_path)
    moments = Moments(11, faults=4, pause=(0.0, 1.0))
    result = run_chaos(disturbed, oracle, [KillWorker(), KillDriver()], moments, tmp_path / "logs")
    print(result)
    assert result.exactly_once, result.error
    assert set(result.faults) == {"driver", "worker"} and result.restarts >= 2
