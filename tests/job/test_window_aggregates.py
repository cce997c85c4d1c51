"""Known aggregates of windows in whole jobs: a failure in the middle, savepoints, another parallelism."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Duration, JobClient, Row, Types, WatermarkStrategy
from holdfast.common.job_client import SavepointFormat
from holdfast.common.watermark_strategy import TimestampAssigner
from holdfast.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment
from holdfast.datastream.aggregates import Average, Count, Max, Min, Sum
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.window import SlidingEventTimeWindows
from holdfast.runtime.epoch import EpochSpec
from holdfast.runtime.row_path import RowPath, RowsBy
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import Scripted, environment, published
from tests.job.counting import settings

SALE = Types.ROW_NAMED(["shop", "price", "time"], [Types.STRING(), Types.LONG(), Types.LONG()])
SIZE, SLIDE, BOUND = 20, 8, 30
BY_COLUMN = RowPath(RowsBy.COLUMN, least_rows=4, least_timers=2)
BY_ROW = RowPath(RowsBy.BATCH, least_rows=4)
ONE_BY_ONE = RowPath(RowsBy.ONE)


def script(epochs: int = 8, rows: int = 40) -> list[list[Row]]:
    chance = random.Random(5)
    return [
        [
            Row(chance.choice("abcdefg"), chance.randrange(-50, 50), epoch * 25 + chance.randrange(-BOUND, 25))
            for _ in range(rows)
        ]
        for epoch in range(epochs)
    ]


EPOCHS = script()


def expected(rows: list[Row]) -> list[tuple[Any, ...]]:
    windows: dict[tuple[str, int], list[int]] = defaultdict(list)
    for shop, price, at in rows:
        for start in range((at - SIZE) // SLIDE * SLIDE, at + 1, SLIDE):
            if start + SIZE > at:
                windows[shop, start].append(price)
    return sorted(
        (shop, start, start + SIZE, len(some), sum(some), min(some), max(some), sum(some) / len(some))
        for (shop, start), some in windows.items()
    )


class TimeOf(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[2])


def add_program(
    env: StreamExecutionEnvironment, directory: Path, ends: bool = True, path: RowPath = BY_COLUMN
) -> None:
    source = env.from_source(Scripted(EPOCHS, ends), WatermarkStrategy.no_watermarks(), "sales", SALE)
    add_windows(source.uid("sales"), directory, path)


def add_windows(source: DataStream, directory: Path, path: RowPath = BY_COLUMN) -> None:
    # No row comes later than the watermark: the greatest time of an epoch is less than a bound ahead of all to come.
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(2 * BOUND))
    source.get_execution_environment().row_path = path
    timed = source.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(TimeOf())).uid("times")
    windows = timed.key_by("shop").window(SlidingEventTimeWindows.of(SIZE, SLIDE))
    figures = windows.aggregate(
        rows=Count(), total=Sum("price"), least=Min("price"), most=Max("price"), mean=Average("price")
    )
    figures.uid("windows").sink_to(FileSink.json(str(directory / "figures"))).uid("sink")


def fail_in(in_process: InProcessEngine, epoch: int) -> None:
    def fail(spec: EpochSpec) -> None:
        if (spec.attempt, spec.epoch) == (1, epoch):
            raise OSError("the executor is gone")

    in_process.after_epoch = fail


@pytest.mark.parametrize("backend", ["heap", "lmdb", "rocksdb"])
@pytest.mark.parametrize("parallelism", [1, 5])
def test_aggregates_of_windows_over_a_failure(
    in_process: InProcessEngine, tmp_path: Path, backend: str, parallelism: int
) -> None:
    fail_in(in_process, 4)
    env = environment(**settings(tmp_path, **{"state.backend.type": backend})).set_parallelism(parallelism)
    add_program(env, tmp_path)
    env.execute()
    assert published(tmp_path / "figures") == expected([row for rows in EPOCHS for row in rows])
    assert {attempt for attempt, _ in in_process.epochs} == {1, 2}


def run_until(client: JobClient, epochs: int, form: SavepointFormat) -> str:
    """Stop behind so many epochs; the savepoint."""
    while len(client.get_history().epochs) < epochs and client.is_running():
        time.sleep(0.002)
    path = client.stop_with_savepoint(False, format_type=form).result(30)
    client.get_job_execution_result().result(30)
    return str(path)


@pytest.mark.parametrize("form", SavepointFormat)
@pytest.mark.parametrize(
    ("before", "after"),
    [(BY_COLUMN, ONE_BY_ONE), (ONE_BY_ONE, BY_COLUMN), (BY_COLUMN, BY_ROW), (BY_ROW, BY_COLUMN)],
    ids=["column-one", "one-column", "column-batch", "batch-column"],
)
def test_aggregates_of_windows_over_a_savepoint(
    in_process: InProcessEngine, tmp_path: Path, form: SavepointFormat, before: RowPath, after: RowPath
) -> None:
    """What rows of one way have stored, another goes on with, in another backend with another parallelism."""
    changes = {
        "execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints"),
        "pipeline.max-parallelism": "16",
        "state.backend.type": "lmdb",
    }
    env = environment(**settings(tmp_path, **changes)).set_parallelism(2)
    add_program(env, tmp_path, ends=False, path=before)
    path = run_until(env.execute_async("before"), 4, form)
    if form is SavepointFormat.CANONICAL:
        changes["state.backend.type"] = "heap"
    env = environment(**settings(tmp_path, **changes, **{"execution.state-recovery.path": path})).set_parallelism(5)
    add_program(env, tmp_path, path=after)
    env.execute("after")
    assert published(tmp_path / "figures") == expected([row for rows in EPOCHS for row in rows])


def test_aggregates_of_windows_in_a_batch(in_process: InProcessEngine, tmp_path: Path) -> None:
    env = environment(**settings(tmp_path)).set_parallelism(2)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    add_windows(env.from_collection([row for rows in EPOCHS for row in rows], SALE), tmp_path)
    env.execute()
    assert published(tmp_path / "figures") == expected([row for rows in EPOCHS for row in rows])
