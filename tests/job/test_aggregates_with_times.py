"""Variances and values in time in whole jobs: over a failure, a savepoint and another parallelism."""

from __future__ import annotations

import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Row, TimestampColumn, Types, WatermarkStrategy
from holdfast.common.job_client import SavepointFormat
from holdfast.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment
from holdfast.datastream.aggregates import Count, Earliest, Latest, Variance
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import Scripted, environment, published
from tests.job.counting import settings
from tests.job.test_window_aggregates import fail_in, run_until

READING = Types.ROW_NAMED(
    ["sensor", "celsius", "state", "time"], [Types.STRING(), Types.DOUBLE(), Types.STRING(), Types.LONG()]
)


def reading(number: int) -> Row:
    celsius = None if number % 5 == 0 else number * 37 % 101 / 8
    return Row("abcd"[number % 4], celsius, f"state {number % 9}", number * 53 % 97)


EPOCHS = [[reading(number) for number in range(start, start + 40)] for start in range(0, 320, 40)]
READINGS = [row for rows in EPOCHS for row in rows]


def expected(rows: list[Row]) -> dict[str, tuple[Any, ...]]:
    by_sensor: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_sensor[row[0]].append(row)
    return {sensor: results_of(some) for sensor, some in by_sensor.items()}


def results_of(rows: list[Row]) -> tuple[Any, ...]:
    values = [row[1] for row in rows if row[1] is not None]
    first = min((row[3], row[1]) for row in rows if row[1] is not None)[1]
    last = max((row[3], row[2]) for row in rows)[1]
    return len(rows), first, last, statistics.variance(values), statistics.pvariance(values)


def aggregated(source: DataStream) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(TimestampColumn("time"))
    timed = source.assign_timestamps_and_watermarks(strategy).uid("times")
    return timed.key_by("sensor").aggregate(
        rows=Count(),
        first=Earliest("celsius"),
        last=Latest("state"),
        spread=Variance("celsius"),
        all=Variance("celsius", population=True),
    )


def last_of_each(rows: list[Any]) -> dict[str, Any]:
    """The last result of each sensor, by how many rows it is of."""
    return {row[0]: tuple(row[1:]) for row in sorted(rows, key=lambda row: row[1])}


def check(rows: list[Any]) -> None:
    wanted, found = expected(READINGS), last_of_each(rows)
    assert found.keys() == wanted.keys()
    for sensor, results in wanted.items():
        assert found[sensor][:3] == results[:3]
        assert found[sensor][3:] == pytest.approx(results[3:], rel=1e-12)


@pytest.mark.parametrize("backend", ["heap", "lmdb", "rocksdb"])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_of_keys_over_a_failure(in_process: InProcessEngine, tmp_path: Path, backend: str, parallelism: int) -> None:
    fail_in(in_process, 3)
    changes = {"state.backend.type": backend, "holdfast.epoch.max-rows": "40"}
    env = environment(**settings(tmp_path, **changes)).set_parallelism(parallelism)
    with aggregated(env.from_collection(READINGS, READING)).execute_and_collect() as rows:
        check(list(rows))
    assert {attempt for attempt, _ in in_process.epochs} == {1, 2}


def test_of_keys_in_a_batch(in_process: InProcessEngine, tmp_path: Path) -> None:
    env = environment(**settings(tmp_path)).set_parallelism(2)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    with aggregated(env.from_collection(READINGS, READING)).execute_and_collect() as rows:
        found = list(rows)
    assert len(found) == 4
    check(found)


def add_program(env: StreamExecutionEnvironment, directory: Path, ends: bool) -> None:
    source = env.from_source(Scripted(EPOCHS, ends), WatermarkStrategy.no_watermarks(), "readings", READING)
    aggregated(source.uid("readings")).uid("figures").sink_to(FileSink.json(str(directory / "out"))).uid("sink")


@pytest.mark.parametrize("form", SavepointFormat)
def test_of_keys_over_a_savepoint(in_process: InProcessEngine, tmp_path: Path, form: SavepointFormat) -> None:
    changes = {
        "execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints"),
        "pipeline.max-parallelism": "16",
        "state.backend.type": "lmdb",
    }
    env = environment(**settings(tmp_path, **changes)).set_parallelism(2)
    add_program(env, tmp_path, ends=False)
    path = run_until(env.execute_async("before"), 4, form)
    if form is SavepointFormat.CANONICAL:
        changes["state.backend.type"] = "heap"
    env = environment(**settings(tmp_path, **changes, **{"execution.state-recovery.path": path})).set_parallelism(3)
    add_program(env, tmp_path, ends=True)
    env.execute("after")
    check(published(tmp_path / "out"))
