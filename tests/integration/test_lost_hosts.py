"""A cluster that loses a host in the middle of an epoch, with the settings of docs/how-to/run-on-a-cluster.md."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from holdfast.testing.chaos.processes import wait_until
from tests.integration.audited_job import audit
from tests.integration.test_cluster import TIMEOUT, Jobs, finished, program, wait_for_rows
from tests.kit.cluster import StandaloneCluster
from tests.kit.faults import FaultPlan

pytestmark = pytest.mark.slow

ROWS, KEYS = 1_400, 20
#: How soon Spark gives up an executor that it does not hear of.
NOTICED_SOON = {
    "spark.executor.heartbeatInterval": "3s",
    "spark.storage.blockManagerHeartbeatTimeoutMs": "15s",
    "spark.network.timeoutInterval": "3s",
}
#: Whatever Spark does about a fetch that fails, the epoch is over before.
SPARK_RETRIES = {"spark.stage.maxConsecutiveAttempts": "4", "spark.task.maxFailures": "4"}

Fault = Callable[[StandaloneCluster], AbstractContextManager[None]]


@contextmanager
def killed(cluster: StandaloneCluster) -> Iterator[None]:
    cluster.kill_worker(1)
    yield


@contextmanager
def cut_off(cluster: StandaloneCluster) -> Iterator[None]:
    stopped = cluster.cut_off(1)
    try:
        yield
    finally:
        for process in stopped:
            process.resume()


def has_published(directory: Path, attempt: int) -> bool | None:
    """Whether rows of this attempt can be seen: files are named by operator, attempt and epoch."""
    return any(path.name.split("-")[2] == str(attempt) for path in directory.glob("part-*")) or None


@pytest.mark.parametrize(("fault", "most"), [(killed, 15), (cut_off, 30)], ids=["killed", "cut-off"])
def test_a_lost_host_interrupts_its_epoch_and_the_other_one_goes_on(
    tmp_path: Path, fault: Fault, most: float, record_property: Callable[[str, object], None]
) -> None:
    """``most``: seconds from the fault to the first row that the next attempt publishes."""
    settings = {**NOTICED_SOON, **SPARK_RETRIES}
    jobs: Jobs = {"audited": {"job": "audited", "rows": ROWS, "keys": KEYS, "largest": 100, "settings": settings}}
    faults, out = FaultPlan(tmp_path / "faults"), tmp_path / "audited" / "first"
    with StandaloneCluster(workers=2) as cluster, program(cluster, tmp_path, jobs, faults) as driver:
        wait_for_rows(driver, tmp_path / "audited", 200)
        begun = time.monotonic()
        with fault(cluster):
            driver.wait_for_line("these were lost while an epoch ran", TIMEOUT)
            noticed = time.monotonic() - begun
            driver.wait_for_line(r"Attempt 2 of job .* starts", TIMEOUT)
            wait_until(lambda: has_published(out, attempt=2), TIMEOUT, "a row of the next attempt")
            went_on = time.monotonic() - begun
            record_property("seconds until the loss was noticed", round(noticed, 1))
            record_property("seconds until the next attempt published", round(went_on, 1))
            print(f"noticed after {noticed:.1f} s, first row of the next attempt after {went_on:.1f} s")
            course = finished(driver)["audited"]
    audit(tmp_path / "audited", ROWS, KEYS)
    assert course["restarts"] == 1
    ((kind, text),) = course["failures"]
    assert kind == "EpochError" and "these were lost while an epoch ran" in text, course["failures"]
    assert went_on <= most
