"""The fixtures that come with the package: what they give, and that whoever does not use them does not notice."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points

import pytest

from holdfast.testing import environment, in_process
from tests.docs.blocks import PROJECT, blocks_of

pytest_plugins = ["pytester"]

PLUGIN = "holdfast.pytest_plugin"

#: pytester forgets what inner runs load, and numpy cannot be loaded twice.
LOADED = [environment, in_process]

#: Jobs of the inner tests run in this process.
WITHOUT_SPARK = """
    import pytest
    from holdfast.testing.in_process import InProcessEngine

    @pytest.fixture(scope="session")
    def holdfast_spark():
        with InProcessEngine().installed() as engine:
            yield engine

    @pytest.fixture
    def holdfast_options():
        return {"holdfast.epoch.idle-wait": "1 ms"}
"""


@pytest.fixture
def inner(pytester: pytest.Pytester) -> pytest.Pytester:
    # Where the package is installed, pytest finds the plugin by itself, and refuses to load it twice.
    by_name = "" if entry_points(group="pytest11", name="holdfast") else f"-p {PLUGIN}"
    pytester.makeini(f"[pytest]\naddopts = {by_name} -p no:cacheprovider --import-mode=importlib")
    pytester.makeconftest(WITHOUT_SPARK)
    return pytester


def test_the_entry_point_leads_to_the_plugin() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"holdfast": PLUGIN}
    importlib.import_module(PLUGIN)


def test_all_fixtures_bear_our_name() -> None:
    """So that they do not get in the way of those of other plugins, such as pytest-spark's ``spark_session``."""
    plugin = importlib.import_module(PLUGIN)
    made = [name for name, value in vars(plugin).items() if "FixtureFunctionDefinition" in type(value).__name__]
    assert made and all(name.startswith("holdfast_") for name in made)
    assert not [name for name in vars(plugin) if name.startswith("pytest_")]


def test_loading_it_loads_nothing_else() -> None:
    code = f"""
import pytest, sys
before = set(sys.modules)
import {PLUGIN}
new = {{name for name in set(sys.modules) - before if name.partition(".")[0] != "holdfast"}}
heavy = sorted(name for name in sys.modules if name.partition(".")[0] in ("pyspark", "py4j", "pyarrow", "numpy"))
ours = sorted(name for name in sys.modules if name.partition(".")[0] == "holdfast")
assert not heavy and not new and ours == ["holdfast", "{PLUGIN}"], (heavy, new, ours)
"""
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "src")}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def test_a_job_in_the_environment_of_a_test(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        """
        from holdfast.common import Types, WatermarkStrategy
        from holdfast.testing import TestSource

        def doubled(value):
            return value * 2

        def test_rows(holdfast_env, holdfast_checkpoint_dir):
            assert holdfast_env.get_parallelism() == 2
            source = TestSource([1, 2, TestSource.PAUSE, 3, TestSource.END], Types.LONG())
            rows = holdfast_env.from_source(source, WatermarkStrategy.no_watermarks(), "rows")
            with rows.map(doubled, Types.LONG()).execute_and_collect() as out:
                assert sorted(out) == [2, 4, 6]
            assert list(holdfast_checkpoint_dir.iterdir())

        def test_another_directory(holdfast_checkpoint_dir):
            assert not list(holdfast_checkpoint_dir.iterdir())
        """
    )
    inner.runpytest_inprocess().assert_outcomes(passed=2)


def test_a_failed_job_is_told_and_one_that_is_left_running_is_cancelled(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        """
        import pytest
        from holdfast.common import JobStatus, WatermarkStrategy
        from holdfast.errors import JobExecutionError
        from holdfast.testing import TestSource

        jobs = []

        def test_left(holdfast_env):
            rows = holdfast_env.from_source(TestSource([1]), WatermarkStrategy.no_watermarks(), "rows")
            rows.print()
            jobs.append(holdfast_env.execute_async())

        def test_cancelled():
            assert jobs[0].get_job_status().result() is JobStatus.CANCELED

        def test_failed(holdfast_env):
            source = TestSource([1, TestSource.ABORT])
            holdfast_env.from_source(source, WatermarkStrategy.no_watermarks(), "rows").print()
            with pytest.raises(JobExecutionError, match="the source fails here once"):
                holdfast_env.execute()
        """
    )
    inner.runpytest_inprocess().assert_outcomes(passed=3)


@pytest.mark.slow
def test_the_test_of_the_documentation_runs_on_spark(inner: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a project whose test modules workers cannot import."""
    monkeypatch.setenv("PYTHONPATH", str(PROJECT / "src"))
    inner.makeconftest("")
    page = PROJECT / "docs" / "how-to" / "test-a-function.md"
    (shown,) = (block for block in blocks_of(page) if "holdfast_env" in block.code)
    shared = """
def test_the_session_is_shared(holdfast_spark, holdfast_env):
    assert holdfast_spark.range(3).count() == 3
"""
    inner.makepyfile(test_shown=shown.code + shared)
    inner.runpytest_subprocess(timeout=180).assert_outcomes(passed=2)
