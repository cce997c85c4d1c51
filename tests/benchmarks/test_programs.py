"""Holdfast's side of every job gives what the oracle says, without Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.catalogue import HOLDFAST, JOBS, Entry, Size, select
from benchmarks.data import KINDS, epochs_of, generate
from benchmarks.jobs.checks import CHECKED
from benchmarks.jobs.holdfast import program
from benchmarks.jobs.holdfast.program import PROGRAMS, run
from benchmarks.jobs.protocol import JobArguments
from benchmarks.jobs.steps import STEPS
from benchmarks.measure import check_emitted, check_read
from benchmarks.oracle import ORACLES, Expected
from holdfast.testing.in_process import InProcessEngine

ENTRIES = {entry.job.program: entry for entry in reversed(select(None, HOLDFAST))}


def test_every_job_has_a_program_and_an_oracle() -> None:
    assert {job.program for job in JOBS} == {name.partition(":")[0] for name in PROGRAMS} == set(ENTRIES)
    assert {job.oracle for job in JOBS} <= set(ORACLES)


def arguments_of(entry: Entry, directory: Path) -> JobArguments:
    shape = entry.shape(Size.TINY)
    scratch = directory / "scratch"
    scratch.mkdir()
    return JobArguments(
        job=entry.job.program,
        variant="heap",
        data=generate(directory, shape),
        scratch=scratch,
        result=directory / "result",
        epoch_rows=shape.epoch_rows,
        expected_rows=shape.rows + shape.closing * len(KINDS[shape.kind]),
        gap_ms=shape.gap_ms,
    )


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_a_program_does_its_job(entry: Entry, tmp_path: Path, in_process: InProcessEngine) -> None:
    shape = entry.shape(Size.TINY)
    arguments = arguments_of(entry, tmp_path)
    outcome = run(arguments)
    check_read(entry, outcome, arguments.expected_rows)
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


OF_SPARK = "totals:stream"


@pytest.mark.parametrize("form", sorted(program.EMIT_TOTALS - {OF_SPARK}))
def test_the_totals_by_columns(form: str, tmp_path: Path, in_process: InProcessEngine) -> None:
    check_totals(form, tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_the_totals_of_a_stream_of_sparks(tmp_path: Path) -> None:
    check_totals(OF_SPARK, tmp_path)


def check_totals(form: str, tmp_path: Path) -> None:
    outcome = run(replace(arguments_of(ENTRIES["totals"], tmp_path), variant=f"heap:{form.partition(':')[2]}"))
    assert Expected(outcome.emitted, outcome.checksum) == ORACLES["final_totals"](ENTRIES["totals"].shape(Size.TINY))


def test_hot_items_by_columns(tmp_path: Path, in_process: InProcessEngine) -> None:
    outcome = run(replace(arguments_of(ENTRIES["q5"], tmp_path), variant="heap:aggregate"))
    check_emitted(ENTRIES["q5"], ENTRIES["q5"].shape(Size.TINY), outcome)
    assert outcome.emitted > 0


def test_of_totals_that_come_now_and_then_the_last_are_checked(
    tmp_path: Path, in_process: InProcessEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "EMIT_TOTALS", frozenset({"totals"}))
    outcome = run(arguments_of(ENTRIES["totals"], tmp_path))
    expected = ORACLES["final_totals"](ENTRIES["totals"].shape(Size.TINY))
    assert Expected(outcome.emitted, outcome.checksum) == expected
