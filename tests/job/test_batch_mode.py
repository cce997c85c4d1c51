"""Programs in batch mode: final results only, no checkpoints, all timers at the end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Configuration, Row, TimestampAssigner, Types, WatermarkStrategy
from holdfast.datastream import (
    DataStream,
    KeyedProcessFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from holdfast.datastream.connectors import SequenceSource
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.state import ValueStateDescriptor
from holdfast.errors import CheckpointError, ProgramError
from holdfast.runtime.epoch import EpochSpec
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import PAIR, environment, published
from tests.job.counting import settings

ROWS = [(n % 5, n * 37 % 101) for n in range(100)]
TRIPLE = Types.TUPLE([Types.LONG()] * 3)


def program(
    tmp_path: Path, parallelism: int, mode: RuntimeExecutionMode = RuntimeExecutionMode.BATCH, **changes: str
) -> tuple[StreamExecutionEnvironment, DataStream]:
    given = settings(tmp_path, **{"holdfast.epoch.max-rows": "17", **changes})
    env = environment(**given).set_parallelism(parallelism).set_runtime_mode(mode)
    return env, env.from_collection(ROWS, PAIR)


def write(stream: DataStream, path: Path) -> None:
    stream.sink_to(FileSink.json(str(path)))


def last_values(rows: Iterable[tuple[int, int]], combine: Any) -> list[tuple[int, int]]:
    kept: dict[int, int] = {}
    for key, value in rows:
        kept[key] = combine(kept[key], value) if key in kept else value
    return sorted(kept.items())


@pytest.mark.parametrize("parallelism", [1, 2, 5])
@pytest.mark.parametrize("backend", ["heap", "lmdb"])
def test_one_result_for_each_key_at_the_end(
    in_process: InProcessEngine, tmp_path: Path, parallelism: int, backend: str
) -> None:
    def fail(spec: EpochSpec) -> None:
        if (spec.attempt, spec.epoch) == (1, 4):
            raise OSError("the executor is gone")
        assert spec.checkpoint is None
        assert not any((tmp_path / name).is_dir() and published(tmp_path / name) for name in ("sum", "max"))

    in_process.after_epoch = fail
    env, rows = program(tmp_path, parallelism, **{"state.backend.type": backend})
    keyed = rows.key_by(lambda row: row[0], Types.LONG())
    write(keyed.sum(1), tmp_path / "sum")
    write(keyed.max("f1"), tmp_path / "max")
    write(keyed.reduce(lambda a, b: (a[0], min(a[1], b[1]))), tmp_path / "min")
    # Of the sums of all keys, the largest: what comes at the end of one operator comes in time for the next.
    write(keyed.sum(1).key_by(lambda row: 0, Types.LONG()).max_by(1), tmp_path / "most")
    env.execute()
    sums = last_values(ROWS, lambda a, b: a + b)
    assert published(tmp_path / "sum") == sums
    assert published(tmp_path / "max") == last_values(ROWS, max)
    assert published(tmp_path / "min") == last_values(ROWS, min)
    assert published(tmp_path / "most") == [max(sums, key=lambda row: row[1])]
    assert {attempt for attempt, _ in in_process.epochs} == {1, 2}


def test_as_a_stream_the_same_program_gives_every_result(in_process: InProcessEngine, tmp_path: Path) -> None:
    env, rows = program(tmp_path, 2, RuntimeExecutionMode.STREAMING)
    write(rows.key_by(lambda row: row[0], Types.LONG()).sum(1), tmp_path / "sum")
    env.execute()
    assert len(published(tmp_path / "sum")) == len(ROWS)


class ByValue(TimestampAssigner):
    def extract_timestamp(self, value: tuple[int, int], record_timestamp: int) -> int:
        return value[1]


class CountAtTimers(KeyedProcessFunction):
    """Each row sets timers in both domains; each timer gives what was counted, and sets another one."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: tuple[int, int], ctx: KeyedProcessFunction.Context) -> None:
        assert ctx.timer_service().current_watermark() < 0
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(1)
        ctx.timer_service().register_processing_time_timer(0)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[tuple[int, int, int]]:
        ctx.timer_service().register_event_time_timer(timestamp + 1)
        ctx.timer_service().register_processing_time_timer(timestamp + 1)
        yield ctx.get_current_key(), timestamp, self.count.value()


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_all_timers_fire_when_all_rows_have_come(
    in_process: InProcessEngine, tmp_path: Path, parallelism: int
) -> None:
    env, rows = program(tmp_path, parallelism)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ByValue())
    timed = rows.assign_timestamps_and_watermarks(strategy)
    counted = timed.key_by(lambda row: row[0], Types.LONG()).process(CountAtTimers(), TRIPLE)
    write(counted, tmp_path / "out")
    # Behind it come the rows that its timers give, before event time ends there too.
    behind = counted.map(lambda row: row[:2], PAIR).key_by(lambda row: row[0], Types.LONG())
    write(behind.process(CountAtTimers(), TRIPLE), tmp_path / "behind")
    env.execute()
    assert published(tmp_path / "out") == sorted((key, timer, 20) for key in range(5) for timer in (0, 1))
    assert published(tmp_path / "behind") == sorted((key, timer, 2) for key in range(5) for timer in (0, 1))


def test_sources_without_an_end_are_refused(in_process: InProcessEngine) -> None:
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict({"execution.runtime-mode": "batch"})
    )
    env.from_source(SequenceSource(10), WatermarkStrategy.no_watermarks(), "numbers").print()
    with pytest.raises(ProgramError, match="the source 'numbers' is not bounded"):
        env.execute()


def test_a_batch_does_not_start_from_a_snapshot(in_process: InProcessEngine, tmp_path: Path) -> None:
    env, rows = program(tmp_path, 1, **{"execution.state-recovery.path": "/somewhere/chk-1"})
    rows.print()
    with pytest.raises(ProgramError, match="a batch begins with its input"):
        env.execute()


def test_a_batch_takes_neither_checkpoints_nor_savepoints(in_process: InProcessEngine, tmp_path: Path) -> None:
    asked = threading.Event()

    def wait(spec: EpochSpec) -> None:
        assert asked.wait(60)

    in_process.before_epoch = wait
    env, rows = program(tmp_path, 2)
    write(rows, tmp_path / "out")
    job = env.execute_async("rows")
    target = str(tmp_path / "savepoints")
    for future in (job.trigger_savepoint(target), job.stop_with_savepoint(False, target), job.trigger_checkpoint()):
        with pytest.raises(CheckpointError, match=r"Job 'rows' \(job\) runs in BATCH mode"):
            future.result()
    asked.set()
    job.get_job_execution_result().result()
    assert published(tmp_path / "out") == sorted(ROWS) and not Path(target).exists()


def test_automatic_is_batch_where_all_sources_are_bounded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    env, rows = program(tmp_path, 1, RuntimeExecutionMode.AUTOMATIC)
    with caplog.at_level(logging.INFO, logger="holdfast"):
        assert env.job_settings().batch
    assert "its checkpoint interval has no effect" in caplog.text
    rows.union(env.from_source(SequenceSource(10), WatermarkStrategy.no_watermarks(), "numbers", PAIR))
    assert not env.job_settings().batch
    assert env.job_settings().checkpoint.enabled


@pytest.mark.parametrize(
    ("rows", "type_info", "position", "expected"),
    [
        ([3, 1, 2], Types.LONG(), 0, {"sum": 6, "min": 1, "max": 3, "min_by": 1, "max_by": 3}),
        ([3, 1, 2], None, 0, {"sum": 6, "min": 1, "max": 3, "min_by": 1, "max_by": 3}),
        (
            [("a", 3), ("b", 1), ("c", 3)],
            Types.TUPLE([Types.STRING(), Types.LONG()]),
            1,
            {"sum": ("a", 7), "min": ("a", 1), "max": ("a", 3), "min_by": ("b", 1), "max_by": ("a", 3)},
        ),
        (
            [Row(n="a", v=3), Row(n="b", v=1)],
            Types.ROW_NAMED(["n", "v"], [Types.STRING(), Types.LONG()]),
            "v",
            {"sum": Row(n="a", v=4), "max_by": Row(n="a", v=3), "min_by": Row(n="b", v=1)},
        ),
        ([Row(n="a", v=3), Row(n="b", v=1)], None, "v", {"sum": Row(n="a", v=4), "min_by": Row(n="b", v=1)}),
    ],
)
def test_aggregations(
    in_process: InProcessEngine,
    tmp_path: Path,
    rows: list[Any],
    type_info: Any,
    position: Any,
    expected: dict[str, Any],
) -> None:
    for name, result in expected.items():
        env, _ = program(tmp_path, 2, **{"holdfast.job-id": name})
        keyed = env.from_collection(rows, type_info).key_by(lambda row: 0, Types.LONG())
        assert getattr(keyed, name)(position).execute_and_collect(limit=9) == [result]


def test_positions_that_rows_do_not_have(tmp_path: Path) -> None:
    env, rows = program(tmp_path, 1)
    keyed = rows.key_by(lambda row: row[0], Types.LONG())
    for position in (2, -1, "f2"):
        with pytest.raises(ProgramError, match=r"have no field .*; they have 0 to 1, named f0, f1"):
            keyed.sum(position)
    with pytest.raises(ProgramError, match="have no fields"):
        env.from_collection([1], Types.LONG()).key_by(lambda row: row).sum(1)
    with pytest.raises(TypeError, match="is a number or its name"):
        keyed.sum(1.5)
