"""Jobs on a cluster of two executors, each with local disk of its own, whose processes are killed."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from holdfast.testing.chaos.processes import descendants, kill_worker, wait_until
from tests.integration.audited_job import audit, published
from tests.integration.cluster_program import events, firings, pairs
from tests.integration.programs import averages
from tests.kit.cluster import Executor, StandaloneCluster
from tests.kit.driver import DriverProgram
from tests.kit.faults import FaultPlan

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("cluster_program.py")
TIMEOUT = 300.0

Jobs = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def cluster() -> Iterator[StandaloneCluster]:
    with StandaloneCluster(workers=2) as running:
        yield running


def program(cluster: StandaloneCluster, directory: Path, jobs: Jobs, faults: FaultPlan | None = None) -> DriverProgram:
    """A driver program that runs ``jobs`` in an application of its own."""
    shared = {**cluster.settings, **(faults.spark_settings if faults is not None else {})}
    given = {name: {**job, "settings": {**shared, **job.get("settings", {})}} for name, job in jobs.items()}
    log = directory / f"driver-{len(list(directory.glob('driver-*')))}.log"
    environment = faults.environment if faults is not None else {}
    return DriverProgram(PROGRAM, [str(directory), json.dumps(given)], log, environment)


def courses(driver: DriverProgram) -> dict[str, dict[str, Any]]:
    """What each finished job told of its course."""
    mark = "HISTORY "
    told = [json.loads(line.removeprefix(mark)) for line in driver.output.splitlines() if line.startswith(mark)]
    return {course["name"]: course for course in told}


def finished(driver: DriverProgram) -> dict[str, dict[str, Any]]:
    assert driver.wait(TIMEOUT) == 0, driver.output
    return courses(driver)


def wait_for_rows(driver: DriverProgram, directory: Path, count: int) -> None:
    """Until the audited job has published so many rows."""

    def look() -> bool | None:
        driver.check_running()
        return len(published(directory / "first")) >= count or None

    wait_until(look, TIMEOUT, f"{count} published rows", interval=0.1)


def test_keyed_state_and_timers_give_the_right_results_and_no_slot_moves(
    cluster: StandaloneCluster, tmp_path: Path
) -> None:
    jobs: Jobs = {}
    for backend in ("heap", "lmdb"):
        settings = {"state.backend": backend, "holdfast.epoch.max-rows": "60"}
        jobs[f"average-{backend}"] = {"job": "average", "settings": settings, "rows": 330, "keys": 7}
        jobs[f"timers-{backend}"] = {"job": "timers", "settings": settings, "minutes": 20, "keys": 6}
    with program(cluster, tmp_path, jobs) as driver:
        told = finished(driver)
    assert told.keys() == jobs.keys()
    for name, course in told.items():
        rows = sorted(published(tmp_path / name / "out"))
        if name.startswith("average"):
            assert rows == averages(pairs(330, 7)), name
        else:
            assert rows == firings(events(20, 6)), name
        assert course["restarts"] == 0
        places = {tuple(executors) for _, _, executors in course["placement"]}
        assert len(places) == 1, f"{name}: slots moved: {places}"
        assert all(len(set(place)) == 2 for place in places), f"{name}: an executor is idle: {places}"
    assert all(len(told[f"average-{backend}"]["placement"]) >= 10 for backend in ("heap", "lmdb"))


@pytest.mark.spark(internals=True, reason="without them nobody knows that an executor has come")
def test_slots_are_spread_over_an_executor_that_comes_later_and_over_one_that_replaces_another(
    cluster: StandaloneCluster, tmp_path: Path
) -> None:
    jobs: Jobs = {"audited": {"job": "audited", "rows": 1_400, "keys": 20, "largest": 100}}
    cluster.wait_for_executors(0)
    cluster.pause_worker(1)
    try:
        with program(cluster, tmp_path, jobs) as driver:
            wait_for_rows(driver, tmp_path / "audited", 1)
            cluster.resume_worker(1)
            driver.wait_for_line("a new attempt spreads them again", TIMEOUT)
            wait_for_rows(driver, tmp_path / "audited", len(published(tmp_path / "audited" / "first")) + 100)
            cluster.kill_executor(0)
            course = finished(driver)["audited"]
    finally:
        cluster.resume_worker(1)
    audit(tmp_path / "audited", 1_400, 20)
    by_attempt = {attempt: executors for attempt, _, executors in course["placement"]}
    alone, spread, replaced = (set(by_attempt[attempt]) for attempt in (1, 2, max(by_attempt)))
    assert len(alone) == 1
    assert len(spread) == 2 and alone < spread
    assert len(replaced) == 2 and len(spread & replaced) == 1, "one executor lives on, the other was replaced"
    last = course["placement"][-1][2]
    assert sorted(Counter(last).values()) == [len(last) // 2] * 2, f"slots are not spread evenly: {last}"
    # The move is no failure: only the attempt that lost its executor is one, and nothing was done twice before.
    assert len(course["failures"]) == course["restarts"] == 1, course["failures"]
    before = [epoch for attempt, epoch, _ in course["placement"] if attempt <= 2]
    assert before == list(range(1, len(before) + 1))


#: As in an application that sets nothing.
SPARK_RETRIES = {
    "spark.stage.maxConsecutiveAttempts": "4",
    "spark.task.maxFailures": "4",
    "spark.locality.wait": "3s",
    "spark.python.daemon.module": "pyspark.daemon",
}
_CHECKSUM = "spark.sql.shuffle.orderIndependentChecksum"
#: Spark then does not notice that a task gave something else when it ran again.
WITHOUT_CHECKSUMS = {f"{_CHECKSUM}.enabled": "false", f"{_CHECKSUM}.enableFullRetryOnMismatch": "false"}


@pytest.mark.parametrize("settings", [{}, SPARK_RETRIES], ids=["fails-fast", "spark-retries"])
def test_an_executor_and_a_worker_die_inside_an_epoch(
    cluster: StandaloneCluster, tmp_path: Path, settings: dict[str, str]
) -> None:
    """The executor while the last level reads; later a worker, right after the commit of its store."""
    faults = FaultPlan(tmp_path / "faults")
    faults.add("task.opened", "kill-parent", level=2, slot=1, epoch=3)
    faults.add("task.after-commit", "kill", level=1, slot=0, epoch=4)
    jobs: Jobs = {"audited": {"job": "audited", "settings": settings, "rows": 900, "keys": 20, "largest": 100}}
    with program(cluster, tmp_path, jobs, faults) as driver:
        course = finished(driver)["audited"]
    assert faults.not_reached() == []
    audit(tmp_path / "audited", 900, 20)
    kinds = [kind for kind, _ in course["failures"]]
    assert set(kinds) <= {"EpochError", "StoreVersionError"}, course["failures"]
    # Where Spark repeats tasks, an epoch counts all the same if everybody read the same executions: always with the
    # worker, whose output nobody had read yet, and sometimes with the executor.
    assert len(kinds) <= 1 if settings else len(kinds) == 2, course["failures"]


def test_executors_die_in_front_of_a_query_and_behind_it(cluster: StandaloneCluster, tmp_path: Path) -> None:
    faults = FaultPlan(tmp_path / "faults")
    faults.add("query.rows-given", "kill-parent", epoch=3)
    faults.add("task.after-commit", "kill-parent", level=2, slot=1, epoch=4)
    settings = {"holdfast.epoch.max-rows": "60"}
    jobs: Jobs = {"queried": {"job": "queried", "settings": settings, "rows": 330, "keys": 7}}
    with program(cluster, tmp_path, jobs, faults) as driver:
        course = finished(driver)["queried"]
    assert faults.not_reached() == []
    rows = Counter(key for key, _ in pairs(330, 7) if key % 3)
    expected = sorted((key, n + 1) for key, times in rows.items() for n in range(times))
    assert sorted(published(tmp_path / "queried" / "out")) == expected
    assert {kind for kind, _ in course["failures"]} <= {"EpochError", "StoreVersionError"}, course["failures"]
    assert course["restarts"] >= 2


def test_spark_repeats_a_subtask_and_its_consumers_read_both_executions(
    cluster: StandaloneCluster, tmp_path: Path
) -> None:
    """An executor dies when some consumers have read its output and others have not begun. Spark computes the output
    again for those, and its job succeeds."""
    faults = FaultPlan(tmp_path / "faults")
    # An executor has one core and two of four slots: while one of them is held, the other has not begun to read.
    held = faults.add("task.start", "hold:60000", level=2, epoch=3)
    first, second = (faults.add("task.after-commit", "touch", hit=hit, level=2, epoch=3) for hit in (1, 2))
    settings = {**SPARK_RETRIES, **WITHOUT_CHECKSUMS, "parallelism.default": "4"}
    # The slot that waits for a held one must not lose patience and move.
    settings["spark.locality.wait"] = "60s"
    # Slots are spread over the executors that are there when the job begins.
    settings |= {"spark.cores.max": "2", "spark.scheduler.minRegisteredResourcesRatio": "1.0"}
    # Executors that are watched interrupt the epoch before Spark has repeated anything.
    settings["holdfast.spark.internals"] = "off"
    # As on one host: the local stores are there for whoever runs the lost tasks again.
    settings["holdfast.state.local-dir"] = str(tmp_path / "local")
    jobs: Jobs = {"audited": {"job": "audited", "settings": settings, "rows": 600, "keys": 20, "largest": 50}}
    with program(cluster, tmp_path, jobs, faults) as driver:
        holder = faults.wait(held, TIMEOUT)["pid"]
        faults.wait(first, TIMEOUT)
        with suppress(TimeoutError):  # the executor of the held one may have three slots, and the other one
            faults.wait(second, 5)
        executors = cluster.executors()
        idle = next(i for i, e in enumerate(executors) if holder not in {p.pid for p in descendants(e.process.pid)})
        cluster.kill_executor(idle)
        faults.release(held)
        course = finished(driver)["audited"]
    audit(tmp_path / "audited", 600, 20)
    # Nothing but the comparison of executions stood between this epoch and its checkpoint.
    assert [kind for kind, _ in course["failures"]] == ["MixedExecutionError"], course["failures"]


@pytest.mark.parametrize("seed", [2])
def test_kills_at_random_moments(cluster: StandaloneCluster, tmp_path: Path, seed: int) -> None:
    """Executors, their Python workers and the driver die one after the other. Each driver goes on at once, while tasks
    of the one before may still run."""
    chance = random.Random(seed)
    victims = ["executor", "worker", "driver", chance.choice(["executor", "worker"])]
    chance.shuffle(victims)
    rows = 1_400
    settings = {"state.backend": chance.choice(["heap", "lmdb"])}
    jobs: Jobs = {"audited": {"job": "audited", "settings": settings, "rows": rows, "keys": 20, "largest": 120}}
    driver = program(cluster, tmp_path, jobs).start()
    try:
        for number, victim in enumerate(victims):
            wait_for_rows(driver, tmp_path / "audited", rows * (1 + number) // 10)
            time.sleep(chance.uniform(0, 1))
            driver.check_running()
            if victim == "driver":
                driver.kill()
                driver = program(cluster, tmp_path, jobs).start()
            else:
                kill_one(cluster, victim, chance)
        course = finished(driver)["audited"]
    finally:
        driver.close()
    audit(tmp_path / "audited", rows, 20)
    assert course["status"] == "FINISHED"
    assert {kind for kind, _ in course["failures"]} <= {"EpochError", "StoreVersionError"}, course["failures"]


def kill_one(cluster: StandaloneCluster, victim: str, chance: random.Random) -> None:
    """Kill an executor of the newest application, or a Python worker of one, as soon as there is one."""

    def look() -> Executor | None:
        found = cluster.executors()
        newest = [executor for executor in found if executor.application == max(e.application for e in found)]
        return chance.choice(newest) if newest else None

    executor = wait_until(look, TIMEOUT, "an executor")
    if victim == "worker":
        kill_worker(executor.process.pid, timeout=TIMEOUT)
    else:
        executor.process.kill()
