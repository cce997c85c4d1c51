"""The probe, in this process and in one that has no Holdfast."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import sys
import sysconfig
from importlib.metadata import requires
from pathlib import Path

import cloudpickle
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import holdfast
from holdfast.doctor.facts import Request
from holdfast.doctor.hosts import host_facts, look_here, probe_task
from holdfast.doctor.needed_packages import packages_for
from holdfast.storage.check import leave_marker

#: Reads a pickled function and prints what it gives. Nothing but packages of others can be imported there.
WITHOUT_HOLDFAST = """
import pickle, sys
sys.path.append({packages!r})
try:
    import holdfast
except ImportError:
    print(pickle.load(sys.stdin.buffer)([]))
"""


def test_this_process(tmp_path: Path) -> None:
    storage, local = str(tmp_path / "storage"), str(tmp_path / "new" / "state")
    facts = look_here(Request((storage,), None, local, str(tmp_path)))
    assert (facts.host, facts.python) == (socket.gethostname(), platform.python_version())
    assert facts.import_failure is None
    assert facts.packages["holdfast"] == holdfast.__version__
    assert None not in facts.packages.values()
    (tried,) = facts.storages
    assert (tried.uri, tried.failure, tried.access) == (storage, None, None)
    state = facts.directories[0]
    assert (state.path, state.purpose, state.failure) == (local, "holdfast.state.local-dir", None)
    assert 0 < state.free <= state.total
    assert not (tmp_path / "new").exists()


def test_every_package_that_holdfast_requires_is_looked_for() -> None:
    """PySpark finds setuptools where it needs it."""
    required = {canonicalize_name(Requirement(each).name) for each in requires("holdfast") or () if "extra" not in each}
    assert required - {"setuptools"} == look_here(Request()).packages.keys() - {"holdfast"}


@pytest.mark.parametrize(
    ("backend", "storages", "expected"),
    [
        ("lmdb", ["/local"], ()),
        ("rocksdb", ["hdfs://host/path"], ("rocksdict",)),
        ("rocksdb", ["s3a://bucket/a", "gs://bucket/b"], ("boto3", "google-auth", "requests", "rocksdict")),
    ],
)
def test_packages_that_settings_ask_for(backend: str, storages: list[str], expected: tuple[str, ...]) -> None:
    assert packages_for(backend, storages) == expected
    assert set(expected) <= look_here(Request(packages=expected)).packages.keys()


def test_directories_that_spark_was_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    told = f"{tmp_path}/a,{tmp_path}/b"
    found = [one.path for one in look_here(Request(spark_directories=told)).directories]
    assert found[1:] == told.split(",")
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}/blockmgr-0c6f")
    assert look_here(Request(spark_directories=told)).directories[1].path == str(tmp_path)


def test_a_directory_of_state_that_others_can_write_to(tmp_path: Path) -> None:
    (tmp_path / "local").mkdir()
    (tmp_path / "local").chmod(0o777)
    found = look_here(Request(state_directory=str(tmp_path / "local"))).directories[0]
    assert found.failure == "its rights are 777, so that other users can write to it, and tasks refuse it"


def test_a_directory_that_cannot_be_written() -> None:
    found = look_here(Request(state_directory="/proc/self/nowhere")).directories[0]
    assert found.failure is not None and "/proc" in found.failure


def test_storages_that_fail(tmp_path: Path) -> None:
    """One that is a file, and one that is not what the driver has under the name."""
    (tmp_path / "file").touch()
    mine, other = str(tmp_path / "mine"), str(tmp_path / "other")
    marker = leave_marker(mine)
    facts = look_here(Request((str(tmp_path / "file"), mine, other), {mine: marker, other: marker}))
    blocked, shared, alone = (one.failure for one in facts.storages)
    assert blocked is not None and "could not write a file" in blocked
    assert shared is None
    assert alone is not None and "use a file system that all hosts share" in alone


def test_a_process_without_holdfast() -> None:
    script = WITHOUT_HOLDFAST.format(packages=sysconfig.get_path("purelib"))
    # Without site, which would add Holdfast where it is installed as a link to its sources.
    ran = subprocess.run(
        [sys.executable, "-S", "-E", "-c", script],
        input=cloudpickle.dumps(probe_task(Request(("/storage",)), 0.0)),
        capture_output=True,
        timeout=60,
        cwd="/",
    )
    assert ran.returncode == 0, ran.stderr.decode()
    (seen,) = eval(ran.stdout.decode())
    facts = host_facts(seen["facts"])
    assert facts.packages["holdfast"] is None
    assert facts.import_failure == "ModuleNotFoundError: No module named 'holdfast'"
    assert facts.packages["pyarrow"] == look_here(Request()).packages["pyarrow"]
    assert facts.storages == ()
    assert facts.process == os.getpid()
