"""A job whose process is killed while files of its database are stored, deleted or restored; and a long one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.faults import FaultPlan
from tests.state.stores import LMDB_IMAGE
from tests.testing.killed_job import KilledJob

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def run(directory: Path, steps: int, faults: FaultPlan | None = None, backend: str = "rocksdb") -> int:
    """The program's exit code. What it leaves on its host goes with the directory."""
    local = directory / "tmp"
    local.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "TMPDIR": str(local), **({} if faults is None else faults.environment)}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), *sys.path])
    program = [sys.executable, str(ROOT / "tests/testing/killed_job.py"), str(directory), str(steps), backend]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in (0, -9), done.stderr[-3000:]
    return done.returncode


@pytest.mark.parametrize(
    ("point", "hit"),
    [("snapshot.write", 14), ("snapshot.write", 31), ("snapshot.delete", 1), ("snapshot.delete", 8)],
)
def test_rocksdb_killed_while_files_are_stored_or_deleted(tmp_path: Path, point: str, hit: int) -> None:
    faults = FaultPlan(tmp_path / "faults")
    trigger = faults.add(point, "kill", hit=hit)
    assert run(tmp_path, 10, faults) == -9
    assert faults.reached(trigger) is not None
    assert run(tmp_path, 11) == 0


def test_rocksdb_killed_while_files_are_restored(tmp_path: Path) -> None:
    assert run(tmp_path, 5) == 0
    faults = FaultPlan(tmp_path / "faults")
    trigger = faults.add("rocksdb.restoring", "kill", hit=3)
    assert run(tmp_path, 8, faults) == -9
    assert faults.reached(trigger) is not None
    assert run(tmp_path, 8) == 0


@pytest.mark.parametrize("hit", [1, 2, 9])
def test_lmdb_killed_while_files_are_stored(tmp_path: Path, hit: int) -> None:
    faults = FaultPlan(tmp_path / "faults")
    trigger = faults.add("snapshot.write", "kill", hit=hit)
    assert run(tmp_path, 10, faults, LMDB_IMAGE) == -9
    assert faults.reached(trigger) is not None
    assert run(tmp_path, 11, backend=LMDB_IMAGE) == 0


@pytest.mark.parametrize("hit", [1, 2])
def test_lmdb_killed_while_a_file_is_restored(tmp_path: Path, hit: int) -> None:
    """Before its only piece is written, and before it is put into its place."""
    assert run(tmp_path, 3, backend=LMDB_IMAGE) == 0
    faults = FaultPlan(tmp_path / "faults")
    trigger = faults.add("lmdb.restoring", "kill", hit=hit)
    assert run(tmp_path, 5, faults, LMDB_IMAGE) == -9
    assert faults.reached(trigger) is not None
    assert run(tmp_path, 5, backend=LMDB_IMAGE) == 0


def test_a_thousand_checkpoints_on_rocksdb_leave_what_retained_ones_reference(tmp_path: Path) -> None:
    job = KilledJob(tmp_path, "rocksdb")
    for step in range(1000):
        job.run_step()
        if step % 100 == 50:
            assert not job.orphans()
    assert not job.orphans()
    assert len(job.store.all()) == 3
    job.check()
    job.harness.close()
