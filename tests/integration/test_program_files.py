"""Archives, packages, data files and modules reach the tasks of real Spark applications."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.runtime.requirements import packages_folder
from tests.integration.files_of_program import EXPECTED, command, printed, write_files
from tests.kit.driver import PROJECT

pytestmark = pytest.mark.slow

CLUSTER = "local-cluster[2,1,1024]"


def run(directory: Path, started: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(PROJECT / "src"),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        # No job of another test has installed the packages, and pip has nothing of its own.
        "PIP_NO_CACHE_DIR": "1",
        "PIP_INDEX_URL": "http://127.0.0.1:9/no-network",
    }
    return subprocess.run(
        started, cwd=directory, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def rows(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted(printed(done.stdout))


def settings(tmp_path: Path, **more: str) -> dict[str, str]:
    return {"holdfast.state.local-dir": str(tmp_path / "local"), "restart-strategy.type": "none", **more}


@pytest.mark.parametrize("master", [CLUSTER, "local[2]"])
def test_everything_that_a_program_brings_is_there(tmp_path: Path, master: str) -> None:
    app = write_files(tmp_path / "app")
    done = run(app, command(settings(tmp_path), own_session=master))
    assert rows(done) == EXPECTED
    installed = [path for path in packages_folder(str(tmp_path / "local")).iterdir() if path.is_dir()]
    assert len(installed) == 1, "two executors of one host install them once"


def test_by_the_command_line(tmp_path: Path) -> None:
    app = write_files(tmp_path / "app")
    flags = ["-pyfs", "brought_module.py", "-pyarch", "brought.zip#unpacked", "-pyreq", "requirements.txt#wheels"]
    told = command(settings(tmp_path, **{"spark.master": CLUSTER}), by_command_line=True)
    assert rows(run(app, [sys.executable, "-m", "holdfast.cli", "run", *flags, *told[1:]])) == EXPECTED


PYTHON = """
import sys
from holdfast.common import Configuration, Types
from holdfast.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict({"spark.master": sys.argv[1]}))
env.add_python_archive("python.zip", "venv")
env.set_python_executable("venv/bin/python")
env.set_parallelism(1)
for _ in range(2):
    env.from_collection([1], Types.LONG()).map(lambda one: "PYTHON " + __import__("os").environ["THAT"]).print()
    env.execute()
"""


@pytest.mark.parametrize("master", [CLUSTER, "local[1]"])
def test_the_python_that_comes_with_an_archive_runs_the_tasks(tmp_path: Path, master: str) -> None:
    import zipfile

    script = zipfile.ZipInfo("bin/python")
    script.external_attr = 0o100755 << 16
    with zipfile.ZipFile(tmp_path / "python.zip", "w") as archive:
        archive.writestr(script, f'#!/bin/sh\nTHAT="$0" exec {sys.executable} "$@"\n')
    (tmp_path / "main.py").write_text(PYTHON)
    done = run(tmp_path, [sys.executable, "main.py", master])
    found = [line for line in done.stdout.splitlines() if "PYTHON " in line]
    assert done.returncode == 0 and len(found) == 2, done.stdout + done.stderr
    assert all(line.endswith("venv/bin/python") for line in found)


def test_packages_that_pip_cannot_have_end_the_job_at_once(tmp_path: Path) -> None:
    app = write_files(tmp_path / "app")
    (app / "requirements.txt").write_text("not_to_be_had==3.1\n")
    done = run(app, command(settings(tmp_path, **{"spark.master": CLUSTER, "restart-strategy.type": "fixed-delay"})))
    assert done.returncode != 0
    assert "failed in attempt 1 and is not restarted" in done.stderr
    assert "pip cannot install the program's requirements" in done.stderr and "not_to_be_had" in done.stderr


def test_an_application_that_runs_takes_neither_jars_nor_another_python(spark: Any, tmp_path: Path) -> None:
    from holdfast.datastream import StreamExecutionEnvironment
    from holdfast.errors import ProgramError

    jar = tmp_path / "functions.jar"
    jar.write_bytes(b"")
    for call, told in (
        (lambda env: env.add_jars(f"file://{jar}"), "started without jars .*functions.jar.*spark.jars"),
        (lambda env: env.add_classpaths("/opt/classes"), "started without class paths .*extraClassPath"),
        (lambda env: env.set_python_executable("/opt/python"), "asks for /opt/python .*spark.pyspark.python"),
    ):
        env = StreamExecutionEnvironment.get_execution_environment()
        call(env)
        env.from_collection([1]).print()
        with pytest.raises(ProgramError, match=f"(?s){told}"):
            env.execute()
