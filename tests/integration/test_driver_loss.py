"""The driver is lost, as a whole or in part: the job ends at once with a clear error, and the next driver goes on."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from holdfast.testing.chaos.processes import wait_until
from tests.integration.audited_job import audit
from tests.kit.driver import DriverProgram

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("audited_job.py")
ROWS, KEYS = 6_000, 20

STOPPING = """
import json, logging, sys, threading, time
from pathlib import Path
from pyspark.sql import SparkSession
from tests.integration.audited_job import run

logging.basicConfig(level=logging.INFO)
where, given = Path(sys.argv[1]), json.loads(sys.argv[2])

def stop():
    while not (where / "stop").exists():
        time.sleep(0.05)
    SparkSession._instantiatedSession.stop()

threading.Thread(target=stop, daemon=True).start()
run(where, **given)
print("FINISHED")
"""


def driver(directory: Path, log: str, program: Path = PROGRAM) -> DriverProgram:
    settings = {
        "spark.master": "local[2]",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "holdfast.state.local-dir": str(directory / "local"),
        # A job that failed for good would delete its checkpoints with this.
        "execution.checkpointing.externalized-checkpoint-retention": "NO_EXTERNALIZED_CHECKPOINTS",
    }
    given = json.dumps({"settings": settings, "rows": ROWS, "keys": KEYS})
    return DriverProgram(program, [str(directory), given], directory / log)


def wait_for_results(directory: Path) -> None:
    """A checkpoint is complete once its rows are published."""
    results = directory / "first"
    wait_until(lambda: any(results.glob("[!._]*")) or None, 120, "published rows")


def error_of(program: DriverProgram) -> str:
    """The error that the program ended with, as Python told it."""
    told = [line for line in program.output.splitlines() if line.startswith("holdfast.errors.")]
    return told[-1].removeprefix("holdfast.errors.")


def finish(directory: Path, log: str) -> None:
    with driver(directory, log) as program:
        assert program.wait(180) == 0, program.output
    assert "starts from checkpoint" in program.output
    audit(directory, ROWS, KEYS)


def test_a_dead_jvm_ends_the_job_at_once_and_the_next_driver_goes_on(tmp_path: Path) -> None:
    with driver(tmp_path, "first.log") as program:
        wait_for_results(tmp_path)
        program.kill_jvm()
        killed = time.monotonic()
        assert program.wait(60) == 1
    assert time.monotonic() - killed < 20
    assert "Attempt 2" not in program.output, "an attempt was made without an application"
    told = error_of(program)
    assert told.startswith("JobExecutionError: The Spark application of job 'audited' (audited) is gone")
    assert f"holdfast.job-id=audited: it continues from its last checkpoint in {tmp_path / 'checkpoints'}" in told
    finish(tmp_path, "second.log")


def test_a_context_that_is_stopped_ends_the_job_at_once(tmp_path: Path) -> None:
    script = tmp_path / "stopping.py"
    script.write_text(STOPPING)
    with driver(tmp_path, "first.log", script) as program:
        wait_for_results(tmp_path)
        (tmp_path / "stop").touch()
        assert program.wait(60) == 1
    assert "Attempt 2" not in program.output
    assert "The Spark application of job 'audited' (audited) is gone" in error_of(program)
    assert list((tmp_path / "checkpoints").rglob("_metadata")), "the checkpoints were deleted"


def test_a_driver_that_is_killed_is_followed_by_another_one_at_once(tmp_path: Path) -> None:
    """The first driver's JVM outlives it for a moment, its tasks too: they must not touch the second's results."""
    with driver(tmp_path, "first.log") as program:
        wait_for_results(tmp_path)
        program.kill_python()
        finish(tmp_path, "second.log")
