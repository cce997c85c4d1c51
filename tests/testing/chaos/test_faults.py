"""Whom faults hit."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.testing.chaos import KillDriver, KillExecutor, KillWorker, PauseWorker, Program, Target
from holdfast.testing.chaos.processes import Process, wait_until

#: A driver, PySpark's daemon below it, and two workers below that. One of them begins to compute after a while; the
#: other waits in the kernel, so that it has no core at any moment, however busy the machine is. Each ends with its
#: parent: the driver may be killed.
DRIVER = """
import os, signal, time
from holdfast.testing.chaos.processes import die_with_parent
def child(work):
    pid = os.fork()
    if pid == 0:
        die_with_parent()
        work()
        os._exit(0)
    return pid
def compute():
    time.sleep(0.5)
    while True:
        pass
def daemon():
    print("resting", child(signal.pause), flush=True)
    print("computing", child(compute), flush=True)
    signal.pause()
child(daemon)
time.sleep(60)
"""


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Target]:
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    with Target(Program(script, ["pyspark.daemon"]), tmp_path) as running:
        yield running


def told(target: Target, name: str) -> Process:
    found = Process.read(int(target.driver.wait_for_line(rf"{name} (\d+)").group(1)))
    assert found is not None
    return found


def test_the_worker_that_computes_is_killed(target: Target) -> None:
    resting, computing = told(target, "resting"), told(target, "computing")
    assert sorted(process.pid for process in target.workers()) == sorted([resting.pid, computing.pid])
    wait_until(lambda: not resting.computes or None, 10, "a worker that waits")
    assert KillWorker().strike(target, random.Random(1))
    wait_until(lambda: not computing.alive or None, 10, "end of the worker")
    assert resting.alive
    # It is killed where no other one computes, too.
    assert KillWorker().strike(target, random.Random(1))
    wait_until(lambda: not resting.alive or None, 10, "end of the worker")
    assert not KillWorker().strike(target, random.Random(1))


def test_a_worker_that_was_paused_goes_on(target: Target) -> None:
    computing = told(target, "computing")
    assert PauseWorker((0.1, 0.2)).strike(target, random.Random(1))
    assert wait_until(lambda: computing.computes or None, 10, "a computing worker")


def test_there_are_no_executors_in_local_mode(target: Target) -> None:
    assert not KillExecutor().strike(target, random.Random(1))


def test_a_killed_driver_is_started_again(target: Target) -> None:
    before = target.driver
    told(target, "computing")
    assert KillDriver().strike(target, random.Random(1))
    assert before.code == -9 and target.driver.code is None and target.driver is not before
    assert target.restarts == 1
