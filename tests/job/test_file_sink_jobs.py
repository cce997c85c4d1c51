"""File sinks in whole jobs: files that wait, are joined and published, whatever fails in between."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast
from urllib.parse import unquote

import pytest

from holdfast import failpoints
from holdfast.datastream.connectors.file_system import FileCompactStrategy, FileSink, RollingPolicy
from holdfast.errors import JobExecutionError
from holdfast.runtime.epoch import EpochSpec
from holdfast.runtime.live_task import forget_live_tasks
from holdfast.runtime.sink import WrappingSink
from holdfast.testing.in_process import InProcessEngine
from tests.connectors.directories import committed_files
from tests.job.counting import EPOCHS, counting, counts_of, settings, staged
from tests.job.test_random_operation import let_epochs_fail, operate, random_settings, slow_down
from tests.kit.faults import FaultPlan

MANY_EPOCHS = [[(row % 3, row) for row in range(first, first + 6)] for first in range(0, 120, 6)]
NEVER = RollingPolicy.default_rolling_policy(1 << 30, 1_000_000_000, 1_000_000_000)


@pytest.fixture
def faults(tmp_path: Path) -> Iterator[FaultPlan]:
    yield FaultPlan(tmp_path / "faults")
    failpoints.install(None)


def compacting(path: Path, checkpoints: int = 2) -> FileSink:
    strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(checkpoints).build()
    return FileSink.json(str(path)).partition_by("f0").enable_compact(strategy)


def rows_in(path: Path) -> list[tuple[int, int]]:
    """Rows whose first column is their folder."""
    found = []
    for file in committed_files(path):
        key = unquote(file.parent.name.removeprefix("f0="))
        found += [(int(key), json.loads(line)["f1"]) for line in file.read_text().splitlines()]
    return sorted(found)


def run(tmp_path: Path, *sinks: FileSink, **changes: str) -> None:
    counting(settings(tmp_path, **changes), EPOCHS, *sinks).get_job_execution_result().result(60)


def wait_for_epochs(spark: InProcessEngine, epochs: int) -> None:
    end = time.monotonic() + 30
    while len(spark.epochs) < epochs:
        assert time.monotonic() < end
        time.sleep(0.002)


def test_small_files_are_joined_before_they_appear(in_process: InProcessEngine, tmp_path: Path) -> None:
    run(tmp_path, compacting(tmp_path / "few", 3), FileSink.json(str(tmp_path / "many")).partition_by("f0"))

    for path in (tmp_path / "few", tmp_path / "many"):
        assert rows_in(path) == counts_of(EPOCHS)
        assert staged(path) == []
    assert len(committed_files(tmp_path / "many")) == 18
    assert len(committed_files(tmp_path / "few")) == 6


def test_files_wait_over_checkpoints_until_the_rolling_policy_lets_them_go(
    in_process: InProcessEngine, tmp_path: Path
) -> None:
    seen: list[int] = []
    in_process.before_epoch = lambda spec: seen.append(len(committed_files(tmp_path / "out")))
    run(tmp_path, FileSink.json(str(tmp_path / "out")).partition_by("f0").with_rolling_policy(NEVER))

    assert max(seen[:6]) == 0
    assert rows_in(tmp_path / "out") == counts_of(EPOCHS)
    assert len(committed_files(tmp_path / "out")) == 3


@pytest.mark.parametrize("hit", [1, 3])
@pytest.mark.parametrize(
    "point",
    [
        "task.outputs-sent",
        "task.after-commit",
        "file-sink-joined",
        "driver.epoch-collected",
        "checkpoint.before-metadata",
        "checkpoint.after-metadata",
        "sink.before-commit",
        "file-sink-moved",
        "file-sink-held",
        "sink.after-commit",
    ],
)
def test_no_row_is_lost_or_repeated_wherever_it_fails(
    in_process: InProcessEngine, tmp_path: Path, faults: FaultPlan, point: str, hit: int
) -> None:
    for again in range(2):
        faults.add(point, "raise", hit=hit + again)
    failpoints.install(faults.environment["HOLDFAST_FAILPOINTS"])
    run(tmp_path, compacting(tmp_path / "out"))

    assert not faults.not_reached()
    assert rows_in(tmp_path / "out") == counts_of(EPOCHS)
    assert staged(tmp_path / "out") == []


def test_an_execution_that_spark_repeats_leaves_nothing(in_process: InProcessEngine, tmp_path: Path) -> None:
    in_process.repeated = lambda spec: [(1, 0), (1, 1)] if spec.epoch % 2 else []
    run(tmp_path, compacting(tmp_path / "out"))

    assert rows_in(tmp_path / "out") == counts_of(EPOCHS)
    assert staged(tmp_path / "out") == []


@pytest.mark.parametrize("seed", range(3))
def test_jobs_that_are_operated_at_random(
    in_process: InProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Epochs fail, uploads are slow, the job is stopped with savepoints and goes on."""
    dice = random.Random(f"files {seed}")
    given = random_settings(dice, tmp_path)
    slow_down(dice, monkeypatch)
    let_epochs_fail(dice, in_process)
    path: str | None = None
    for last in (False, False, True):
        if path is not None:
            given["execution.state-recovery.path"] = path
        rolling = FileSink.json(str(tmp_path / "rolled")).partition_by("f0").with_rolling_policy(NEVER)
        client = counting(given, MANY_EPOCHS, compacting(tmp_path / "out", dice.randint(1, 4)), rolling)
        path = operate(dice, client, may_stop=not last)
        if path is None:
            break
    for sink in (tmp_path / "out", tmp_path / "rolled"):
        assert rows_in(sink) == counts_of(MANY_EPOCHS)
        assert staged(sink) == []


def test_a_savepoint_needs_no_files_that_wait(in_process: InProcessEngine, tmp_path: Path) -> None:
    """The job goes on and ends; restoring its savepoint then finds all that it needs."""
    given = settings(tmp_path, **{"execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints")})
    client = counting(given, EPOCHS, compacting(tmp_path / "out", 50), ends=False)
    wait_for_epochs(in_process, 3)
    savepoint = client.trigger_savepoint().result(30)
    client.cancel().result(30)
    resumed = {**given, "execution.state-recovery.path": savepoint, "holdfast.job-id": "job2"}
    counting(resumed, EPOCHS, compacting(tmp_path / "out", 50)).get_job_execution_result().result(60)

    assert set(rows_in(tmp_path / "out")) == set(counts_of(EPOCHS))


@pytest.mark.parametrize(
    ("epoch", "problem"), [(1, "is lost, though.*left it there"), (2, "waited in staging .* are gone.*or a savepoint")]
)
def test_an_older_checkpoint_whose_files_were_joined_since_is_refused(
    in_process: InProcessEngine, tmp_path: Path, epoch: int, problem: str
) -> None:
    """Its second epoch has no rows: nothing but the state of the sink names the files of the first."""
    kept = {
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "execution.checkpointing.num-retained": "50",
    }
    epochs = [EPOCHS[0], [], *EPOCHS[1:]]
    client = counting(settings(tmp_path, **kept), epochs, compacting(tmp_path / "out", 3), ends=False)
    wait_for_epochs(in_process, 9)
    client.cancel().result(30)
    path = tmp_path / "chk" / "job" / f"chk-{epoch}"
    given = settings(tmp_path, **{"execution.state-recovery.path": str(path), "holdfast.job-id": "other"})
    again = counting({**given, "restart-strategy.type": "none"}, epochs, compacting(tmp_path / "out", 3))

    with pytest.raises(JobExecutionError, match=problem):
        again.get_job_execution_result().result(30)


@pytest.mark.parametrize("parallelism", [1, 3])
def test_waiting_files_are_divided_when_the_parallelism_changes(
    in_process: InProcessEngine, tmp_path: Path, parallelism: int
) -> None:
    """Over a checkpoint: a savepoint would leave nothing that waits."""
    given = settings(
        tmp_path, **{"execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION"}
    )
    client = counting(given, EPOCHS, compacting(tmp_path / "out", 50), ends=False)
    wait_for_epochs(in_process, 4)
    client.cancel().result(30)
    assert rows_in(tmp_path / "out") == []
    held = [path for path in staged(tmp_path / "out") if path.suffix == ".held"]
    assert len(held) >= 6
    client = counting(given, EPOCHS, compacting(tmp_path / "out", 50), parallelism=parallelism)
    client.get_job_execution_result().result(60)

    assert rows_in(tmp_path / "out") == counts_of(EPOCHS)
    assert staged(tmp_path / "out") == []


def test_buckets_are_marked_at_the_end_of_the_input(in_process: InProcessEngine, tmp_path: Path) -> None:
    run(tmp_path, compacting(tmp_path / "out").with_success_markers(1_000_000))

    marked = sorted(str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("_SUCCESS"))
    assert marked == ["_SUCCESS", "f0=0/_SUCCESS", "f0=1/_SUCCESS", "f0=2/_SUCCESS"]


def test_buckets_without_rows_are_marked_while_the_job_runs(in_process: InProcessEngine, tmp_path: Path) -> None:
    """The key 7 has rows in the first epoch only; the others go on."""
    epochs = [[(7, 0), *EPOCHS[0]], *EPOCHS[1:]]
    seen: list[set[str]] = []

    def look(spec: EpochSpec) -> None:
        seen.append({str(p.parent.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("_SUCCESS")})

    in_process.before_epoch = look
    sink = FileSink.json(str(tmp_path / "out")).partition_by("f0").with_success_markers(0)
    client = counting(settings(tmp_path), epochs, sink)
    client.get_job_execution_result().result(60)

    # With a delay of nothing a bucket is finished by every checkpoint in which it had no rows.
    assert any({"f0=7"} <= marked for marked in seen)
    assert "." in {str(p.parent.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("_SUCCESS")}


def test_nothing_waits_where_checkpoints_do_not_publish(in_process: InProcessEngine, tmp_path: Path) -> None:
    seen: list[int] = []
    in_process.before_epoch = lambda spec: seen.append(len(rows_in(tmp_path / "out")))
    run(tmp_path, compacting(tmp_path / "out", 50), **{"execution.checkpointing.mode": "AT_LEAST_ONCE"})

    assert seen[3] > 0
    assert rows_in(tmp_path / "out") == counts_of(EPOCHS)


def test_a_bounded_job_without_checkpoints_marks_its_end(in_process: InProcessEngine, tmp_path: Path) -> None:
    given = {key: value for key, value in settings(tmp_path).items() if "interval" not in key and "restart" not in key}
    sink = compacting(tmp_path / "out").with_success_markers(1_000_000)
    counting(given, EPOCHS, sink).get_job_execution_result().result(60)

    assert rows_in(tmp_path / "out") == counts_of(EPOCHS)
    assert (tmp_path / "out" / "_SUCCESS").exists()


def test_what_waits_travels_between_processes(in_process: InProcessEngine, tmp_path: Path) -> None:
    """No worker keeps the live sink: fields and state come from the host's files in every epoch."""
    in_process.before_epoch = lambda spec: forget_live_tasks("job", before_attempt=1 << 30)
    run(tmp_path, compacting(tmp_path / "out", 3), FileSink.csv(str(tmp_path / "csv")).with_rolling_policy(NEVER))

    assert rows_in(tmp_path / "out") == counts_of(EPOCHS)
    assert len(committed_files(tmp_path / "out")) == 6
    assert len(committed_files(tmp_path / "csv")) == 2


def test_a_wrapped_sink_has_all_of_it(in_process: InProcessEngine, tmp_path: Path, faults: FaultPlan) -> None:
    faults.add("file-sink-joined", "raise", hit=2)
    failpoints.install(faults.environment["HOLDFAST_FAILPOINTS"])
    wrapped = WrappingSink(compacting(tmp_path / "out", 3).with_success_markers(1_000_000))
    run(tmp_path, cast("FileSink", wrapped))

    assert not faults.not_reached()
    assert rows_in(tmp_path / "out") == counts_of(EPOCHS)
    assert len(committed_files(tmp_path / "out")) == 6
    assert (tmp_path / "out" / "_SUCCESS").exists()
