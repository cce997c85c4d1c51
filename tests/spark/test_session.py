"""Settings of sessions that Holdfast starts itself."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.spark.run_folder import run_folder
from holdfast.spark.session import _choose_python, _sockets, _takes_our_daemon, driver_host


@pytest.mark.parametrize(
    ("settings", "takes"),
    [
        ({"spark.master": "local[*]"}, True),
        ({"spark.master": "spark://host:7077"}, False),
        ({"spark.master": "local[2]", "spark.python.worker.killOnIdleTimeout": "true"}, False),
        ({"spark.master": "local[2]", "spark.sql.execution.pyspark.udf.killOnIdleTimeout": "true"}, False),
        ({"spark.master": "local[2]", "spark.sql.execution.pyspark.udf.killOnIdleTimeout": "false"}, True),
    ],
)
def test_who_takes_our_daemon(monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], takes: bool) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    assert _takes_our_daemon(settings) == takes


@pytest.mark.parametrize("content", ["#!/bin/sh\nexit 1\n", f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n', None])
def test_the_python_of_workers_must_have_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str | None
) -> None:
    """One that has no packages, one that does not run, and none at all."""
    python = tmp_path / "python"
    if content is not None:
        python.write_text(content)
        python.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))
    assert not _takes_our_daemon({"spark.master": "local[*]"})


def test_a_pyspark_that_the_daemon_cannot_run_tasks_with(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import pyspark.daemon\npyspark.daemon.worker = lambda sock: 0\n")
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    assert not _takes_our_daemon({"spark.master": "local[*]"})
    assert "ours cannot be used: pyspark.daemon.worker, Broadcast or" in caplog.text


def test_spark_submit_may_have_holdfast_for_tasks_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    assert not _takes_our_daemon({"spark.master": "local[*]"})


@pytest.mark.parametrize(
    ("settings", "variable", "python"),
    [
        ({"spark.pyspark.python": "/configured"}, "/environment", "/configured"),
        ({}, "/environment", "/environment"),
        ({}, "", sys.executable),
    ],
)
def test_the_python_of_workers(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], variable: str, python: str
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", variable)
    _choose_python(settings)
    assert os.environ["PYSPARK_PYTHON"] == python


SOCKET_DIRECTORY = "spark.python.unix.domain.socket.dir"


def test_tasks_talk_to_python_through_files_of_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/tmp")
    folder = Path(_sockets({"spark.master": "local[*]"})[SOCKET_DIRECTORY])
    assert folder == run_folder() and folder.parent.parent == Path("/tmp")


def test_not_through_files_whose_names_spark_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("d" * 61)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    assert _sockets({"spark.master": "local[*]"}) == {}
    assert _sockets({"spark.master": "local[*]", SOCKET_DIRECTORY: "/run"})[SOCKET_DIRECTORY] == "/run"


def test_executors_of_a_cluster_choose_their_own() -> None:
    assert _sockets({"spark.master": "spark://host:7077"}) == {}


def test_the_compilers_of_the_jvm_are_left_as_they_are(spark: Any) -> None:
    conf = spark.sparkContext.getConf()
    assert not [key for key, value in conf.getAll() if "Java" in key and "Tiered" in value]


def test_a_session_of_ours_talks_to_python_through_files(spark: Any) -> None:
    assert spark.sparkContext.getConf().get("spark.python.unix.domain.socket.enabled") == "true"


def test_the_name_by_which_executors_find_the_driver(spark: Any) -> None:
    assert driver_host(spark) == spark.conf.get("spark.driver.host") != ""
