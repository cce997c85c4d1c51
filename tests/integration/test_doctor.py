"""``holdfast doctor`` on applications that it starts, and on a cluster of which one host lacks something."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyspark
import pytest

import holdfast.cli.__main__
from holdfast.doctor.application_settings import DAEMON_SETTING
from tests.kit.cluster import StandaloneCluster
from tests.kit.driver import PROJECT, python_path

pytestmark = pytest.mark.slow

PROGRAM = """
from pyspark.sql import SparkSession
from holdfast.datastream import StreamExecutionEnvironment

spark = SparkSession.builder.config("spark.locality.wait", "7s").getOrCreate()
env = StreamExecutionEnvironment.get_execution_environment()
env.from_data_frame(spark.range(3)).print()
env.execute()
"""

#: The Python of executors. On the second worker it has the packages of others, and no Holdfast.
PYTHON = """#!/bin/sh
case "$TMPDIR" in
*worker-1-tmp*)
  PYTHONPATH=$(echo "$PYTHONPATH" | tr : '\\n' | grep -v '^{project}' | paste -s -d : -):{packages}
  export PYTHONPATH
  exec {python} -S "$@" ;;
esac
exec {python} "$@"
"""


_ENVIRONMENT = {"PYTHONPATH": python_path(), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}


def doctor(
    directory: Path, *arguments: str, command: tuple[str, ...] = (sys.executable, "-m", "holdfast.cli"), code: int = 0
) -> dict[str, dict[str, str]]:
    """Findings by their subject."""
    ran = subprocess.run(
        [*command, "doctor", "--json", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=directory,
        env={**os.environ, **_ENVIRONMENT},
    )
    assert ran.returncode == code, ran.stdout + ran.stderr[-6000:]
    document: dict[str, Any] = json.loads(ran.stdout)
    return {finding["subject"]: finding for finding in document["findings"]}


def options(settings: Mapping[str, str]) -> list[str]:
    return [f"-D{key}={value}" for key, value in settings.items()]


@pytest.fixture(scope="module")
def cluster() -> Iterator[StandaloneCluster]:
    with StandaloneCluster(workers=2) as running:
        yield running


@pytest.fixture
def python(tmp_path: Path) -> str:
    file = tmp_path / "python"
    packages = sysconfig.get_path("purelib")
    file.write_text(PYTHON.format(project=PROJECT, packages=packages, python=sys.executable))
    file.chmod(0o755)
    return str(file)


def test_an_application_with_speculation(tmp_path: Path) -> None:
    found = doctor(tmp_path, "-Dspark.master=local[2]", "-Dspark.speculation=true", code=1)
    assert found["spark.speculation"]["level"] == "RED"
    assert [subject for subject, finding in found.items() if finding["level"] == "RED"] == ["spark.speculation"]


def test_the_session_of_a_program_under_spark_submit(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    submit = (
        str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", "local[2]",
        "--conf", "spark.python.worker.reuse=false", holdfast.cli.__main__.__file__,
    )
    found = doctor(tmp_path, "program.py", command=submit)
    assert found["executors"]["seen"] == "the driver (local[2])"
    assert found["spark.python.worker.reuse"]["level"] == "YELLOW"
    assert found["spark.speculation"]["level"] == "GREEN"


def test_a_cluster_that_is_fit(cluster: StandaloneCluster, tmp_path: Path) -> None:
    found = doctor(tmp_path, *options(cluster.settings), f"-Dexecution.checkpointing.dir={tmp_path}/checkpoints")
    assert found["executors"] == {
        "level": "GREEN", "subject": "executors", "seen": "2 on 1 host, all reached the driver", "advice": "",
    }
    assert "from the driver and 2 executors" in found["execution.checkpointing.dir"]["seen"]
    assert found[DAEMON_SETTING]["level"] == "GREEN"
    assert found["spark.network.timeoutInterval"]["level"] == "YELLOW"
    pythons = [finding for subject, finding in found.items() if subject.startswith("executor ")]
    assert [finding["level"] for finding in pythons] == ["GREEN", "GREEN"]


def test_a_cluster_of_which_one_host_lacks_holdfast(cluster: StandaloneCluster, tmp_path: Path, python: str) -> None:
    settings = {**cluster.settings, "spark.pyspark.python": python}
    # With it the host would run no Python at all.
    del settings[DAEMON_SETTING]
    found = doctor(tmp_path, *options(settings), code=1)
    levels = sorted(finding["level"] for subject, finding in found.items() if subject.startswith("executor "))
    assert levels == ["GREEN", "RED"]
    (lacking,) = [finding for finding in found.values() if finding["level"] == "RED"]
    assert lacking["seen"] == "cannot import Holdfast: ModuleNotFoundError: No module named 'holdfast'"
    assert "Install Holdfast" in lacking["advice"]


def test_a_daemon_that_one_host_does_not_find(cluster: StandaloneCluster, tmp_path: Path, python: str) -> None:
    found = doctor(tmp_path, *options({**cluster.settings, "spark.pyspark.python": python}), code=1)
    failed = found["Python tasks"]
    assert failed["level"] == "RED" and "executor" in failed["seen"]
    assert f"{DAEMON_SETTING} needs Holdfast in that Python" in failed["advice"]
