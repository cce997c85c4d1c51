"""Jobs that are upgraded with migrations, without Spark: what is told, and what is left when a migration fails."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from holdfast.checkpoint.storage import open_snapshot
from holdfast.errors import JobExecutionError, StateMigrationError
from holdfast.state.handles import SnapshotKind
from holdfast.testing.in_process import InProcessEngine
from tests.integration.migrated_program import as_text, build
from tests.integration.programs import environment, published
from tests.job.counting import settings

KEYS = 40
ROWS = [(key, 0) for key in range(KEYS)]
RETAINED = {"execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION"}
FULL_FILES = {"execution.checkpointing.data-inline-threshold": "0"}


def run_first(tmp_path: Path, rounds: int, **given: str) -> Path:
    """The first version until it has counted ``rounds`` rows of each key; its newest checkpoint."""
    env = environment(**settings(tmp_path, **RETAINED, **FULL_FILES, **given))
    build(env, tmp_path, [ROWS] * rounds)
    client = env.execute_async("job")
    while len(published(tmp_path / "out")) < rounds * KEYS:
        assert client.get_job_status().result().name not in ("FAILED", "FINISHED")
    client.cancel().result(30)
    return max((tmp_path / "chk/job").glob("chk-*"), key=lambda path: int(path.name.removeprefix("chk-")))


def start_second(tmp_path: Path, rounds: int, migrate: Any = as_text, parallelism: int = 2, **given: str) -> Any:
    env = environment(**settings(tmp_path, **RETAINED, **FULL_FILES, **given))
    build(env, tmp_path, [ROWS] * rounds, migrate, parallelism, ends=True)
    return env.execute_async("job")


@pytest.mark.parametrize("backend", ["heap", "lmdb", "rocksdb"])
@pytest.mark.parametrize("parallelism", [2, 3])
def test_an_upgraded_job_goes_on_exactly(
    in_process: InProcessEngine, tmp_path: Path, backend: str, parallelism: int, caplog: pytest.LogCaptureFixture
) -> None:
    given = {"state.backend.type": backend}
    run_first(tmp_path, 2, **given)
    with caplog.at_level(logging.INFO, "holdfast.job.attempt"):
        client = start_second(tmp_path, 4, parallelism=parallelism, **given)
        client.get_job_execution_result().result(30)
    assert published(tmp_path / "out") == sorted((key, place) for key in range(KEYS) for place in (1, 2, 3, 4))
    assert "its keys migrated (version 0 to 1)" in caplog.text
    assert "state 'count' migrated (version 0 to 1)" in caplog.text


@pytest.mark.parametrize("backend", ["lmdb", "rocksdb"])
def test_an_attempt_behind_the_migration_uses_nothing_of_the_time_before(
    in_process: InProcessEngine, tmp_path: Path, backend: str
) -> None:
    """Stores of earlier attempts are on this host, with the old keys and values: they must not be taken up."""
    given = {"state.backend.type": backend, "execution.checkpointing.num-retained": "10"}
    old = run_first(tmp_path, 2, **given)
    before = open_snapshot(str(old))[0]
    failed: set[int] = set()

    def fail_in_first_epochs(spec: Any) -> None:
        """The epoch of the migration, and the one behind the first checkpoint of migrated state."""
        if spec.epoch - before.epoch in (1, 3) and spec.epoch not in failed:
            failed.add(spec.epoch)
            raise RuntimeError("a machine was lost")

    in_process.after_epoch = fail_in_first_epochs
    start_second(tmp_path, 5, **given).get_job_execution_result().result(30)
    assert len(failed) == 2
    assert published(tmp_path / "out") == sorted((key, place) for key in range(KEYS) for place in (1, 2, 3, 4, 5))


def test_a_migration_that_fails_stops_the_job_and_leaves_its_checkpoint(
    in_process: InProcessEngine, tmp_path: Path
) -> None:
    checkpoint = run_first(tmp_path, 2)

    def bad(count: int) -> str:
        raise ValueError("cannot say this count")

    with pytest.raises(JobExecutionError) as caught:
        start_second(tmp_path, 3, bad).get_job_execution_result().result(30)
    told = caught.value.__cause__
    assert isinstance(told, StateMigrationError) and "cannot say this count" in str(told) and "'seen'" in str(told)
    assert checkpoint.exists() and len(in_process.epochs) > 0
    start_second(tmp_path, 3).get_job_execution_result().result(30)
    assert published(tmp_path / "out") == sorted((key, place) for key in range(KEYS) for place in (1, 2, 3))


def test_the_first_checkpoint_of_the_upgraded_job_is_full(in_process: InProcessEngine, tmp_path: Path) -> None:
    old = run_first(tmp_path, 2)
    given = {"execution.checkpointing.num-retained": "10"}
    epoch = open_snapshot(str(old))[0].epoch
    seen: list[Any] = []

    def look(spec: Any) -> None:
        for path in sorted((tmp_path / "chk/job").glob("chk-*/_metadata")):
            metadata = open_snapshot(str(path.parent))[0]
            if metadata.epoch > epoch and metadata.checkpoint_id not in {one.checkpoint_id for one in seen}:
                seen.append(metadata)

    in_process.before_epoch = look
    start_second(tmp_path, 6, **given).get_job_execution_result().result(30)
    first = min(seen, key=lambda one: one.checkpoint_id)
    record = next(one for one in first.operators if one.uid == "counts")
    for subtask in record.subtasks:
        assert subtask.keyed is not None and subtask.keyed.key_version == 1
        assert [file.kind for file in subtask.keyed.files] == [SnapshotKind.FULL]
        assert {file.checkpoint_id for file in subtask.keyed.files} == {first.checkpoint_id}
