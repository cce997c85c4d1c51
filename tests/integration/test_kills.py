"""Processes are killed at named and at random moments; what was published must be what an undisturbed run gives."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from holdfast.testing.chaos import KillDriver, KillWorker, Moments, Oracle, run_chaos
from tests.integration.audited_job import audit, published
from tests.kit.driver import DriverProgram
from tests.kit.driver import program as chaos_program
from tests.kit.faults import FaultPlan

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("audited_job.py")
ROWS, KEYS = 4_000, 60
BACKENDS = ["lmdb", "heap", "rocksdb"]

#: Where a Python worker may die, in the order in which a task comes by.
WORKER_POINTS = [
    "task.start",
    "task.opened",
    "task.outputs-sent",
    "task.uploading",
    "task.before-commit",
    "task.after-commit",
]
#: Where the driver may die.
DRIVER_POINTS = [
    "driver.epoch-collected",
    "checkpoint.before-metadata",
    "checkpoint.after-metadata",
    "driver.commit-begun",
    "sink.before-commit",
    "file-sink-moved",
]


def program(directory: Path, log: str, faults: FaultPlan | None, jobs: int = 1, **settings: str) -> DriverProgram:
    given = {"settings": {"spark.master": "local[2]", **settings}, "rows": ROWS, "keys": KEYS, "jobs": jobs}
    environment = faults.environment if faults is not None else {}
    return DriverProgram(PROGRAM, [str(directory), json.dumps(given)], directory / log, environment)


@pytest.mark.parametrize("seed", range(3))
def test_workers_killed_at_named_points(seed: int, tmp_path: Path) -> None:
    """Six jobs in one application, two kills in each on average, the points and moments drawn from the seed."""
    chosen = random.Random(seed)
    jobs = 6
    faults = FaultPlan(tmp_path / "faults")
    for point in WORKER_POINTS:
        for _ in range(2):
            # Uploads happen with a checkpoint only, everything else in every task of every epoch.
            faults.add(point, "kill", hit=chosen.randint(3, 40 if point == "task.uploading" else 160))
    faults.add("task.restoring", "kill", hit=chosen.randint(5, 20))
    with program(tmp_path, "log", faults, jobs, **{"state.backend": BACKENDS[seed % 3]}) as driver:
        assert driver.wait(420) == 0, driver.output[-4000:]
        told = driver.output
    assert not faults.not_reached()
    assert int(told.rpartition("restarts=")[2].split()[0]) >= 6
    for number in range(jobs):
        audit(tmp_path / f"job-{number}", ROWS, KEYS)


@pytest.mark.parametrize("backend", ["lmdb", "heap"])
def test_the_driver_killed_at_named_points(backend: str, tmp_path: Path) -> None:
    """Each point kills one driver; the next one, under the same job id, goes on where the last checkpoint is."""
    faults = FaultPlan(tmp_path / "faults")
    points = DRIVER_POINTS[::2] if backend == "lmdb" else DRIVER_POINTS[1::2]
    for number, point in enumerate(points):
        faults.add(point, "kill", hit=2 + number)
    codes = []
    for number in range(len(points) + 2):
        with program(tmp_path, f"log-{number}", faults, **{"state.backend": backend}) as driver:
            codes.append(driver.wait(240))
        if codes[-1] == 0:
            break
    assert codes[-1] == 0 and set(codes[:-1]) == {-9}, (codes, driver.output[-4000:])
    assert not faults.not_reached() and len(codes) == len(points) + 1
    audit(tmp_path / "job-0", ROWS, KEYS)


def test_drivers_and_workers_killed_at_random_moments(tmp_path: Path) -> None:
    given = {"settings": {"spark.master": "local[2]"}, "rows": ROWS, "keys": KEYS, "jobs": 1}
    job = tmp_path / "job-0"
    oracle = Oracle(
        rows_in=lambda: range(ROWS),
        rows_out=lambda: [row[0] for row in published(job / "first")],
        check=lambda: audit(job, ROWS, KEYS),
    )
    disturbed = chaos_program("audited", PROGRAM, [str(tmp_path), json.dumps(given)], tmp_path)
    moments = Moments(11, faults=4, pause=(0.0, 1.0))
    result = run_chaos(disturbed, oracle, [KillWorker(), KillDriver()], moments, tmp_path / "logs")
    print(result)
    assert result.exactly_once, result.error
    assert set(result.faults) == {"driver", "worker"} and result.restarts >= 2


def test_a_damaged_newest_checkpoint_whose_rows_were_not_published_is_passed_over(tmp_path: Path) -> None:
    faults = FaultPlan(tmp_path / "faults")
    faults.add("checkpoint.after-metadata", "kill", hit=3)
    with program(tmp_path, "log-1", faults) as driver:
        assert driver.wait(240) == -9, driver.output[-4000:]
    newest = max((tmp_path / "job-0" / "checkpoints" / "audited").glob("chk-*"), key=lambda path: int(path.name[4:]))
    damage(newest / "_metadata")
    with program(tmp_path, "log-2", faults) as driver:
        assert driver.wait(240) == 0, driver.output[-4000:]
        assert str(newest) in driver.output
    audit(tmp_path / "job-0", ROWS, KEYS)


def test_a_damaged_newest_checkpoint_whose_rows_were_published_stops_the_job(tmp_path: Path) -> None:
    faults = FaultPlan(tmp_path / "faults")
    faults.add("driver.commit-begun", "kill", hit=3)
    with program(tmp_path, "log-1", faults) as driver:
        assert driver.wait(240) == -9, driver.output[-4000:]
    newest = max((tmp_path / "job-0" / "checkpoints" / "audited").glob("chk-*"), key=lambda path: int(path.name[4:]))
    victim = max(
        (path for path in newest.iterdir() if path.name[0] != "_" or path.name == "_metadata"),
        key=lambda p: p.stat().st_size,
    )
    untouched = victim.read_bytes()
    damage(victim)
    with program(tmp_path, "log-2", faults) as driver:
        assert driver.wait(240) == 1
        assert str(victim) in driver.output and "accept-repeated-output" in driver.output
    victim.write_bytes(untouched)
    with program(tmp_path, "log-3", faults) as driver:
        assert driver.wait(240) == 0, driver.output[-4000:]
    audit(tmp_path / "job-0", ROWS, KEYS)


def damage(path: Path) -> None:
    """Flip one bit in the middle."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
