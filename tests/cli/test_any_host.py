"""A command line that knows nothing but the checkpoint directory, and a driver in another process, without Spark."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import PROJECT, Ran, await_true
from tests.integration.programs import published
from tests.job.counting import EPOCHS, counts_of

PROGRAM = str(Path(__file__).with_name("endless.py"))
CONFIGURATION = """
rest.enabled: true
rest.bind-port: 0
holdfast.rest.linger: 1 s
execution.checkpointing.interval: 10 ms
parallelism.default: 2
"""


def _environment(home: Path) -> dict[str, str]:
    """Variables of a user who has nothing: neither a jobs directory nor a configuration."""
    (home / "tmp").mkdir(parents=True)
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{PROJECT / 'src'}{os.pathsep}{PROJECT}",
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "COLUMNS": "200",
    }


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """The program as spark-submit starts one: its configuration is a file beside it."""
    home = tmp_path / "driver"
    environment = _environment(home)
    (home / "config.yaml").write_text(CONFIGURATION + f"execution.checkpointing.savepoint-dir: {tmp_path}/sp\n")
    command = [sys.executable, PROGRAM, str(tmp_path / "job"), "3"]
    with subprocess.Popen(command, cwd=home, env=environment, stderr=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


class OtherHost:
    """The command line in a process with a home, a working directory and a directory for temporary files of its own."""

    def __init__(self, home: Path, uri: str) -> None:
        self._environment = _environment(home)
        self._home = home
        self._uri = uri

    def __call__(self, *arguments: str, code: int = 0) -> Ran:
        command = [sys.executable, "-m", "holdfast.cli", "-c", self._uri, *arguments]
        done = subprocess.run(
            command, cwd=self._home, env=self._environment, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == code, done.stderr or done.stdout
        return Ran(done.returncode, done.stdout, done.stderr)

    def running_job(self) -> str:
        """As soon as its driver has left its address, and the job runs."""
        listed = await_true(lambda: (told := self("list", "-r", "--json").json["jobs"]) and told, 60)
        return str(listed[0]["jid"])


@pytest.fixture
def host(tmp_path: Path, driver: subprocess.Popen[str]) -> OtherHost:
    checkpoints = tmp_path / "job" / "chk"
    await_true(lambda: driver.poll() is not None or list(checkpoints.glob("*/server/address")), 60)
    assert driver.poll() is None, driver.communicate()[1]
    return OtherHost(tmp_path / "other", checkpoints.as_uri())


@pytest.mark.slow
def test_a_job_is_listed_saved_and_stopped(host: OtherHost, driver: subprocess.Popen[str], tmp_path: Path) -> None:
    job = host.running_job()
    assert re.fullmatch(r".* : [0-9a-f]{32} : counting \(RUNNING\)", host("list", "-r").lines[2])
    path = host("savepoint").lines[2].removeprefix("Savepoint completed. Path: ")
    assert (Path(path) / "_metadata").exists()
    stopped = host("stop", job).lines[-1].removeprefix("Savepoint completed. Path: ")
    assert (Path(stopped) / "_metadata").exists()
    assert driver.wait(30) == 0
    assert published(tmp_path / "job" / "out") == counts_of(EPOCHS[:3])
    assert not list((tmp_path / "job" / "chk").glob("*/server/*")), "it ended in order"
    assert host("savepoint", job, code=1).err.startswith(f"Job {job} has ended: it is FINISHED")
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["tmp"], "nothing is kept on the other host"


@pytest.mark.slow
def test_a_driver_that_was_killed_is_told_as_dead(
    host: OtherHost, driver: subprocess.Popen[str], tmp_path: Path
) -> None:
    job = host.running_job()
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait(30)
    assert list((tmp_path / "job" / "chk").glob("*/server/address")), "nobody could remove it"
    listed = host("list", "-r")
    assert listed.lines == ["Waiting for response...", "No running jobs."]
    told = host("stop", job, code=1).err
    assert f"The driver of job {job} (process {driver.pid} on " in told
    assert "is gone: it was killed, and left its address behind" in told
    assert told in listed.err
