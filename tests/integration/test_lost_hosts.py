"""A cluster that loses a host in the middle of an epoch, with the settings of docs/how-to/run-on-a-cluster.md."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.testing.chaos.processes import wait_until
from tests.integration.audited_job import audit, published
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


@pytest.mark.parametrize("fault", [killed, cut_off], ids=["killed", "cut-off"])
def test_a_lost_host_interrupts_its_epoch_and_the_other_one_goes_on(
    tmp_path: Path, fault: object, record_property: pytest.RecordProperty
) -> None:
    settings = {**NOTICED_SOON, **SPARK_RETRIES}
    jobs: Jobs = {"audited": {"job": "audited", "rows": ROWS, "keys": KEYS, "largest": 100, "settings": settings}}
    faults = FaultPlan(tmp_path / "faults")
    with StandaloneCluster(workers=2) as cluster, program(cluster, tmp_path, jobs, faults) as driver:
        wait_for_rows(driver, tmp_path / "audited", 200)
        before, begun = len(published(tmp_path / "audited" / "first")), time.monotonic()
        with fault(cluster):  # type: ignore[operator]
            driver.wait_for_line("these were lost while an epoch ran", TIMEOUT)
            noticed = time.monotonic() - begun
            driver.wait_for_line(r"Attempt 2 of job .* starts", TIMEOUT)
            # What was published before the fault may still grow by what its last checkpoint holds.
            wait_until(
                lambda: len(published(tmp_path / "audited" / "first")) > before + 100 or None, TIMEOUT, "more rows"
            )
            record_property("seconds until the loss was noticed", round(noticed, 1))
            record_property("seconds until the next attempt published", round(time.monotonic() - begun, 1))
            print(f"noticed after {noticed:.1f} s, published again after {time.monotonic() - begun:.1f} s")
            course = finished(driver)["audited"]
    audit(tmp_path / "audited", ROWS, KEYS)
    assert course["restarts"] == 1
    ((kind, text),) = course["failures"]
    assert kind == "EpochError" and "these were lost while an epoch ran" in text, course["failures"]
