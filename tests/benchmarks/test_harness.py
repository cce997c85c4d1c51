"""The arithmetic of the benchmark harness, without Spark."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks import measure, processes, report
from benchmarks.catalogue import CONTESTANTS, JOBS, Contestant, Entry, Size, select
from benchmarks.data import KINDS, Shape, epochs_of, generate
from benchmarks.environments import EnvironmentFailed
from benchmarks.jobs.protocol import Checkpoint, Epoch, JobArguments, Marks, Outcome, Tally, outcome_of_marks
from benchmarks.latency import lateness
from benchmarks.measure import BenchmarkFailed, Run
from benchmarks.tables import Table

SHAPE = Shape(rows=6_000, keys=50, epoch_rows=1_000)


def entry(name: str) -> Entry:
    (found,) = select(*name.split("/"))
    return found


def columns_of(table: str, shape: Shape) -> dict[str, np.ndarray]:
    epochs = list(epochs_of(table, shape))[: shape.epochs]
    return {column: np.concatenate([epoch[column] for epoch in epochs]) for column in epochs[0]}


def run_of(name: str, rate: float) -> Run:
    return Run(name, rate, 4_000, 1_000, 4, [0.1], 0.5, 100, 200, None, None)


def test_rows_are_two_files_an_epoch_and_written_once(tmp_path: Path) -> None:
    files = sorted((generate(tmp_path, SHAPE) / "events").iterdir())
    assert [pq.read_metadata(path).num_rows for path in files] == [500] * 12
    written = [path.stat().st_mtime_ns for path in files]
    assert written == sorted(set(written))
    generate(tmp_path, SHAPE)
    assert [path.stat().st_mtime_ns for path in files] == written


def test_rows_with_times_are_dealt_to_the_files_of_an_epoch(tmp_path: Path) -> None:
    shape = replace(SHAPE, kind="clicks")
    files = sorted((generate(tmp_path, shape) / "clicks").iterdir())
    assert [pq.read_metadata(path).num_rows for path in files] == [500] * 12 + [1] * 4
    times = [pq.read_table(path)["time"].to_pylist() for path in files]
    assert [b - a for a, b in zip(times[0], times[1], strict=True)] == [2] * 500
    assert all(max(times[2 * n]) < min(times[2 * n + 2]) for n in range(6))


@pytest.mark.parametrize("kind", KINDS)
def test_a_prefix_holds_the_same_rows_in_other_epochs(kind: str) -> None:
    whole = Shape(40_000, 50, 10_000, kind)
    short = whole.prefix(12_000, 4)
    assert (short.rows, short.epoch_rows) == (12_000, 3_000)
    for table in KINDS[kind]:
        long, brief = columns_of(table, whole), columns_of(table, short)
        assert all(np.array_equal(long[column][: len(brief[column])], brief[column]) for column in brief)


def test_tables_with_times_end_with_rows_that_close_windows() -> None:
    *_, first, second = epochs_of("clicks", replace(SHAPE, kind="clicks"))
    assert first["key"].tolist() == second["key"].tolist() == [-1, -1]
    assert second["time"][0] > first["time"][0] > 10**9


def test_the_same_rows_come_as_text(tmp_path: Path) -> None:
    (first, *_) = sorted((generate(tmp_path, SHAPE, "csv") / "events").iterdir())
    columns = next(epochs_of("events", SHAPE))
    assert first.read_text().splitlines()[0] == f"{columns['key'][0]},{columns['value'][0]}"


@pytest.mark.parametrize("numbers", [(10, 5, 3), (0, 5, 1), (10, 0, 10)])
def test_shapes_that_give_no_whole_epochs_are_refused(numbers: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="multiple of epoch_rows"):
        Shape(*numbers)


def test_slow_peers_read_the_first_rows() -> None:
    whole = entry("average/holdfast-lmdb").shape(Size.FULL)
    slow, combined = entry("average/tws-row").shape(Size.FULL), entry("average/tws-row-combined").shape(Size.FULL)
    assert slow.rows < whole.rows and slow.epochs == 4
    # What it does per key and batch depends on the size of batches.
    assert combined.epoch_rows == whole.epoch_rows and combined.epochs == 2
    assert entry("average/tws-row").shape(Size.TINY) == entry("average/floor").shape(Size.TINY)


def test_entries_are_selected_by_name_and_by_prefix() -> None:
    assert [one.name for one in select("average,q7", "holdfast-l*,floor")] == [
        "average/floor",
        "average/holdfast-lmdb",
        "average/holdfast-lmdb-unchecked",
        "average/holdfast-lmdb-public",
        "average/holdfast-lmdb-without-kept-plans",
        "average/holdfast-lmdb-without-worker-daemon",
        "q7/floor",
        "q7/holdfast-lmdb",
    ]
    assert len(select(None, None)) == sum(len(contestant.jobs) for contestant in CONTESTANTS)
    assert {name for contestant in CONTESTANTS for name in contestant.jobs} == {job.name for job in JOBS}
    with pytest.raises(ValueError, match=r"'flor'.*floor-batch"):
        select(None, "flor")


def test_a_rate_counts_the_time_between_epochs() -> None:
    assert measure.overall_rate([Epoch(3, 100, 10.0, 11.0), Epoch(4, 100, 13.0, 14.0)]) == 50.0


def test_the_first_epochs_and_closing_ones_are_not_measured() -> None:
    epochs = [Epoch(number, 1_000, number, number + 1) for number in range(6)]
    assert [epoch.epoch for epoch in measure.measured_epochs(epochs, SHAPE)] == [2, 3, 4, 5]
    assert [epoch.epoch for epoch in measure.measured_epochs(epochs[:4], SHAPE)] == [1, 2, 3]
    closing = [*epochs, Epoch(6, 1, 6, 7), Epoch(7, 1, 7, 8)]
    measured = measure.measured_epochs(closing, replace(SHAPE, kind="clicks"))
    assert [epoch.epoch for epoch in measured] == [2, 3, 4, 5]


def test_arguments_survive_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = JobArguments("q5", "heap", tmp_path / "d", tmp_path / "s", tmp_path / "r.json", 500, 900, 7, True)
    monkeypatch.setattr(sys, "argv", ["job", *arguments.command()])
    assert JobArguments.parse() == arguments


def test_an_outcome_survives_its_file(tmp_path: Path) -> None:
    outcome = Outcome([Epoch(1, 2, 3.0, 4.0)], 5, 6, [Checkpoint(7.0), Checkpoint(8.0, 9)])
    outcome.write(tmp_path / "o.json")
    assert Outcome.read(tmp_path / "o.json") == outcome


def test_marks_of_all_workers_are_cut_into_epochs(tmp_path: Path) -> None:
    for worker, rows in enumerate((30, 20)):
        marks, tally = Marks(tmp_path, worker, 10), Tally(tmp_path, worker)
        for _ in range(rows):
            marks.row()
        tally.rows, tally.checksum = rows, rows * 2
        marks.write()
        tally.write()
    outcome = outcome_of_marks(tmp_path, 25)
    assert (outcome.emitted, outcome.checksum) == (50, 100)
    assert [epoch.rows for epoch in outcome.epochs] == [30, 20]
    assert all(one.finished <= two.started for one, two in zip(outcome.epochs, outcome.epochs[1:], strict=False))


def test_a_job_that_did_not_do_its_work_is_refused() -> None:
    lmdb = entry("average/holdfast-lmdb")
    expected = measure.expectation("averages", SHAPE)
    epochs = [Epoch(number, 1_000, number, number + 0.5) for number in range(6)]
    measure.check_read(lmdb, Outcome(epochs, 0, 0), 6_000)
    with pytest.raises(BenchmarkFailed, match="read 5000 rows of 6000"):
        measure.check_read(lmdb, Outcome(epochs[1:], 0, 0), 6_000)
    measure.check_emitted(lmdb, SHAPE, Outcome(epochs, expected.rows, expected.checksum))
    for rows, checksum in ((1, 0), (0, 1)):
        with pytest.raises(BenchmarkFailed, match="the rows give"):
            measure.check_emitted(
                lmdb, SHAPE, Outcome(epochs, expected.rows + rows, expected.checksum + checksum)
            )


def broken(module: str, **changes: str) -> Entry:
    return Entry(JOBS[0], Contestant("broken", "", module, "", (JOBS[0].name,), **changes))


def test_a_job_that_fails_shows_its_last_lines(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkFailed, match=r"ended with 1(.|\n)*no_such_job"):
        measure.execute(broken("no_such_job"), SHAPE, tmp_path, 60)


def test_a_job_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import time; print('begun', flush=True); time.sleep(60)"]
    finished = processes.run(command, tmp_path, {}, timeout=1.0)
    assert finished.timed_out and finished.code == -9 and finished.output == "begun\n"
    assert 1 < finished.python_mb < 100 and finished.jvm_mb == 0


def test_a_peer_that_cannot_be_installed_is_a_failure_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(environment: str) -> str:
        raise EnvironmentFailed(f"no {environment}")

    monkeypatch.setattr(measure, "python_of", fails)
    with pytest.raises(BenchmarkFailed, match="no flink"):
        measure.execute(broken("x", environment="flink"), SHAPE, tmp_path, 60)


def test_lateness_counts_from_the_file_to_the_epoch_that_read_all_of_it() -> None:
    epochs = [Epoch(1, 10, 0.0, 5.0), Epoch(2, 25, 5.0, 7.0), Epoch(3, 5, 7.0, 9.0)]
    assert lateness(epochs, [1.0, 2.0, 3.0, 6.5], 10) == [4.0, 5.0, 4.0, 2.5]


def test_ratios_are_taken_within_a_round() -> None:
    rounds = {
        "average/floor": [run_of("", 100), run_of("", 10), run_of("", 100)],
        "average/tws-row": [run_of("", 1), None, None],
        "average/holdfast-lmdb": [run_of("", 50), run_of("", 6), run_of("", 60)],
    }
    found = {figure.contestant: figure for figure in report.figures(rounds, {"average/tws-row": "gone"})}
    lmdb = found["holdfast-lmdb"]
    assert (lmdb.rows_per_second, lmdb.least, lmdb.most, lmdb.of_floor) == (50, 6, 60, pytest.approx(0.6))
    assert found["tws-row"].holdfast_over == 50 and found["tws-row"].error == "gone"
    rows = {row[1]: row[2:] for row in report.target_table(rounds).rows}
    assert rows == {
        "transformWithState, the same program": [50, 100],
        "pipeline without state": [pytest.approx(0.6), 0.75],
    }


def test_a_peer_that_failed_has_its_error_in_the_table() -> None:
    rounds = {"average/floor": [run_of("", 1_234_567)], "average/pyflink-heap": [None]}
    (table,) = report.tables(report.figures(rounds, {"average/pyflink-heap": "no Java\nat all"}))
    text = table.text()
    assert "1,234,567" in text and "failed" in text and "no Java" in text and "at all" not in text
    assert Table.of(json.loads(json.dumps(table.content()))).text() == text
