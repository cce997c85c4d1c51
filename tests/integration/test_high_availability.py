"""Drivers of one job behind a real ZooKeeper: they die, hang, and lose sight of it, and every row comes once."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from holdfast.checkpoint.storage import open_snapshot
from holdfast.failpoints import ENVIRONMENT_VARIABLE
from holdfast.testing.chaos.processes import Process, wait_until
from tests.integration.audited_job import audit
from tests.integration.programs import published
from tests.integration.standby_program import SCRIPT
from tests.job.counting import counts_of, staged
from tests.kit.driver import DriverProgram, python_path
from tests.kit.faults import FaultPlan
from tests.kit.frozen_driver import is_stopped, stopping_at
from tests.kit.zookeeper import ZooKeeperServer

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("standby_program.py")
AUDITED_PROGRAM = Path(__file__).with_name("audited_job.py")
NewDriver = Callable[..., DriverProgram]
#: Seconds that ZooKeeper is away in the test of that, for those who want to see it away for longer.
AWAY_VARIABLE = "HOLDFAST_TEST_ZOOKEEPER_AWAY"


@pytest.fixture
def new_driver(zookeeper: ZooKeeperServer, tmp_path: Path) -> Iterator[NewDriver]:
    """Starts a driver of the one job of the test, of which all drivers of the test know."""
    yield from _drivers(zookeeper, tmp_path)


@pytest.fixture
def fragile(tmp_path: Path) -> Iterator[ZooKeeperServer]:
    """A ZooKeeper for one test alone."""
    with ZooKeeperServer(tmp_path / "zookeeper") as server:
        yield server


@pytest.fixture
def new_driver_there(fragile: ZooKeeperServer, tmp_path: Path) -> Iterator[NewDriver]:
    yield from _drivers(fragile, tmp_path)


def _drivers(zookeeper: ZooKeeperServer, directory: Path) -> Iterator[NewDriver]:
    drivers: list[DriverProgram] = []

    def start(
        session: str = "3 s",
        stop_at: str | None = None,
        faults: FaultPlan | None = None,
        changes: Mapping[str, str] | None = None,
    ) -> DriverProgram:
        given = {
            "high-availability.type": "zookeeper",
            "high-availability.zookeeper.quorum": zookeeper.quorum,
            "high-availability.zookeeper.path.root": f"/{directory.name}",
            "high-availability.zookeeper.client.session-timeout": session,
            "high-availability.zookeeper.client.retry-wait": "100 ms",
            **(changes or {}),
        }
        environment = {ENVIRONMENT_VARIABLE: str(stopping_at(directory, stop_at))} if stop_at is not None else {}
        environment |= faults.environment if faults is not None else {}
        log = directory / f"driver-{len(drivers)}.log"
        endless = ["endless"] if changes is not None else []
        program = DriverProgram(PROGRAM, [str(directory), json.dumps(given), *endless], log, environment)
        drivers.append(program.start())
        return program

    yield start
    for driver in drivers:
        driver.close()


def served(directory: Path) -> dict[str, str]:
    """Settings of a job that runs until the command line ends it."""
    return {
        "rest.enabled": "true",
        "rest.bind-port": "0",
        "holdfast.rest.linger": "5 s",
        "holdfast.jobs-dir": str(directory / "jobs"),
        "execution.checkpointing.savepoint-dir": str(directory / "savepoints"),
    }


class Commands:
    """The command line as a user calls it: in the jobs directory of the drivers, or on a host that knows ZooKeeper and
    the token alone.
    """

    def __init__(self, directory: Path, settings: Mapping[str, str]) -> None:
        self._directory = directory
        here, elsewhere = directory / "here", directory / "elsewhere"
        self._environments = {
            "here": {"HOLDFAST_JOBS_DIR": str(directory / "jobs"), "HOLDFAST_CONF_DIR": str(here)},
            "elsewhere": {"HOLDFAST_JOBS_DIR": str(directory / "nothing"), "HOLDFAST_CONF_DIR": str(elsewhere)},
        }
        there = {**settings, "rest.auth.token-file": str(directory / "jobs" / "token")}
        for folder, content in ((here, {}), (elsewhere, there)):
            folder.mkdir()
            (folder / "config.yaml").write_text("".join(f"{key}: {value}\n" for key, value in content.items()))

    def run(self, place: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": python_path(), **self._environments[place]}
        return subprocess.run(
            [sys.executable, "-m", "holdfast.cli", *arguments],
            env=environment,
            cwd=self._directory,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def ask(self, place: str, *arguments: str) -> Any:
        ran = self.run(place, *arguments, "--json")
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    def try_to(self, place: str, *arguments: str) -> Any:
        """None when it failed."""
        ran = self.run(place, *arguments, "--json")
        return json.loads(ran.stdout) if ran.returncode == 0 else None

    def states(self, place: str) -> list[tuple[str, str]]:
        return [(job["jid"], job["state"]) for job in self.ask(place, "list", "-a")["jobs"]]


def zookeeper_options(zookeeper: ZooKeeperServer, directory: Path) -> dict[str, str]:
    """What the command line needs to find the leader."""
    return {
        "high-availability.type": "zookeeper",
        "high-availability.zookeeper.quorum": zookeeper.quorum,
        "high-availability.zookeeper.path.root": f"/{directory.name}",
    }


def attempts(*drivers: DriverProgram) -> list[str]:
    """The numbers under which epochs ran, each once."""
    found = [number for d in drivers for number in re.findall(r"^epoch \d+ of attempt (\d+)$", d.output, re.MULTILINE)]
    return sorted(set(found), key=int)


def check_output(directory: Path) -> None:
    assert published(directory / "out") == counts_of(SCRIPT)
    assert staged(directory / "out") == []


def test_the_leader_is_killed(new_driver: NewDriver, tmp_path: Path) -> None:
    leader = new_driver()
    leader.wait_for_line(r"^epoch 10 of attempt 1$")
    standby = new_driver()
    standby.wait_for_line("Waiting for leadership of job job: 1 drivers are before this one")
    leader.wait_for_line(r"^epoch 20 of attempt 1$")
    leader.kill()
    killed = time.monotonic()
    standby.wait_for_line(r"Attempt 2 of job job starts from checkpoint (\d+)")
    assert time.monotonic() - killed < 10
    assert standby.wait() == 0
    assert "ended FINISHED" in standby.output
    assert attempts(leader, standby) == ["1", "2"]
    check_output(tmp_path)


def test_the_leader_is_killed_behind_the_record_of_its_stop(
    new_driver: NewDriver, zookeeper: ZooKeeperServer, tmp_path: Path
) -> None:
    """The standby publishes what the savepoint holds, and ends the job as it was asked to."""
    commands = Commands(tmp_path, zookeeper_options(zookeeper, tmp_path))
    faults = FaultPlan(tmp_path / "faults")
    faults.add("driver.stop-recorded", "kill")
    changes = {**served(tmp_path), "execution.checkpointing.interval": "1000000 h"}
    leader = new_driver(faults=faults, changes=changes)
    leader.wait_for_line(r"^epoch 10 of attempt 1$")
    standby = new_driver(changes=changes)
    standby.wait_for_line("Waiting for leadership")
    assert published(tmp_path / "out") == []
    stopped = commands.run("here", "stop", "job")
    assert (stopped.returncode, leader.wait()) == (1, -signal.SIGKILL), stopped.stdout
    assert standby.wait() == 0, standby.output
    (path,) = (tmp_path / "savepoints").iterdir()
    assert f"ended FINISHED {path}" in standby.output
    assert published(tmp_path / "out") == counts_of(SCRIPT[: open_snapshot(str(path))[0].epoch - 1])
    assert staged(tmp_path / "out") == []
    # Only to notify functions of the savepoint.
    assert len(re.findall(r"^epoch \d+ of attempt 2$", standby.output, re.MULTILINE)) == 1
    assert commands.states("here") == [("job", "FINISHED")]


def test_the_command_line_finds_the_leader(new_driver: NewDriver, zookeeper: ZooKeeperServer, tmp_path: Path) -> None:
    commands = Commands(tmp_path, zookeeper_options(zookeeper, tmp_path))
    drivers = [new_driver(changes=served(tmp_path))]
    drivers[0].wait_for_line(r"^epoch 10 of attempt 1$")
    drivers.append(new_driver(changes=served(tmp_path)))
    drivers[1].wait_for_line("Waiting for leadership")
    for leader, other in ((0, 1), (1, 0)):
        for place in ("here", "elsewhere"):
            assert commands.states(place) == [("job", "RUNNING")]
            trigger = commands.ask(place, "savepoint", "job")["request-id"]
            assert f"Trigger {trigger}: the savepoint completed" in drivers[leader].output
            assert trigger not in drivers[other].output
        if leader == 0:
            drivers[0].kill()
            drivers[1].wait_for_line(r"^epoch \d+ of attempt 2$")
    path = commands.ask("elsewhere", "stop", "job")["location"]
    assert drivers[1].wait() == 0
    assert f"ended FINISHED {path}" in drivers[1].output
    assert published(tmp_path / "out") == counts_of(SCRIPT[: open_snapshot(path)[0].epoch - 1])
    assert commands.states("here") == [("job", "FINISHED")]


@pytest.mark.parametrize(
    "moment",
    [
        "checkpoint.before-metadata",
        "driver.commit-begun",
        "sink.before-commit",
    ],
)
def test_the_leader_hangs_and_wakes_up_behind_its_successor(new_driver: NewDriver, tmp_path: Path, moment: str) -> None:
    leader = new_driver(stop_at=moment)
    wait_until(lambda: is_stopped(leader), 60, "stopped leader")
    before = len(leader.output)
    standby = new_driver()
    standby.wait_for_line(r"^epoch \d+ of attempt 2$")
    time.sleep(0.3)
    leader_process = Process.read(leader.pid)
    assert leader_process is not None
    leader_process.resume()
    leader.wait_for_line(r"Attempt 1 of job job ends here: ")
    assert standby.wait() == 0
    # It has waited again meanwhile, and hears that the job has ended.
    assert leader.wait() == 0
    assert "ended FINISHED" in leader.output
    awake = leader.output[before:]
    # Behind its last look at its leadership it does what its successor does too: commit a completed checkpoint.
    assert moment == "sink.before-commit" or not re.findall(r"^commit", awake, re.MULTILINE)
    assert not re.findall(r"^epoch", awake, re.MULTILINE)
    assert attempts(leader, standby) == ["1", "2"]
    check_output(tmp_path)


def test_zookeeper_is_restarted(new_driver_there: NewDriver, fragile: ZooKeeperServer, tmp_path: Path) -> None:
    leader = new_driver_there(session="20 s")
    leader.wait_for_line(r"^epoch 10 of attempt 1$")
    standby = new_driver_there(session="20 s")
    standby.wait_for_line("Waiting for leadership")
    fragile.restart()
    assert leader.wait() == 0
    assert standby.wait() == 0
    assert "cannot be reached for now: checkpoints wait" in leader.output
    # Nothing was lost: neither leader nor attempt changed.
    assert (attempts(leader), attempts(standby)) == (["1"], [])
    assert "ended FINISHED" in standby.output
    check_output(tmp_path)


def test_zookeeper_hangs_for_a_moment(new_driver_there: NewDriver, fragile: ZooKeeperServer, tmp_path: Path) -> None:
    leader = new_driver_there(session="4 s")
    leader.wait_for_line(r"^epoch 10 of attempt 1$")
    fragile.pause()
    time.sleep(1)
    fragile.resume()
    assert leader.wait() == 0
    assert attempts(leader) == ["1"]
    check_output(tmp_path)


def test_zookeeper_is_away_for_longer_than_a_session(
    new_driver_there: NewDriver, fragile: ZooKeeperServer, tmp_path: Path
) -> None:
    away = float(os.environ.get(AWAY_VARIABLE, "6"))
    leader = new_driver_there(session="2 s")
    leader.wait_for_line(r"^epoch 10 of attempt 1$")
    standby = new_driver_there(session="2 s")
    standby.wait_for_line("Waiting for leadership")
    fragile.kill()
    gone = time.monotonic()
    leader.wait_for_line(r"Attempt 1 of job job ends here: .*ZooKeeper could not be reached for 2 s")
    time.sleep(max(0.0, gone + away - time.monotonic()))
    assert attempts(leader, standby) == ["1"]
    fragile.start()
    assert [leader.wait(), standby.wait()] == [0, 0]
    assert attempts(leader, standby) == ["1", "2"]
    assert "ended FINISHED" in leader.output and "ended FINISHED" in standby.output
    check_output(tmp_path)


def followed(trigger: str, driver: DriverProgram) -> None:
    """The savepoint is seen in the log of its driver: its barrier in every subtask of its workers, and the answers."""
    course = re.findall(rf"Trigger {trigger}: (.*)", driver.output)
    arrived = {tuple(found) for line in course for found in re.findall(r"has come to '(.+)' \((\d)/", line)}
    answered = {tuple(found) for line in course for found in re.findall(r"^'(.+)' \((\d)/\d\) acknowledged", line)}
    assert arrived == answered and len(arrived) > 4, driver.output
    assert course[-1].startswith("the savepoint completed: "), course


def test_on_spark_the_standby_goes_on_in_its_own_application(zookeeper: ZooKeeperServer, tmp_path: Path) -> None:
    rows, keys = 6_000, 10
    settings = {
        **served(tmp_path),
        "spark.master": "local[2]",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "execution.checkpointing.interval": "500 ms",
        "holdfast.state.local-dir": str(tmp_path / "local"),
        "high-availability.type": "zookeeper",
        "high-availability.zookeeper.quorum": zookeeper.quorum,
        "high-availability.zookeeper.path.root": f"/{tmp_path.name}",
        "high-availability.zookeeper.client.session-timeout": "2 s",
    }
    given = json.dumps({"settings": settings, "rows": rows, "keys": keys, "largest": 100})
    commands = Commands(tmp_path, zookeeper_options(zookeeper, tmp_path))

    def driver(log: str) -> DriverProgram:
        return DriverProgram(AUDITED_PROGRAM, [str(tmp_path), given], tmp_path / log)

    with driver("leader.log") as leader, driver("standby.log") as standby:
        results = tmp_path / "first"
        wait_until(lambda: any(results.glob("[!._]*")) or None, 120, "published rows")
        first, second = (leader, standby) if "leads job audited" in leader.output else (standby, leader)
        second.wait_for_line("Waiting for leadership of job audited")
        assert commands.states("here") == [("audited", "RUNNING")]
        followed(commands.ask("here", "savepoint", "audited")["request-id"], first)
        first.kill()
        second.wait_for_line(r"Attempt \d+ of job audited starts from checkpoint")
        wait_until(lambda: commands.states("elsewhere") == [("audited", "RUNNING")] or None, 30, "a job that runs")
        # Its first epoch is still to come.
        taken = wait_until(lambda: commands.try_to("elsewhere", "savepoint", "audited"), 30, "a savepoint")
        followed(taken["request-id"], second)
        assert second.wait(120) == 0, second.output
        second_output = second.output
    assert re.search(r"Attempt \d+ of job audited starts from checkpoint", second_output)
    audit(tmp_path, rows, keys)


def test_without_zookeeper_a_leader_that_hangs_keeps_its_job(tmp_path: Path) -> None:
    """A lock of the kernel is not taken from a process that is stopped: no other driver goes on, and nothing is
    repeated.
    """
    specification = stopping_at(tmp_path, "driver.commit-begun")
    arguments = [str(tmp_path), "{}"]
    with DriverProgram(PROGRAM, arguments, tmp_path / "1.log", {ENVIRONMENT_VARIABLE: str(specification)}) as holder:
        wait_until(lambda: is_stopped(holder), 60, "stopped driver")
        with DriverProgram(PROGRAM, arguments, tmp_path / "2.log") as rival:
            assert rival.wait() == 1
            assert f"another driver runs job job in {tmp_path}/chk/job (process {holder.pid} on" in rival.output
        process = Process.read(holder.pid)
        assert process is not None
        process.resume()
        assert holder.wait() == 0
    check_output(tmp_path)
