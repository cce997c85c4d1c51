"""A new attempt on a host that still has the keyed state of the checkpoint reads none of the checkpoint's files."""

from __future__ import annotations

import dataclasses
import random
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.runtime import live_task, state_handler
from holdfast.runtime.epoch import RestoredJob
from holdfast.runtime.local_files import attempt_directory
from holdfast.runtime.plan import JobPlan
from holdfast.state.store import Stamp, StateBackend
from tests.runtime.local_job import LocalJob, plan_of, rows_of
from tests.runtime.test_task import counting, expected_counts
from tests.state.stores import BACKENDS

ROWS = random.Random(4).choices("abcdefghijkl", k=60)


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The restores of keyed state from snapshot files."""
    made: list[Any] = []
    restore_into = state_handler.restore_into

    def noting(*arguments: Any) -> None:
        made.append(arguments)
        restore_into(*arguments)

    monkeypatch.setattr(state_handler, "restore_into", noting)
    return made


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def plan(directory: Path, backend: str, parallelism: int = 2) -> JobPlan:
    return plan_of(counting(ROWS), directory, backend, parallelism)


def until_five_epochs_later(plan: JobPlan) -> tuple[RestoredJob, int]:
    """A checkpoint, five epochs behind it, and a worker that dies. How many rows the checkpoint covers."""
    job = LocalJob(plan, rows_per_subtask=4)
    job.run_epoch()
    job.run_epoch()
    restored = job.checkpoint(7)
    for _ in range(5):
        # Told what is durable, stores let go of what is older.
        job.run_epoch(durable_epoch=restored.epoch)
    live_task.forget_live_tasks(plan.job_id)
    return restored, 12


def rest_of(job: LocalJob) -> list[Any]:
    out: list[Any] = []
    while True:
        acknowledged = job.run_epoch()
        out += rows_of(acknowledged)
        if all(a.ended for a in acknowledged):
            return out


def next_attempt(plan: JobPlan, restored: RestoredJob, attempt: int = 2) -> LocalJob:
    return LocalJob(plan, attempt=attempt, epoch=restored.epoch, restored=restored, rows_per_subtask=4)


def test_nothing_is_loaded_where_the_state_is_at_hand(tmp_path: Path, backend: str, loads: list[Any]) -> None:
    job = plan(tmp_path, backend)
    restored, covered = until_five_epochs_later(job)
    loads.clear()
    second = next_attempt(job, restored)
    assert sorted(rest_of(second)) == sorted(expected_counts(ROWS)[covered:])
    assert not loads
    assert not attempt_directory(job, 1).exists(), "what is left of the first attempt goes with the second epoch"


def test_an_execution_that_was_not_accepted_is_stepped_back_over(
    tmp_path: Path, backend: str, loads: list[Any]
) -> None:
    job = plan(tmp_path, backend)
    restored, covered = until_five_epochs_later(job)
    loads.clear()
    next_attempt(job, restored).run_epoch()
    live_task.forget_live_tasks(job.job_id)
    again = next_attempt(job, restored)
    assert sorted(rest_of(again)) == sorted(expected_counts(ROWS)[covered:])
    assert not loads


def test_state_of_the_attempt_before_the_last_is_found(tmp_path: Path, backend: str, loads: list[Any]) -> None:
    job = plan(tmp_path, backend)
    restored, covered = until_five_epochs_later(job)
    loads.clear()
    attempt_directory(job, 2).mkdir()  # it failed before it came to anything
    assert sorted(rest_of(next_attempt(job, restored, attempt=3))) == sorted(expected_counts(ROWS)[covered:])
    assert not loads


def test_a_copy_that_was_not_finished_is_made_again(
    tmp_path: Path, backend: str, loads: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = plan(tmp_path, backend)
    restored, covered = until_five_epochs_later(job)
    loads.clear()
    kind = type(job.backend)
    copy = kind.copy

    def killed_in_the_middle(self: StateBackend, source: Path, target: Path, stamp: Stamp) -> bool:
        copy(self, source, target, stamp)
        damage(target)
        raise KeyboardInterrupt

    monkeypatch.setattr(kind, "copy", killed_in_the_middle)
    with pytest.raises(KeyboardInterrupt):
        next_attempt(job, restored).run_epoch()
    monkeypatch.setattr(kind, "copy", copy)
    assert sorted(rest_of(next_attempt(job, restored))) == sorted(expected_counts(ROWS)[covered:])
    assert not loads


def damage(directory: Path) -> None:
    """All large files of stores below a directory lose their content."""
    for file in directory.rglob("*"):
        if file.name == "data.mdb" or file.suffix == ".sst" or file.name.startswith(("base-", "log-")):
            file.unlink()  # it may be a link, and the others stay as they are
            file.write_bytes(b"half")


@pytest.mark.parametrize(
    "case", ["gone", "another execution", "damaged", "switched off", "other parallelism", "no copies"]
)
def test_everything_else_comes_from_the_checkpoint(
    case: str, tmp_path: Path, backend: str, loads: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = plan(tmp_path, backend)
    restored, covered = until_five_epochs_later(job)
    first = attempt_directory(job, 1)
    if case == "gone":
        shutil.rmtree(first)
    elif case == "damaged":
        damage(first)
    elif case == "switched off":
        job = dataclasses.replace(job, options=dataclasses.replace(job.options, local_recovery=False))
    elif case == "other parallelism":
        job = plan(tmp_path, backend, parallelism=3)
    elif case == "no copies":
        monkeypatch.setattr(type(job.backend), "copy", lambda *_: False)
    elif case == "another execution":
        restored = taken_by_another_execution(restored)
    loads.clear()
    assert sorted(rest_of(next_attempt(job, restored))) == sorted(expected_counts(ROWS)[covered:])
    assert loads


def taken_by_another_execution(restored: RestoredJob) -> RestoredJob:
    """Snapshots as if the stores of this host were not of the execution that was accepted."""
    replace = msgspec.structs.replace
    return replace(
        restored,
        operators=tuple(
            replace(record, subtasks=tuple(replace(one, nonce="another") for one in record.subtasks))
            for record in restored.operators
        ),
    )


@pytest.mark.parametrize("seed", range(8))
def test_damaged_bytes_are_never_served(tmp_path: Path, backend: str, loads: list[Any], seed: int) -> None:
    """Anywhere below the local directory: one byte, or many. What is not damaged may still be taken over."""
    job = plan(tmp_path, backend)
    restored, covered = until_five_epochs_later(job)
    stores = attempt_directory(job, 1)
    dice = random.Random(f"{backend} {seed}")
    for store in sorted(path for path in stores.iterdir() if path.name.endswith(("-0", "-1"))):
        overwrite(dice.choice(files_of(store)), dice, 1 if seed % 2 else 200)
    second = next_attempt(job, restored)

    assert sorted(rest_of(second)) == sorted(expected_counts(ROWS)[covered:])


def test_who_is_told_of_damage(tmp_path: Path, backend: str, loads: list[Any]) -> None:
    """The job's log names the store, and says where the state comes from instead."""
    job = plan(tmp_path, backend)
    restored, covered = until_five_epochs_later(job)
    dice = random.Random(1)
    for path in files_of(attempt_directory(job, 1)):
        if path.name.startswith(("base-", "log-")) or path.suffix == ".sst" or path.name == "data.mdb":
            overwrite(path, dice, path.stat().st_size)
    loads.clear()
    second = next_attempt(job, restored)
    acknowledged = second.run_epoch()
    warnings = [warning for one in acknowledged for warning in one.warnings]

    assert loads
    assert len(warnings) == 2, "one for each subtask with keyed state"
    assert all("is damaged" in text and str(attempt_directory(job, 1)) in text for text in warnings)
    assert all("It is not used: the state comes from the checkpoint" in text for text in warnings)
    assert sorted(rows_of(acknowledged) + rest_of(second)) == sorted(expected_counts(ROWS)[covered:])


def files_of(directory: Path) -> list[Path]:
    """The files that hold something of a store."""
    ignored = ("lock.mdb", "LOCK", "LOG", "holder", "wanted")
    found = (path for path in directory.rglob("*") if path.is_file() and path.name not in ignored)
    return sorted(path for path in found if path.stat().st_size)


def overwrite(path: Path, dice: random.Random, count: int) -> None:
    """Change bytes that are not 0: unused ones are."""
    content = bytearray(path.read_bytes())
    used = [place for place, byte in enumerate(content) if byte]
    for place in dice.sample(used, min(count, len(used))):
        content[place] ^= 1 << dice.randrange(8)
    path.unlink()  # links to it elsewhere stay as they were: they are not damaged
    path.write_bytes(content)
