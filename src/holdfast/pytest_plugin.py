"""Fixtures for tests of programs. pytest loads them by itself where Holdfast is installed.

``holdfast_spark``           one local Spark session for all tests of the run, started by the first that wants it
``holdfast_checkpoint_dir``  an empty directory for the checkpoints of one test
``holdfast_env``             an environment in that session with these checkpoints; at the end its jobs are cancelled

``holdfast_spark_options`` and ``holdfast_options`` are what a project overrides to change their settings.

Every run of pytest imports this module, whatever it tests: it imports nothing of Holdfast, nor Spark, before a test
asks for a fixture.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from holdfast.datastream import StreamExecutionEnvironment

# Its suites say what they saw, as the tests of a project do.
pytest.register_assert_rewrite("holdfast.testing.contracts")


@pytest.fixture(scope="session")
def holdfast_spark_options() -> Mapping[str, str]:
    """Settings of Spark, ``spark.*``, above those of ``holdfast_spark``."""
    return {}


@pytest.fixture(scope="session")
def holdfast_spark(holdfast_spark_options: Mapping[str, str]) -> Iterator[Any]:
    """A local Spark session with two cores. One that is active already, of another plugin's, is used and left alone."""
    from holdfast.spark.session import session_for_a_while

    local = {"spark.master": "local[2]", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        with session_for_a_while({**local, **holdfast_spark_options}) as session:
            yield session


@pytest.fixture
def holdfast_checkpoint_dir(tmp_path: Path) -> Path:
    """An empty directory."""
    directory = tmp_path / "checkpoints"
    directory.mkdir()
    return directory


@pytest.fixture
def holdfast_options() -> Mapping[str, str]:
    """Settings above those of ``holdfast_env``."""
    return {}


@pytest.fixture
def holdfast_env(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    holdfast_spark: Any,
    holdfast_checkpoint_dir: Path,
    holdfast_options: Mapping[str, str],
) -> Iterator[StreamExecutionEnvironment]:
    """An environment of parallelism 2 with a checkpoint every 100 ms. A job that fails is not restarted, so that the
    test sees why.
    """
    from holdfast.testing.environment import environment_for_a_while

    settings = {
        "parallelism.default": "2",
        "execution.checkpointing.interval": "100 ms",
        "execution.checkpointing.dir": str(holdfast_checkpoint_dir),
        "execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints"),
        "holdfast.state.local-dir": str(tmp_path / "local"),
        "restart-strategy.type": "none",
        **holdfast_options,
    }
    with environment_for_a_while(settings, getattr(request, "module", None)) as environment:
        yield environment
