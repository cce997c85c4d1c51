"""Drivers of one job that is kept in its directory: one of them hangs, another one gets the job, and every row comes
once.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

from holdfast.checkpoint.lease import LeaseRecord
from holdfast.failpoints import ENVIRONMENT_VARIABLE
from holdfast.storage.filesystem import Storage
from holdfast.testing.chaos.processes import wait_until
from tests.integration.programs import published
from tests.integration.standby_program import SCRIPT
from tests.job.counting import counts_of, staged
from tests.kit.driver import DriverProgram
from tests.kit.frozen_driver import is_stopped, resume, stopping_at
from tests.kit.s3 import S3Server

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("standby_program.py")
NewDriver = Callable[..., DriverProgram]
QUICK = {"holdfast.lease.heartbeat-interval": "200 ms", "holdfast.lease.timeout": "1 s"}
#: Moments at which a driver hangs: right behind its last look at its lease, too.
MOMENTS = [
    "checkpoint.before-metadata",
    "checkpoint.leadership-confirmed",
    "driver.commit-begun",
    "sink.before-commit",
]


@pytest.fixture
def new_driver(tmp_path: Path) -> Iterator[NewDriver]:
    """Starts a driver of the one job of the test. With ``stop_at`` it stops when it reaches that point for the tenth
    time.
    """
    drivers: list[DriverProgram] = []

    def start(
        stop_at: str | None = None,
        environment: Mapping[str, str] | None = None,
        lease: Mapping[str, str] = QUICK,
        **given: str,
    ) -> DriverProgram:
        failpoints = {} if stop_at is None else {ENVIRONMENT_VARIABLE: str(stopping_at(tmp_path, stop_at))}
        arguments = [str(tmp_path), json.dumps({**lease, **given})]
        log = tmp_path / f"driver-{len(drivers)}.log"
        drivers.append(DriverProgram(PROGRAM, arguments, log, {**failpoints, **(environment or {})}).start())
        return drivers[-1]

    yield start
    for driver in drivers:
        driver.close()


def check_stepped_down(first: DriverProgram, second: DriverProgram, moment: str) -> None:
    """The first driver, which was stopped at ``moment``, wakes up while the second one runs the job to its end."""
    before = len(first.output)
    resume(first)
    assert first.wait() == 1
    assert re.search(r"Attempt 1 of job job ends here: .* was taken from this driver", first.output)
    assert second.wait() == 0, second.output
    assert set(re.findall(r"^epoch \d+ of attempt (\d+)$", second.output, re.MULTILINE)) == {"2"}
    awake = first.output[before:]
    # Behind its last look at its leadership it does what its successor does too: commit a completed checkpoint.
    assert moment == "sink.before-commit" or not re.findall(r"^commit", awake, re.MULTILINE)
    assert not re.findall(r"^epoch", awake, re.MULTILINE)


def check_output(directory: Path) -> None:
    assert published(directory / "out") == counts_of(SCRIPT)
    assert staged(directory / "out") == []


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_driver_that_hangs_while_its_lock_is_removed_steps_down(
    new_driver: NewDriver, tmp_path: Path, moment: str
) -> None:
    first = new_driver(stop_at=moment)
    wait_until(lambda: is_stopped(first), 60, "stopped driver")
    (tmp_path / "chk/job/lock").unlink()
    second = new_driver()
    second.wait_for_line(r"^epoch \d+ of attempt 2$")
    check_stepped_down(first, second, moment)
    check_output(tmp_path)


@pytest.mark.parametrize("moment", ["checkpoint.leadership-confirmed", "sink.before-commit"])
def test_a_driver_that_hangs_on_another_host_steps_down_behind_its_successor(
    new_driver: NewDriver, s3_server: S3Server, s3: str, tmp_path: Path, moment: str
) -> None:
    """Nothing is known of its process: its lease in the bucket runs out, and is taken over."""
    place = {"execution.checkpointing.dir": f"{s3}/chk"}
    first = new_driver(stop_at=moment, environment=s3_server.environment, **place)
    wait_until(lambda: is_stopped(first), 60, "stopped driver")
    move_elsewhere(Storage.for_uri(f"{s3}/chk/job"))
    began = time.monotonic()
    second = new_driver(environment=s3_server.environment, **place)
    second.wait_for_line(r"^epoch \d+ of attempt 2$")
    assert time.monotonic() - began < 30
    assert "on elsewhere since" in second.output and "has run out" in second.output
    check_stepped_down(first, second, moment)
    check_output(tmp_path)


def test_the_job_of_a_killed_driver_is_taken_over_soon(
    new_driver: NewDriver, s3_server: S3Server, s3: str, tmp_path: Path
) -> None:
    """With the settings that a job has by itself, by a driver on another host, which starts at that moment."""
    place = {"execution.checkpointing.dir": f"{s3}/chk"}
    storage = Storage.for_uri(f"{s3}/chk/job")
    first = new_driver(environment=s3_server.environment, lease={}, **place)
    first.wait_for_line(r"^epoch 10 of attempt 1$")
    killed = time.monotonic()
    first.kill()
    move_elsewhere(storage)
    second = new_driver(environment=s3_server.environment, lease={}, **place)
    wait_until(lambda: storage.exists("attempts/2") or None, 60, "driver that takes over", interval=0.1)
    taken = time.monotonic() - killed
    second.wait_for_line(r"^epoch \d+ of attempt 2$")
    print(f"taken over after {taken:.1f} s, first epoch after {time.monotonic() - killed:.1f} s")
    assert "does not renew its lease for 15 s" in second.output
    # Nothing of a lease runs out at once: that would be another driver's job.
    assert 15 <= taken < 30
    assert second.wait() == 0, second.output
    check_output(tmp_path)


def move_elsewhere(storage: Storage) -> None:
    """Make the lease of the job one of a host of which nothing is known here."""
    lease = LeaseRecord.decode(storage.read("attempts/1"))
    assert lease is not None
    driver = msgspec.structs.replace(lease.driver, host="elsewhere", boot="another", machine="another")
    storage.write_atomic("attempts/1", msgspec.structs.replace(lease, driver=driver).encode())


def test_of_two_that_race_for_the_job_of_a_lost_driver_one_runs_it(
    new_driver: NewDriver, s3_server: S3Server, s3: str, tmp_path: Path
) -> None:
    place = {"execution.checkpointing.dir": f"{s3}/chk"}
    first = new_driver(environment=s3_server.environment, **place)
    first.wait_for_line(r"^epoch 10 of attempt 1$")
    first.kill()
    move_elsewhere(Storage.for_uri(f"{s3}/chk/job"))
    rivals = [new_driver(environment=s3_server.environment, **place) for _ in range(2)]
    codes = [rival.wait() for rival in rivals]
    assert sorted(codes) == [0, 1], [rival.output for rival in rivals]
    winner, loser = rivals[codes.index(0)], rivals[codes.index(1)]
    assert re.search(r"JobLockedError: another driver runs job job|JobEndedError: job job has ended", loser.output)
    assert not re.findall(r"^epoch|^commit", loser.output, re.MULTILINE)
    assert "ended FINISHED" in winner.output
    check_output(tmp_path)
