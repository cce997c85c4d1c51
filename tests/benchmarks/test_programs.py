"""Holdfast's side of every job gives what the oracle says, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.catalogue import HOLDFAST, JOBS, Entry, Size, select
from benchmarks.data import KINDS, epochs_of, generate
from benchmarks.jobs.checks import CHECKED
from benchmarks.jobs.holdfast.program import PROGRAMS, run
from benchmarks.jobs.protocol import JobArguments
from benchmarks.jobs.steps import STEPS
from benchmarks.measure import check_emitted, check_read
from benchmarks.oracle import ORACLES, Expected
from tests.spark.in_process import install

ENTRIES = {entry.job.program: entry for entry in reversed(select(None, HOLDFAST))}


def test_every_job_has_a_program_and_an_oracle() -> None:
    assert {job.program for job in JOBS} == set(PROGRAMS) == set(ENTRIES)
    assert {job.oracle for job in JOBS} <= set(ORACLES)


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_a_program_does_its_job(entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    shape = entry.shape(Size.TINY)
    rows = shape.rows + shape.closing * len(KINDS[shape.kind])
    arguments = JobArguments(
        entry.job.program,
        "heap",
        generate(tmp_path, shape),
        tmp_path / "scratch",
        tmp_path / "result",
        shape.epoch_rows,
        rows,
        shape.gap_ms,
    )
    arguments.scratch.mkdir()
    outcome = run(arguments)
    check_read(entry, outcome, rows)
    check_emitted(entry, shape, outcome)
    assert outcome.emitted > 0


@pytest.mark.parametrize("job", STEPS)
def test_steps_of_peers_do_the_same_job(job: str) -> None:
    shape = ENTRIES[job].shape(Size.TINY)
    states: dict[int, Any] = {}
    emitted = []
    for columns in epochs_of("events", shape):
        for key, value in zip(columns["key"].tolist(), columns["value"].tolist(), strict=True):
            states[key], row = STEPS[job](states.get(key), key, value)
            if row is not None:
                emitted.append(row)
    checksum = sum(row[column] for row in emitted for column in CHECKED[job])
    assert Expected(len(emitted), checksum) == ORACLES[ENTRIES[job].oracle](shape)
