"""Settings of sessions that Holdfast starts itself."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.spark.session import _sockets, _takes_our_daemon


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


def test_spark_submit_may_have_holdfast_for_tasks_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    assert not _takes_our_daemon({"spark.master": "local[*]"})


SOCKET_DIRECTORY = "spark.python.unix.domain.socket.dir"


@pytest.mark.parametrize(
    ("settings", "temporary", "directory"),
    [
        ({"spark.master": "local[*]"}, "/tmp", "/tmp"),
        ({"spark.master": "local[*]"}, "/" + "d" * 60, "/" + "d" * 60),
        ({"spark.master": "local[*]"}, "/" + "d" * 61, None),
        ({"spark.master": "local[*]", SOCKET_DIRECTORY: "/run"}, "/" + "d" * 61, "/run"),
        ({"spark.master": "spark://host:7077"}, "/tmp", None),
    ],
)
def test_where_tasks_talk_to_python_through_files(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], temporary: str, directory: str | None
) -> None:
    monkeypatch.setattr("tempfile.tempdir", temporary)
    assert _sockets(settings).get(SOCKET_DIRECTORY) == directory


def test_a_session_of_ours_is_compiled_quickly(spark: Any) -> None:
    assert spark.sparkContext.getConf().get("spark.driver.defaultJavaOptions") == "-XX:TieredStopAtLevel=1"


def test_a_session_of_ours_talks_to_python_through_files(spark: Any) -> None:
    assert spark.sparkContext.getConf().get("spark.python.unix.domain.socket.enabled") == "true"
