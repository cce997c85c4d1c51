"""Spark Connect is refused by name, before anything is started."""

from __future__ import annotations

import subprocess
import sys

import pytest

from holdfast.errors import ConfigurationError
from holdfast.spark.connect import refuse_connect, refuse_connect_settings


@pytest.mark.parametrize(
    ("settings", "environment", "seen"),
    [
        ({"spark.remote": "sc://host"}, {}, "spark.remote=sc://host"),
        ({"spark.api.mode": "Connect"}, {}, "spark.api.mode=connect"),
        ({}, {"SPARK_REMOTE": "sc://host:15002"}, "SPARK_REMOTE=sc://host:15002"),
    ],
)
def test_a_session_that_would_be_one_of_connect(
    settings: dict[str, str], environment: dict[str, str], seen: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"Spark Connect \\({seen}\\).*classic sessions only"):
        refuse_connect_settings(settings, environment)


def test_a_classic_session_is_none() -> None:
    refuse_connect_settings({"spark.master": "local[2]", "spark.api.mode": "classic"}, {})
    refuse_connect(None)
    refuse_connect(object())


def test_a_data_frame_of_connect() -> None:
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe"})()
    with pytest.raises(ConfigurationError, match="DataFrame is one of Spark Connect"):
        refuse_connect(frame)


_PROGRAM = """
from holdfast.common import Types
from holdfast.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1], Types.LONG()).print()
env.execute()
"""


def test_a_whole_program_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:1")
    ran = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode != 0
    assert "ConfigurationError: The session would be of Spark Connect (SPARK_REMOTE=sc://127.0.0.1:1)" in ran.stderr
