"""Which process the demo kills: a worker at the beginning of a task, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from holdfast.demo.workers import kill_busy_worker
from holdfast.testing.chaos.processes import descendants, python_workers

# Stands for PySpark's daemon, whose name is in its command line and in that of what it forks.
_DAEMON = """
import os, sys, time
ready = "pyspark.daemon"
if os.fork() == 0:
    kind = sys.argv[1]
    while kind == "computing":
        pass
    while kind == "beginning":
        time.sleep(0.3)
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            pass
    time.sleep(60)
print("ready", flush=True)
time.sleep(60)
"""


#: This process may be a driver itself, by a session that tests share.
_DRIVER = "import subprocess, sys; subprocess.run([sys.executable, '-c', *sys.argv[1:]])"


@pytest.fixture
def driver(request):
    process = subprocess.Popen(
        [sys.executable, "-c", _DRIVER, _DAEMON, request.param, "pyspark.daemon"],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    yield process
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(20)
    process.stdout.close()


@pytest.mark.parametrize("driver", ["beginning"], indirect=True)
def test_a_worker_that_begins_to_compute_is_killed(driver):
    workers = python_workers(driver.pid)
    assert len(workers) == 1
    killed = next(pid for pid in iter(lambda: kill_busy_worker(driver.pid), object()) if pid is not None)
    assert killed == workers[0].pid
    assert workers[0].parent in [process.pid for process in descendants(driver.pid)], "the daemon is left alone"


@pytest.mark.parametrize("driver", ["resting", "computing"], indirect=True)
def test_a_worker_that_rests_or_has_long_begun_is_left_alone(driver):
    assert len(python_workers(driver.pid)) == 1
    assert kill_busy_worker(driver.pid) is None


@pytest.mark.parametrize("driver", ["resting"], indirect=True)
def test_workers_of_others_are_not_seen(driver):
    assert len(python_workers(driver.pid)) == 1
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as other:
        assert python_workers(other.pid) == []
        other.kill()
