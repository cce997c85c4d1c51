"""The arithmetic of the benchmark harness, without Spark."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks import measure, report
from benchmarks.catalogue import CATALOGUE, Benchmark, select
from benchmarks.data import Shape, expected_averages, generate
from benchmarks.jobs.protocol import Epoch, JobArguments, Outcome
from benchmarks.measure import BenchmarkFailed, Run

SHAPE = Shape(rows=6_000, keys=50, epoch_rows=1_000)


def by_name(name: str) -> Benchmark:
    return next(benchmark for benchmark in CATALOGUE if benchmark.name == name)


def run_of(name: str, rate: float) -> Run:
    return Run(name, rate, [rate], 1_000, 4, 0.5)


def test_events_are_one_file_an_epoch_and_written_once(tmp_path: Path) -> None:
    directory = generate(tmp_path, SHAPE)
    files = sorted(directory.glob("*.parquet"))
    assert [pq.read_metadata(path).num_rows for path in files] == [1_000] * 6
    written = [path.stat().st_mtime_ns for path in files]
    assert generate(tmp_path, SHAPE) == directory
    assert [path.stat().st_mtime_ns for path in files] == written


def test_shortened_events_are_the_first_epochs(tmp_path: Path) -> None:
    whole, short = generate(tmp_path, SHAPE), generate(tmp_path, SHAPE.shortened(2))
    names = sorted(path.name for path in short.glob("*.parquet"))
    assert names == ["part-00000.parquet", "part-00001.parquet"]
    assert all(pq.read_table(short / name).equals(pq.read_table(whole / name)) for name in names)


def test_expected_averages_are_those_of_the_files(tmp_path: Path) -> None:
    counts: dict[int, int] = {}
    for path in generate(tmp_path, SHAPE).glob("*.parquet"):
        for key in pq.read_table(path)["key"].to_pylist():
            counts[key] = counts.get(key, 0) + 1
    assert expected_averages(SHAPE) == sum(count // 3 for count in counts.values())


@pytest.mark.parametrize("numbers", [(10, 5, 3), (0, 5, 1), (10, 0, 10)])
def test_shapes_that_give_no_whole_epochs_are_refused(numbers: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="multiple of epoch_rows"):
        Shape(*numbers)


def test_slow_peers_read_fewer_epochs_of_the_same_size() -> None:
    assert by_name("tws-row").shape(SHAPE) == Shape(2_000, 50, 1_000)
    assert by_name("tws-row-small").shape(SHAPE) == Shape(200, 50, 100)
    assert by_name("holdfast-lmdb-small").shape(SHAPE) == Shape(600, 50, 100)
    assert all(benchmark.warm_up(benchmark.shape(SHAPE)) < benchmark.shape(SHAPE).epochs for benchmark in CATALOGUE)


def test_benchmarks_are_selected_by_name_and_by_prefix() -> None:
    assert [b.name for b in select("holdfast-lmdb,floor*")] == ["floor", "floor-batch", "holdfast-lmdb"]
    assert select(None) == list(CATALOGUE)
    with pytest.raises(ValueError, match=r"'flor'.*floor-batch"):
        select("flor")


def test_a_rate_counts_the_time_between_epochs() -> None:
    assert measure.overall_rate([Epoch(3, 100, 10.0, 11.0), Epoch(4, 100, 13.0, 14.0)]) == 50.0


def test_arguments_survive_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = JobArguments(tmp_path / "d", tmp_path / "s", 500, "heap-unchecked", tmp_path / "r.json")
    monkeypatch.setattr(sys, "argv", ["job", *arguments.command()])
    assert JobArguments.parse() == arguments


def test_a_job_that_did_not_do_its_work_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    epochs = [Epoch(number, 1_000, number, number + 0.5) for number in range(6)]

    def outcome(emitted: int, epochs: list[Epoch] = epochs) -> None:
        monkeypatch.setattr(measure, "_outcome", lambda *_: Outcome(epochs, emitted))

    outcome(expected_averages(SHAPE))
    assert measure.run(by_name("holdfast-lmdb"), SHAPE, tmp_path).measured_epochs == 4
    outcome(expected_averages(SHAPE) - 1)
    with pytest.raises(BenchmarkFailed, match="averages"):
        measure.run(by_name("holdfast-lmdb"), SHAPE, tmp_path)
    outcome(0, epochs[1:])
    with pytest.raises(BenchmarkFailed, match="read 5000 rows of 6000"):
        measure.run(by_name("floor"), SHAPE, tmp_path)


def test_a_job_that_fails_shows_its_last_lines(tmp_path: Path) -> None:
    broken = Benchmark("broken", "", "no_such_job", "")
    with pytest.raises(BenchmarkFailed, match="no_such_job"):
        measure.run(broken, SHAPE, tmp_path)


def test_ratios_are_taken_within_a_round() -> None:
    rounds = {
        "floor": [run_of("floor", 100), run_of("floor", 10), run_of("floor", 100)],
        "tws-row": [run_of("tws-row", 1)],
        "holdfast-lmdb": [run_of("holdfast-lmdb", 50), run_of("holdfast-lmdb", 6), run_of("holdfast-lmdb", 60)],
        "holdfast-lmdb-small": [run_of("holdfast-lmdb-small", 30)],
    }
    found = {figure.name: figure for figure in report.figures(rounds)}
    lmdb, small = found["holdfast-lmdb"], found["holdfast-lmdb-small"]
    assert (lmdb.rows_per_second, lmdb.least, lmdb.most) == (50, 6, 60)
    assert lmdb.of_floor == pytest.approx(0.6)
    assert lmdb.times_transform_with_state == 50
    # Another epoch size is another question.
    assert small.of_floor is None and small.times_transform_with_state is None


def test_the_report_names_every_benchmark_and_is_stored(tmp_path: Path) -> None:
    rounds = {"floor": [run_of("floor", 1_234_567)], "tws-row": [run_of("tws-row", 3_000)]}
    text = report.table(report.figures(rounds))
    assert "1,234,567" in text and "412" in text and len(text.splitlines()) == 3
    stored = json.loads(report.write_json(tmp_path, {"cores": 2}, rounds).read_text())
    assert stored["machine"] == {"cores": 2}
    assert [figure["name"] for figure in stored["figures"]] == ["floor", "tws-row"]
    assert stored["runs"]["tws-row"][0]["rows_per_second"] == 3_000
