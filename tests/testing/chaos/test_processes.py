"""The process helpers, on processes without Spark."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.testing.chaos.processes import Process, descendants, kill_tree, kill_worker, python_workers, wait_until
from tests.kit.driver import DriverProgram

FAMILY = """
import os, subprocess, sys, time
print("child", subprocess.Popen(["sleep", "60"]).pid)
open(sys.argv[1], "w").close()
time.sleep(60)
"""

# The shape of PySpark's workers: a daemon, and forks of it with the same command line.
DAEMON = """
import os, time
for _ in range(2):
    if os.fork() == 0:
        break
print("up")
time.sleep(60)
"""


# A test run that starts a program and is killed.
PARENT = """
import sys, time
from tests.kit.driver import DriverProgram
print("program", DriverProgram(sys.argv[1], output=sys.argv[2]).start().pid)
time.sleep(60)
"""


@pytest.fixture
def family(tmp_path: Path) -> Path:
    script = tmp_path / "family.py"
    script.write_text(FAMILY)
    return script


def test_a_process_is_told_from_a_later_one_of_its_id() -> None:
    child = subprocess.Popen(["sleep", "60"])
    process = Process.read(child.pid)
    assert process is not None and process.alive
    assert not Process(process.pid, process.parent, process.started - 1, process.name, process.command).kill()
    assert process.kill()
    child.wait(10)
    assert not process.kill()


def test_an_unwaited_dead_child_does_not_count_as_alive() -> None:
    child = subprocess.Popen(["true"])
    wait_until(lambda: Process.read(child.pid) is None or None, 10, "end of child")
    child.wait(10)


def test_waiting_in_vain_names_what_was_missing() -> None:
    with pytest.raises(TimeoutError, match="the moon"):
        wait_until(lambda: None, 0.05, "the moon")


def test_killing_a_driver_takes_its_children(tmp_path: Path, family: Path) -> None:
    with DriverProgram(family, [str(tmp_path / "marker")]) as driver:
        driver.wait_for_file(tmp_path / "marker")
        child = Process.read(int(driver.wait_for_line(r"^child (\d+)$").group(1)))
        assert child is not None and child.pid in [process.pid for process in descendants(driver.pid)]
        driver.kill()
        assert not child.alive
        assert driver.wait() == -signal.SIGKILL


def test_killing_python_alone_leaves_the_child_until_close(tmp_path: Path, family: Path) -> None:
    with DriverProgram(family, [str(tmp_path / "marker")]) as driver:
        child = Process.read(int(driver.wait_for_line(r"^child (\d+)$").group(1)))
        driver.kill_python()
        assert child is not None and child.alive
    assert not child.alive


def test_a_driver_that_ends_early_shows_its_output(tmp_path: Path) -> None:
    script = tmp_path / "short.py"
    script.write_text("print('nothing else'); raise SystemExit(3)")
    with DriverProgram(script) as driver, pytest.raises(AssertionError, match=r"ended with 3(.|\n)*nothing else"):
        driver.wait_for_line("never")


@pytest.mark.parametrize("daemon", ["pyspark.daemon", "holdfast.spark.internals.worker_daemon"])
def test_finds_and_kills_forks_of_the_daemon_only(tmp_path: Path, daemon: str) -> None:
    *packages, module = daemon.split(".")
    directory = tmp_path
    for package in packages:
        directory /= package
        directory.mkdir()
        (directory / "__init__.py").touch()
    (directory / f"{module}.py").write_text(DAEMON)
    program = subprocess.Popen(
        ["bash", "-c", f"{sys.executable} -m {daemon}; true"], cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}
    )
    try:
        wait_until(lambda: len(python_workers(program.pid)) == 2 or None, 20, "two workers")
        workers = python_workers(program.pid)
        killed = kill_worker(program.pid, 1)
        assert killed in workers
        left = [workers[0].pid]
        wait_until(lambda: [each.pid for each in python_workers(program.pid)] == left or None, 20, "end of a worker")
    finally:
        kill_tree(program.pid)
        program.wait(10)


def test_a_program_does_not_outlive_a_test_run_that_is_killed(tmp_path: Path) -> None:
    parent, sleeper = tmp_path / "parent.py", tmp_path / "sleeper.py"
    parent.write_text(PARENT)
    sleeper.write_text("import time; time.sleep(60)")
    with DriverProgram(parent, [str(sleeper), str(tmp_path / "sleeper.log")]) as run:
        program = Process.read(int(run.wait_for_line(r"program (\d+)").group(1)))
        assert program is not None
        run.kill_python()
        wait_until(lambda: not program.alive or None, 20, "end of the program")
