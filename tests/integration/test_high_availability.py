"""Drivers of one job behind a real ZooKeeper: they die, hang, and lose sight of it, and every row comes once."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.failpoints import ENVIRONMENT_VARIABLE
from holdfast.testing.chaos.processes import Process, wait_until
from tests.integration.audited_job import audit
from tests.integration.programs import published
from tests.integration.standby_program import SCRIPT
from tests.kit.driver import DriverProgram
from tests.kit.zookeeper import ZooKeeperServer
from tests.spark.in_process import counts_of, staged

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

    def start(session: str = "3 s", stop_at: str | None = None) -> DriverProgram:
        given = {
            "high-availability.type": "zookeeper",
            "high-availability.zookeeper.quorum": zookeeper.quorum,
            "high-availability.zookeeper.path.root": f"/{directory.name}",
            "high-availability.zookeeper.client.session-timeout": session,
            "high-availability.zookeeper.client.retry-wait": "100 ms",
        }
        environment = {ENVIRONMENT_VARIABLE: str(_stop_at(directory, stop_at))} if stop_at is not None else {}
        log = directory / f"driver-{len(drivers)}.log"
        program = DriverProgram(PROGRAM, [str(directory), json.dumps(given)], log, environment)
        drivers.append(program.start())
        return program

    yield start
    for driver in drivers:
        driver.close()


def _stop_at(directory: Path, point: str) -> Path:
    """A specification of failpoints: the process stops when it reaches ``point`` for the tenth time."""
    markers = directory / "markers"
    markers.mkdir()
    specification = directory / "failpoints.json"
    trigger = {"id": "stop", "point": point, "action": "stop", "hit": 10}
    specification.write_text(json.dumps({"directory": str(markers), "triggers": [trigger]}))
    return specification


def is_stopped(driver: DriverProgram) -> bool | None:
    state = Path(f"/proc/{driver.pid}/stat").read_text().rpartition(")")[2].split()[0]
    return True if state == "T" else None


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


def test_on_spark_the_standby_goes_on_in_its_own_application(zookeeper: ZooKeeperServer, tmp_path: Path) -> None:
    rows, keys = 2_000, 10
    settings = {
        "spark.master": "local[2]",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "execution.checkpointing.interval": "500 ms",
        "holdfast.state.local-dir": str(tmp_path / "local"),
        "high-availability.type": "zookeeper",
        "high-availability.zookeeper.quorum": zookeeper.quorum,
        "high-availability.zookeeper.path.root": f"/{tmp_path.name}",
        "high-availability.zookeeper.client.session-timeout": "2 s",
    }
    given = json.dumps({"settings": settings, "rows": rows, "keys": keys, "largest": 350})

    def driver(log: str) -> DriverProgram:
        return DriverProgram(AUDITED_PROGRAM, [str(tmp_path), given], tmp_path / log)

    with driver("leader.log") as leader, driver("standby.log") as standby:
        results = tmp_path / "first"
        wait_until(lambda: any(results.glob("[!._]*")) or None, 120, "published rows")
        first, second = (leader, standby) if "leads job audited" in leader.output else (standby, leader)
        second.wait_for_line("Waiting for leadership of job audited")
        first.kill()
        assert second.wait(120) == 0, second.output
        second_output = second.output
    assert re.search(r"Attempt \d+ of job audited starts from checkpoint", second_output)
    audit(tmp_path, rows, keys)


def test_without_zookeeper_a_leader_that_hangs_keeps_its_job(tmp_path: Path) -> None:
    """A lock of the kernel is not taken from a process that is stopped: no other driver goes on, and nothing is
    repeated.
    """
    specification = _stop_at(tmp_path, "driver.commit-begun")
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
