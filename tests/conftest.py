"""Settings that every test shares."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Machines that run the suite share their cores, so the time of a single example says nothing.
settings.register_profile("holdfast", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("holdfast")


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One local Spark application for all tests that need one in this process."""
    from holdfast.spark.session import obtain_session
    from tests.kit.driver import python_path

    # Workers import the functions of test modules by name.
    os.environ["PYTHONPATH"] = python_path()
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    session = obtain_session(
        {"spark.master": "local[2]", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
