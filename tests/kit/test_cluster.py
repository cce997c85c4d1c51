"""A standalone cluster starts, loses executors and Python workers to SIGKILL, and leaves no process behind."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from holdfast.testing.chaos.processes import descendants, java_processes, kill_worker, wait_until
from tests.kit.cluster import StandaloneCluster
from tests.kit.driver import DriverProgram
from tests.kit.faults import FaultPlan

pytestmark = pytest.mark.slow

JOB = """
import json, sys
from pyspark.sql import SparkSession
builder = SparkSession.builder
for name, value in json.loads(sys.argv[1]).items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()

def work(batches):
    import os, time
    from holdfast.failpoints import failpoint
    failpoint("work", pid=os.getpid())
    for batch in batches:
        yield batch

for epoch in range(int(sys.argv[2])):
    rows = spark.range(8).repartition(2).mapInArrow(work, "id long").count()
    print(f"epoch {epoch} rows {rows}")
print("done")
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    script = tmp_path / "job.py"
    script.write_text(JOB)
    return script


def test_kills_on_a_real_cluster(tmp_path: Path, job: Path) -> None:
    # The Spark session that other tests of this process share has a JVM too, and lives on.
    elsewhere = {process.pid for process in java_processes(os.getpid())}
    faults = FaultPlan(tmp_path / "faults")
    worker_dies = faults.add("work", "kill", hit=3)
    executor_dies = faults.add("work", "kill-parent", hit=7)
    held = faults.add("work", "hold:60000", hit=11)
    with StandaloneCluster(workers=2) as cluster:
        assert len(cluster.state()["workers"]) == 2
        settings = {**cluster.settings, **faults.spark_settings}
        with DriverProgram(job, [json.dumps(settings), "8"]) as driver:
            first = {executor.executor_id for executor in cluster.wait_for_executors(2)}
            faults.wait(worker_dies)
            faults.wait(executor_dies)
            worker = faults.wait(held)["pid"]
            replaced = cluster.wait_for_executors(2)
            assert len({executor.executor_id for executor in replaced} - first) == 1
            home = next(e for e in replaced if worker in [p.pid for p in descendants(e.process.pid)])
            cluster.kill_executor(replaced.index(home))
            assert not home.process.alive
            assert driver.wait(90) == 0, driver.output
            assert driver.output.count("rows 8") == 8
        assert faults.not_reached() == []
        spark = [process for process in java_processes(os.getpid()) if process.pid not in elsewhere]
        assert len(spark) >= 3
    assert not any(process.alive for process in spark)


def test_a_worker_of_a_local_driver_can_be_killed(job: Path) -> None:
    settings = '{"spark.master": "local[2,4]", "spark.ui.enabled": "false"}'
    with DriverProgram(job, [settings, "200"]) as driver:
        driver.wait_for_line("^epoch 1 ", 90)
        kill_worker(driver.pid)
        driver.wait_for_line("^epoch 5 ", 90)
        jvm = java_processes(driver.pid)
        driver.kill_python()
        wait_until(lambda: not jvm[0].alive or None, 30, "the end of a JVM without its driver")
