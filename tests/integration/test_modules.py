"""Programs of several modules, started as their users start them: from another folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.driver import PROJECT

pytestmark = pytest.mark.slow

MODULES = {
    "prices.py": "def double(value):\n    return 2 * value\n",
    "shop/__init__.py": "",
    "shop/sales.py": "class Adds:\n    def __init__(self, number):\n        self.number = number\n\n"
    "    def __call__(self, value):\n        return self.number + value\n",
}
MAIN = """
import json, sys
import prices
from shop.sales import Adds
from holdfast.common import Configuration
from holdfast.datastream import StreamExecutionEnvironment

given = json.loads(sys.argv[1])
if given["own session"]:
    from pyspark.sql import SparkSession
    builder = SparkSession.builder.master(given["own session"]).config("spark.ui.enabled", "false")
    builder.getOrCreate()
env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(given["settings"]))
for file in given["files"]:
    env.add_python_file(file)
env.set_parallelism(1)
env.enable_checkpointing(100)
env.from_collection([1, 2, 3]).map(lambda value: prices.double(value)).map(Adds(100)).print()
env.execute("modules")
"""


def run(
    directory: Path,
    own_session: str = "",
    files: tuple[str, ...] = (),
    settings: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """The program of ``app``, started in another folder."""
    app, elsewhere = directory / "app", directory / "elsewhere"
    (app / "shop").mkdir(parents=True)
    elsewhere.mkdir()
    for name, content in {**MODULES, "main.py": MAIN}.items():
        (app / name).write_text(content)
    given = {"own session": own_session, "files": [str(app / file) for file in files], "settings": settings or {}}
    environment = {
        **os.environ,
        "PYTHONPATH": str(PROJECT / "src"),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    return subprocess.run(
        [sys.executable, "../app/main.py", json.dumps(given)],
        cwd=elsewhere,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def rows(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted(done.stdout.split())


def test_workers_of_a_local_session_find_modules_beside_the_program(tmp_path: Path) -> None:
    assert rows(run(tmp_path, settings={"spark.master": "local[1]"})) == ["102", "104", "106"]


def test_modules_that_workers_lack_are_named_and_the_job_is_not_restarted(tmp_path: Path) -> None:
    """The program makes its own session, and checkpoints let a job restart without end."""
    done = run(tmp_path, own_session="local-cluster[1,1,1024]")
    assert done.returncode != 0
    assert "failed in attempt 1 and is not restarted" in done.stderr
    told = "UnfitExecutorError: Executors cannot import modules that the program's functions are in: prices, shop.sales"
    assert told in done.stderr
    assert "env.add_python_file(path)" in done.stderr


def test_modules_that_were_added_are_there(tmp_path: Path) -> None:
    done = run(tmp_path, own_session="local-cluster[1,1,1024]", files=("prices.py", "shop"))
    assert rows(done) == ["102", "104", "106"]
