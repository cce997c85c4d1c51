"""What an attempt starts from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import CheckpointError, RestoreError
from holdfast.graph.job_graph import build_job_graph, operator_id_of_uid
from holdfast.job.checkpoints import JobCheckpoints
from holdfast.job.job_of_program import plan_job_of
from holdfast.job.restore_point import RestorePoint
from holdfast.types.clock import wall_clock
from tests.graph.evolving_program import COUNTER, Version
from tests.graph.restored_jobs import StoredJob, environment

FIRST = Version()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The checkpoint directory of a job that ended with one checkpoint."""
    job = StoredJob(environment(FIRST), tmp_path)
    job.run()
    job.checkpoint(1)
    job.close()
    return tmp_path / "checkpoints"


def selected(version: Version, directory: Path, **settings: Any) -> RestorePoint:
    env = environment(version, **{"execution.checkpointing.dir": str(directory), **settings})
    graph = build_job_graph(env.get_stream_graph(), "job", "job", env.job_settings(), 2)
    checkpoints = JobCheckpoints(plan_job_of(graph, env.get_stream_graph(), "store"), wall_clock)
    try:
        point = checkpoints.select()
        assert point is not None and not point.foreign
        return point
    finally:
        checkpoints.leadership.release()


def test_what_is_stored_under_its_own_id_can_be_built_on(directory: Path) -> None:
    point = selected(FIRST, directory)
    assert not point.relabelled
    assert {record.name for record in point.operators} >= {"rows", COUNTER, "buffer"}


def test_what_was_taken_over_from_another_id_cannot(directory: Path) -> None:
    version = replace(FIRST, counter_uid="renamed", counter_uid_hash=operator_id_of_uid(COUNTER))
    point = selected(version, directory)
    assert point.relabelled
    assert operator_id_of_uid("renamed") in {record.operator_id for record in point.operators}


def test_a_program_that_does_not_fit_is_refused(directory: Path) -> None:
    with pytest.raises(RestoreError, match="sets maximum parallelism 7"):
        selected(replace(FIRST, counter_max_parallelism=7), directory)


def test_the_snapshot_a_job_once_started_from_may_be_gone(directory: Path, tmp_path: Path) -> None:
    gone = {"execution.state-recovery.path": str(tmp_path / "savepoint-gone")}
    assert selected(FIRST, directory, **gone).metadata.checkpoint_id == 1
    with pytest.raises(CheckpointError, match="savepoint-gone is not a completed checkpoint"):
        selected(FIRST, tmp_path / "without checkpoints", **gone)
