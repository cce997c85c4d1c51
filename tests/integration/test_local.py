"""Whole jobs on local Spark: results, timers, sources, restores."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Duration, Row, Types, WatermarkStrategy
from holdfast.common.watermark_strategy import TimestampAssigner
from holdfast.datastream import (
    CheckpointedFunction,
    CheckpointListener,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeyedProcessFunction,
    MapFunction,
    RuntimeContext,
)
from holdfast.datastream.connectors.file_system import FileSink, FileSource
from holdfast.datastream.connectors.number_seq import NumberSequenceSource
from holdfast.datastream.state import ValueStateDescriptor
from holdfast.errors import CheckpointError
from holdfast.testing.chaos.processes import wait_until
from tests.integration.programs import (
    PAIR,
    CountUntilTimer,
    CountWithKeyedState,
    Scripted,
    averages,
    environment,
    published,
)

pytestmark = pytest.mark.usefixtures("spark")

BACKENDS = pytest.mark.parametrize("backend", ["heap", "lmdb"])


@pytest.mark.parametrize(
    ("backend", "checkpoints"),
    [("heap", False), ("heap", True), ("lmdb", False), ("lmdb", True), ("rocksdb", True)],
)
def test_average_of_every_three_values(backend: str, checkpoints: bool, tmp_path: Path) -> None:
    rows = [(i % 7, i * i) for i in range(500)]
    settings = {"state.backend": backend, "holdfast.epoch.max-rows": "200"}
    if checkpoints:
        settings |= {"execution.checkpointing.interval": "10 ms", "execution.checkpointing.dir": str(tmp_path)}
    env = environment(**settings)
    stream = env.from_collection(rows, type_info=PAIR).key_by(lambda row: row[0]).flat_map(CountWithKeyedState(), PAIR)
    assert sorted(stream.execute_and_collect()) == averages(rows)


class FromField(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return value[1]


def fired_by(rows: list[tuple[int, int]], bound: int) -> list[tuple[int, int, int]]:
    """What ``CountUntilTimer`` must give on one channel, however its rows are cut into epochs and spread over
    subtasks.
    """
    counts: dict[int, int] = {}
    timers: set[tuple[int, int]] = set()
    out = []
    highest = None
    for key, timestamp in [*rows, (-1, 1 << 62)]:
        for timer, owner in sorted(timers):
            if highest is not None and timer <= (highest - bound - 1 if key >= 0 else timestamp):
                timers.remove((timer, owner))
                out.append((owner, counts[owner], timer))
        counts[key] = counts.get(key, 0) + 1
        timers.add((timestamp - timestamp % 60_000 + 60_000, key))
        highest = max(timestamp, highest or timestamp)
    return out


@BACKENDS
def test_event_time_timers_fire_once_in_time_order(backend: str) -> None:
    rows = [(key, minute * 60_000 + key * 100) for minute in range(6) for key in range(4)]
    env = environment(**{"state.backend": backend, "holdfast.epoch.max-rows": "8"})
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(50)).with_timestamp_assigner(
        FromField()
    )
    stream = (
        env.from_collection(rows, type_info=PAIR)
        .assign_timestamps_and_watermarks(strategy)
        .set_parallelism(1)
        .key_by(lambda row: row[0])
    )
    out = list(stream.process(CountUntilTimer()).execute_and_collect())
    assert sorted(out) == sorted(fired_by(rows, bound=50))
    for key in range(4):
        times = [timestamp for k, _, timestamp in out if k == key]
        assert times == sorted(times)


class Alarm(KeyedProcessFunction):
    def process_element(self, value: tuple[int, int], ctx: KeyedProcessFunction.Context) -> None:
        service = ctx.timer_service()
        service.register_processing_time_timer(service.current_processing_time() + value[1])

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> list[Any]:
        return [(ctx.get_current_key(), time.time() * 1000 - timestamp)]


def test_processing_time_timers_fire_on_an_idle_source(tmp_path: Path) -> None:
    env = environment(
        **{
            "holdfast.epoch.idle-wait": "60 s",
            "execution.checkpointing.interval": "1 s",
            "execution.checkpointing.dir": str(tmp_path),
        }
    )
    source = Scripted([[(1, 200), (2, 2_500)]], ends=False)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "script").key_by(lambda row: row[0])
    with stream.process(Alarm(), Types.TUPLE([Types.LONG(), Types.DOUBLE()])).execute_and_collect() as rows:
        fired = [next(rows), next(rows)]
    assert [key for key, _ in fired] == [1, 2]
    # The idle wait is a minute: only timers and checkpoints can have woken the job.
    assert all(0 <= late < 30_000 for _, late in fired)


def test_a_bounded_data_frame_is_read_by_spark(spark: Any) -> None:
    frame = spark.range(0, 1000).selectExpr("id % 10 AS key", "id AS value")
    env = environment()
    stream = (
        env.from_data_frame(frame)
        .key_by("key")
        .map_with_state(lambda row, count: ((row.key, (count or 0) + 1), (count or 0) + 1), int, PAIR)
    )
    out = list(stream.execute_and_collect())
    assert sorted(out) == sorted((key, place) for key in range(10) for place in range(1, 101))


def test_union_chains_and_other_parallelism() -> None:
    env = environment()
    low = env.from_source(NumberSequenceSource(0, 99), WatermarkStrategy.no_watermarks(), "low")
    high = env.from_collection(list(range(100, 150)), Types.LONG())
    doubled = low.union(high).filter(lambda n: n % 2 == 0).map(lambda n: (n % 3, n * 2), PAIR).set_parallelism(1)
    totals = doubled.key_by(lambda row: row[0], Types.INT()).reduce(lambda a, b: (a[0], a[1] + b[1]))
    out = list(totals.execute_and_collect())
    even = [n for n in range(150) if n % 2 == 0]
    assert len(out) == len(even)
    assert {key: max(t for k, t in out if k == key) for key, _ in out} == {
        key: sum(2 * n for n in even if n % 3 == key) for key in range(3)
    }


def test_files_in_and_out_by_column_key(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(3):
        lines = [f'{{"name": "k{i % 5}", "value": {i}}}' for i in range(number * 40, number * 40 + 40)]
        (tmp_path / "in" / f"{number}.json").write_text("\n".join(lines) + "\n")
    env = environment(
        **{
            "execution.checkpointing.interval": "10 ms",
            "execution.checkpointing.dir": str(tmp_path / "chk"),
            "holdfast.epoch.max-rows": "30",
        }
    )
    source = FileSource.json(str(tmp_path / "in"), "name STRING, value BIGINT", bounded=True)
    named = Types.ROW_NAMED(["name", "total"], [Types.STRING(), Types.LONG()])
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "files").key_by("name")
    totals = stream.map_with_state(
        lambda row, s: (Row(name=row.name, total=(s or 0) + row.value), (s or 0) + row.value), int, named
    )
    totals.sink_to(FileSink.json(str(tmp_path / "out")))
    env.execute("files")
    out = published(tmp_path / "out")
    assert len(out) == 120
    assert {name: max(t for n, t in out if n == name) for name, _ in out} == {
        f"k{k}": sum(range(k, 120, 5)) for k in range(5)
    }


class Numbered(MapFunction, CheckpointListener):
    """Counts in ``self``, keeps what cannot be pickled, and is notified of checkpoints."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.opened = getattr(self, "opened", 0) + 1
        self.count = 0
        self.connection = (n for n in ())  # generators cannot be pickled
        self.completed: list[int] = []

    def map(self, value: int) -> tuple[int, int]:
        self.count += 1
        next(self.connection, None)
        return value, self.count

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.completed.append(checkpoint_id)


@pytest.mark.slow
def test_fields_live_for_an_attempt_over_fifty_epochs() -> None:
    env = environment()
    epochs = [[n] for n in range(50)]
    client_rows = (
        env.from_source(Scripted(epochs), WatermarkStrategy.no_watermarks(), "script").rebalance().map(Numbered(), PAIR)
    )
    out = list(client_rows.set_parallelism(1).execute_and_collect())
    assert out == [(n, n + 1) for n in range(50)]


def test_a_single_subtask_stays_in_its_process() -> None:
    """Spark ends a process that leaves some of its input unread. A partition without a slot must not do so either."""
    env = environment().set_parallelism(1)
    numbers = env.from_source(Scripted([[(n, n)] for n in range(8)]), WatermarkStrategy.no_watermarks(), "script", PAIR)
    processes = numbers.key_by(lambda row: row[0]).map(lambda row: os.getpid(), Types.LONG())
    assert len(set(processes.execute_and_collect())) == 1


def test_a_new_job_starts_from_the_checkpoint_of_another(tmp_path: Path) -> None:
    rows = [(i % 3, i) for i in range(90)]
    settings = {
        "execution.checkpointing.interval": "10 ms",
        "execution.checkpointing.dir": str(tmp_path / "chk"),
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "holdfast.epoch.idle-wait": "50 ms",
    }

    def program(env: Any, epochs: list[list[Any]], ends: bool, out: str) -> Any:
        source = env.from_source(Scripted(epochs, ends), WatermarkStrategy.no_watermarks(), "script").uid("source")
        counted = source.key_by(lambda row: row[0]).flat_map(CountWithKeyedState(), PAIR).uid("average")
        counted.sink_to(FileSink.json(str(tmp_path / out))).uid("sink")
        return env.execute_async("job")

    first = program(environment(**settings), [rows[:40], rows[40:46]], False, "out")
    deadline = time.monotonic() + 120
    while len(published(tmp_path / "out")) < len(averages(rows[:46])) and time.monotonic() < deadline:
        time.sleep(0.1)
    first.cancel().result()
    (checkpoint,) = (tmp_path / "chk").glob("*/chk-*")
    second = environment(**settings, **{"execution.state-recovery.path": str(checkpoint)}).set_parallelism(3)
    program(second, [rows[:40], rows[40:46], rows[46:]], True, "out").get_job_execution_result().result()
    assert published(tmp_path / "out") == averages(rows)


def test_at_least_once_publishes_at_the_end_of_each_epoch(tmp_path: Path) -> None:
    env = environment(
        **{
            "execution.checkpointing.interval": "1 h",
            "execution.checkpointing.dir": str(tmp_path / "chk"),
            "execution.checkpointing.mode": "AT_LEAST_ONCE",
            "holdfast.epoch.idle-wait": "50 ms",
        }
    )
    env.from_source(Scripted([[(1, 1)], [(2, 2)]], ends=False), WatermarkStrategy.no_watermarks(), "script").map(
        lambda r: r, PAIR
    ).sink_to(FileSink.json(str(tmp_path / "out")))
    client = env.execute_async("job")
    deadline = time.monotonic() + 60
    while len(published(tmp_path / "out")) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    client.cancel().result()
    assert published(tmp_path / "out") == [(1, 1), (2, 2)]
    assert not list((tmp_path / "chk").glob("*/chk-*")), "no checkpoint was due"


class FailsOnce(MapFunction):
    def __init__(self, marker: Path, at: int) -> None:
        self.marker, self.at = marker, at

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.LONG()))

    def map(self, value: tuple[int, int]) -> tuple[int, int]:
        if value[1] == self.at and not self.marker.exists():
            self.marker.touch()
            raise ValueError("once")
        count = (self.seen.value() or 0) + 1
        self.seen.update(count)
        return value[0], count


def test_a_restart_without_checkpoints_begins_again_with_nothing_published(tmp_path: Path) -> None:
    rows = [(i % 2, i) for i in range(60)]
    env = environment(
        **{
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.delay": "10 ms",
            "holdfast.epoch.max-rows": "20",
        }
    )
    keyed = env.from_collection(rows, PAIR).key_by(lambda row: row[0])
    keyed.map(FailsOnce(tmp_path / "marker", 45), PAIR).sink_to(FileSink.json(str(tmp_path / "out")))
    history = env.execute("restarted").get_history()
    assert history.restarts == 1
    assert next(e.epoch for e in history.epochs if e.attempt == 2) == 1
    assert published(tmp_path / "out") == sorted((key, place) for key in range(2) for place in range(1, 31))


class Hanging(MapFunction, CheckpointedFunction):
    """A function whose snapshot is never taken: as when what it writes to does not answer."""

    def __init__(self, marker: Path) -> None:
        self._marker = marker

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """It has none."""

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self._marker.touch()
        time.sleep(600)

    def map(self, value: Any) -> Any:
        return value


def test_a_job_that_hangs_in_its_last_snapshot_can_be_cancelled(tmp_path: Path) -> None:
    env = environment(**{"execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints")})
    source = env.from_source(Scripted([[(1, 1)]], ends=False), WatermarkStrategy.no_watermarks(), "script")
    source.map(Hanging(tmp_path / "hanging"), PAIR).sink_to(FileSink.json(str(tmp_path / "out")))
    client = env.execute_async("hanging")
    wait_until(lambda: client.get_history().epochs or None, 60, "an epoch")
    stopped = client.stop_with_savepoint(False)
    wait_until(lambda: (tmp_path / "hanging").exists() or None, 60, "a task that hangs")
    client.cancel().result(30)
    assert client.get_job_status().result().name == "CANCELED"
    with pytest.raises(CheckpointError):
        stopped.result(0)
