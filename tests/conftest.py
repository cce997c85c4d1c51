"""Settings that every test shares."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# By name, for a clone that is not installed.
from holdfast.pytest_plugin import holdfast_spark  # noqa: F401 - fixtures are found by name
from tests.kit.class_archive import quick_start

# Machines that run the suite share their cores, so the time of a single example says nothing.
settings.register_profile("holdfast", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("holdfast")

# For the drivers that tests start.
os.environ.setdefault("SPARK_SUBMIT_OPTS", quick_start())

#: A file system in memory. Whatever must be durable is synced, again and again, which costs nothing there.
MEMORY_DISK = Path("/dev/shm")


def in_memory() -> bool:
    return MEMORY_DISK.is_dir() and shutil.disk_usage(MEMORY_DISK).free > 4 << 30


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first, so that no process is left with a long one when the others have ended."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Local stores of tests on rocksdb, which syncs them when it opens and closes a database, are in memory."""
    before = tempfile.tempdir
    if "rocksdb" in item.name and in_memory():
        tempfile.tempdir = str(MEMORY_DISK)
    try:
        return (yield)
    finally:
        tempfile.tempdir = before


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory, where there is enough of it; else pytest's own."""
    if not in_memory():
        yield tmp_path
        return
    # Threads that a test has left may still write to it.
    with tempfile.TemporaryDirectory(prefix="holdfast-test-", dir=MEMORY_DISK, ignore_cleanup_errors=True) as directory:
        yield Path(directory)
        databases = sys.modules.get("holdfast.state.rocksdb.databases")
        if databases is not None:
            # Their keeper may still write to those that a test left open.
            databases.close_all()


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A ZooKeeper for all tests that leave it running; they keep apart by their root."""
    from tests.kit.zookeeper import ZooKeeperServer

    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture(scope="session")
def holdfast_spark_options(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Spark's files are where tests can look at them."""
    return {"spark.local.dir": str(tmp_path_factory.mktemp("spark"))}


@pytest.fixture(scope="session")
def spark(holdfast_spark: Any) -> Any:  # noqa: F811 - a fixture asks by name
    """One local Spark application for all tests that need one in this process."""
    holdfast_spark.sparkContext.setLogLevel("OFF")
    return holdfast_spark
