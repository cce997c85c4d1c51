"""Settings that every test shares."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# By name, for a clone that is not installed.
from holdfast.pytest_plugin import holdfast_spark  # noqa: F401 - fixtures are found by name
from tests.kit.class_archive import quick_start
from tests.kit.properties import load_profile
from tests.kit.spark_versions import Spark, expect

load_profile()

# For the drivers that tests start.
os.environ.setdefault("SPARK_SUBMIT_OPTS", quick_start())

#: A file system in memory. Whatever must be durable is synced, again and again, which costs nothing there.
MEMORY_DISK = Path("/dev/shm")


def in_memory() -> bool:
    return MEMORY_DISK.is_dir() and shutil.disk_usage(MEMORY_DISK).free > 4 << 30


#: Files that take longest, and mostly wait, first.
LONGEST = (
    "integration/test_cluster.py",
    "integration/test_lost_hosts.py",
    "integration/test_high_availability.py",
    "integration/test_submit_archive.py",
    "integration/test_hdfs_job.py",
    "integration/kafka/test_kafka_jobs.py",
    "docs/test_tour.py",
)

#: Fixtures that start Spark, or a server of its own.
OUTSIDE = {"holdfast_spark", "kafka", "postgres", "zookeeper", "s3_server", "gcs_bucket", "hdfs_cluster"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first, so that no process is left with a long one when the others have ended. What
    cannot pass on this Spark is expected to fail. Tests are marked that need more than their own process.
    """
    expect(items, Spark.here())
    for item in items:
        if OUTSIDE.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("outside")
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    tests = Path(__file__).parent
    places = {tests / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: (places.get(item.path, len(LONGEST)), item.path not in slow))


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


@pytest.fixture
def in_process() -> Iterator[Any]:
    """Jobs of the test run in this process, without Spark."""
    from holdfast.testing.in_process import InProcessEngine

    with InProcessEngine().installed() as engine:
        yield engine


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A ZooKeeper for all tests that leave it running; they keep apart by their root."""
    from tests.kit.zookeeper import ZooKeeperServer

    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server of S3, for all tests; they keep apart by their bucket."""
    from tests.kit.s3 import S3Server

    with S3Server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def s3(s3_server: Any) -> Iterator[str]:
    """The URI of a new bucket, which this process, and those that it starts, can reach."""
    bucket = f"test-{secrets.token_hex(8)}"
    s3_server.create_bucket(bucket)
    with s3_server.in_environment():
        yield f"s3://{bucket}"


@pytest.fixture(scope="session")
def gcs_bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The bucket of an emulator of Google Cloud Storage, for all tests; they keep apart by their folder."""
    from tests.kit import gcs

    with gcs.gcs_bucket(tmp_path_factory.mktemp("gcs")) as uri:
        yield uri


@pytest.fixture
def gs(gcs_bucket: str) -> str:
    """The URI of a folder that no other test knows."""
    return f"{gcs_bucket}/test-{secrets.token_hex(8)}"


@pytest.fixture(scope="session")
def hdfs_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """An HDFS for all tests; they keep apart by their folder."""
    from tests.kit.hdfs import HdfsCluster

    with HdfsCluster(tmp_path_factory.mktemp("hdfs")) as cluster:
        yield cluster


@pytest.fixture
def hdfs(hdfs_cluster: Any) -> str:
    """The URI of a folder that no other test knows."""
    return str(hdfs_cluster.uri(f"test-{secrets.token_hex(8)}"))


@pytest.fixture(scope="session")
def holdfast_spark_options(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Spark's files are where tests can look at them. What is shuffled are a few rows."""
    return {"spark.local.dir": str(tmp_path_factory.mktemp("spark")), "spark.sql.shuffle.partitions": "4"}


@pytest.fixture(scope="session")
def spark(holdfast_spark: Any) -> Any:  # noqa: F811 - a fixture asks by name
    """One local Spark application for all tests that need one in this process."""
    holdfast_spark.sparkContext.setLogLevel("OFF")
    return holdfast_spark
