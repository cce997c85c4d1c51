"""Streams of Spark's whose event time is what ``withWatermark()`` says, and what Spark combines of them by panes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pyspark.sql import functions as F

from holdfast.common import JobClient, Types
from holdfast.datastream import DataStream, ProcessFunction, RuntimeExecutionMode
from holdfast.datastream.aggregates import Count, Max, Sum
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows, TumblingProcessingTimeWindows
from holdfast.errors import JobExecutionError
from holdfast.runtime.aggregates import Aggregation
from holdfast.runtime.event_time_column import EventTimeColumn
from holdfast.runtime.local_aggregation import Combination, Panes
from holdfast.runtime.row_path import RowPath
from holdfast.spark import slices
from holdfast.spark.partial_aggregation import CombiningPlan, plan_to_combine
from holdfast.types.resolve import resolve
from tests.integration.programs import environment, published
from tests.integration.test_combining import checked_arithmetic, run_over_kills, setting  # noqa: F401 - a fixture
from tests.integration.windowed_stream_job import (
    AGGREGATES,
    DELAY,
    OFFSET,
    SIZE,
    SLIDE,
    expected,
    rows_of,
    timed,
    write_input,
)
from tests.kit.arrow_rows import arrow_rows
from tests.kit.properties import examples

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.slow]

PROGRAM = Path(__file__).with_name("windowed_stream_job.py")
FILES = 6
#: Of tests that look at what was asked of Spark.
NEEDS_HALF_AGGREGATIONS = pytest.mark.spark(internals=True, reason="without them Spark is not asked to combine")
WINDOWS = SlidingEventTimeWindows.of(SIZE, SLIDE, OFFSET)


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[CombiningPlan | None]:
    """What was asked of Spark."""
    found: list[CombiningPlan | None] = []

    def noted(*arguments: Any) -> CombiningPlan | None:
        found.append(plan_to_combine(*arguments))
        return found[-1]

    monkeypatch.setattr(slices, "plan_to_combine", noted)
    return found


def stream(spark: Any, directory: Path) -> DataStream:
    write_input(directory / "in", FILES)
    env = environment(**{"holdfast.stream.available-now": "true"})
    return env.from_data_frame(timed(spark, directory / "in"), "files")


def collected(results: DataStream) -> list[tuple[Any, ...]]:
    with results.execute_and_collect() as rows:
        return sorted(tuple(row) for row in rows)


@NEEDS_HALF_AGGREGATIONS
@pytest.mark.parametrize("keyed", [True, False])
def test_spark_combines_the_rows_of_panes(spark: Any, tmp_path: Path, plans: list[Any], keyed: bool) -> None:
    rows = stream(spark, tmp_path)
    windows: Any = rows.key_by("k").window(WINDOWS) if keyed else rows.window_all(WINDOWS)
    assert collected(windows.aggregate(**AGGREGATES)) == expected(FILES, keyed)
    (plan,) = plans
    assert plan is not None and plan.columns.starts is not None


@NEEDS_HALF_AGGREGATIONS
def test_arrow_combines_where_spark_s_sums_would_go_around(spark: Any, tmp_path: Path, plans: list[Any]) -> None:
    with setting(spark, "spark.sql.ansi.enabled", "false"):
        found = collected(stream(spark, tmp_path).key_by("k").window(WINDOWS).aggregate(**AGGREGATES))
    assert found == expected(FILES)
    assert plans == [None]


def test_rows_that_are_not_combined(spark: Any, tmp_path: Path) -> None:
    rows = stream(spark, tmp_path)
    rows.get_execution_environment().row_path = RowPath(combine=False)
    assert collected(rows.key_by("k").window(WINDOWS).aggregate(**AGGREGATES)) == expected(FILES)


def test_behind_other_functions(spark: Any, tmp_path: Path) -> None:
    """Event times pass through them, into windows that get combined rows from their subtasks."""
    row_type = Types.ROW_NAMED(["k", "v"], [Types.STRING(), Types.LONG()])
    mapped = stream(spark, tmp_path).map(lambda row: row[1:], row_type)
    assert collected(mapped.key_by("k").window(WINDOWS).aggregate(**AGGREGATES)) == expected(FILES)


class TimesOf(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[tuple[str, int, int]]:
        yield value.k, ctx.timestamp(), ctx.timer_service().current_watermark()


def test_times_and_watermarks_of_rows(spark: Any, tmp_path: Path) -> None:
    row_type = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
    found = collected(stream(spark, tmp_path).process(TimesOf(), row_type))
    newest, wanted = -(1 << 63) + DELAY + 1, []
    for file in map(rows_of, range(FILES)):
        wanted += [(key, time, newest - DELAY - 1) for key, _, time in file]
        newest = max(newest, *(time for _, _, time in file))
    assert found == sorted(wanted)


def test_a_window_fires_in_the_epoch_whose_rows_end_it(spark: Any, tmp_path: Path) -> None:
    """Not in the one behind it, which may be long in coming."""
    write_input(tmp_path / "in", FILES)
    env = environment(**{"holdfast.stream.available-now": "true"})
    files = env.from_data_frame(timed(spark, tmp_path / "in"), "files")
    seen = []

    def note(rows: Any, batch_id: int) -> None:
        seen.append(sorted({row.window_end for row in rows.collect()}))

    windows = files.key_by("k").window(TumblingEventTimeWindows.of(10))
    windows.aggregate(rows=Count()).for_each_batch(note, str(tmp_path / "staging"))
    env.execute()
    newest = max(time for _, _, time in rows_of(0))
    assert max(seen[0]) == (newest - DELAY) // 10 * 10


def test_allowed_lateness_lets_each_late_row_fire(spark: Any, tmp_path: Path, plans: list[Any]) -> None:
    windows = stream(spark, tmp_path).key_by("k").window(TumblingEventTimeWindows.of(SIZE)).allowed_lateness(1_000)
    found = collected(windows.aggregate(rows=Count()))
    wanted, counts, newest = [], dict[tuple[str, int], int](), -(1 << 62)
    for file in map(rows_of, range(FILES)):
        for key, _, time in file:
            start = time // SIZE * SIZE
            counts[key, start] = counts.get((key, start), 0) + 1
            if start + SIZE <= newest - DELAY:
                wanted.append((key, start, start + SIZE, counts[key, start]))
        before, newest = newest, max(newest, *(time for _, _, time in file))
        ended = [one for one in counts if before - DELAY < one[1] + SIZE <= newest - DELAY]
        wanted += [(key, start, start + SIZE, counts[key, start]) for key, start in ended]
    wanted += [(key, at, at + SIZE, n) for (key, at), n in counts.items() if at + SIZE > newest - DELAY]
    assert found == sorted(wanted)
    assert not plans, "nothing to combine"


def test_two_streams_with_event_time(spark: Any, tmp_path: Path) -> None:
    """Their rows come in one query, and are told apart in its tasks; the slower one is event time behind both."""
    write_input(tmp_path / "in", FILES)
    env = environment(**{"holdfast.stream.available-now": "true"})
    row_type = Types.ROW_NAMED(["k", "v"], [Types.STRING(), Types.LONG()])
    one, other = (
        env.from_data_frame(timed(spark, tmp_path / "in"), name).map(lambda row: row[1:], row_type)
        for name in ("one", "other")
    )
    found = collected(one.union(other).key_by("k").window(WINDOWS).aggregate(rows=Count(), total=Sum("v")))
    assert found == [(*row[:3], 2 * row[3], None if row[5] is None else 2 * row[5]) for row in expected(FILES)]


def test_a_savepoint_with_another_parallelism(spark: Any, tmp_path: Path) -> None:
    """What was late before it is late behind it."""
    write_input(tmp_path / "in", FILES)

    def started(parallelism: int, **settings: str) -> JobClient:
        common = {
            "execution.checkpointing.dir": str(tmp_path / "chk"),
            "execution.checkpointing.interval": "10 ms",
            "pipeline.max-parallelism": "16",
        }
        env = environment(**common, **settings).set_parallelism(parallelism)
        windows = env.from_data_frame(timed(spark, tmp_path / "in"), "files").uid("files").key_by("k").window(WINDOWS)
        windows.aggregate(**AGGREGATES).uid("windows").sink_to(FileSink.json(str(tmp_path / "out"))).uid("sink")
        return env.execute_async("windows")

    first = started(2, **{"execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints")})
    while sum(epoch.rows > 0 for epoch in first.get_history().epochs) < 3:
        assert first.is_running()
        sleep(0.01)
    savepoint = first.stop_with_savepoint(False).result(60)
    first.get_job_execution_result().result(60)
    behind = {"execution.state-recovery.path": str(savepoint), "holdfast.stream.available-now": "true"}
    started(3, **behind).get_job_execution_result().result(60)
    assert sorted(published(tmp_path / "out")) == expected(FILES)


def test_of_no_rows_nothing_comes(spark: Any) -> None:
    """Spark's own result of no rows at all is a row."""
    empty = spark.range(0, 10, 1, 2).where("id * rand(1) < 0").selectExpr("id AS v")
    for windows in (TumblingProcessingTimeWindows.of(10**15), TumblingEventTimeWindows.of(10)):
        env = environment()
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
        assert collected(env.from_data_frame(empty).window_all(windows).aggregate(rows=Count(), total=Sum("v"))) == []


@NEEDS_HALF_AGGREGATIONS
def test_windows_by_the_clock_of_a_data_frame(spark: Any, plans: list[Any]) -> None:
    rows = spark.range(0, 1000, 1, 3).selectExpr("id % 2 AS k", "id AS v")
    env = environment()
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    windows = env.from_data_frame(rows).key_by("k").window(TumblingProcessingTimeWindows.of(10**15))
    found = collected(windows.aggregate(rows=Count(), most=Max("v")))
    assert [(key, *figures) for key, _, _, *figures in found] == [(0, 500, 998), (1, 500, 999)]
    (plan,) = plans
    assert plan is not None and plan.columns.starts is None


def test_rows_without_a_time_stop_windows(spark: Any, tmp_path: Path) -> None:
    write_input(tmp_path / "in", 1)
    frame = timed(spark, tmp_path / "in").withColumn("at", F.expr("nullif(at, at)"))
    frame = frame.withWatermark("at", "1 second")
    env = environment(**{"holdfast.stream.available-now": "true"})
    with pytest.raises(JobExecutionError, match="rows without event times came"):
        collected(env.from_data_frame(frame).key_by("k").window(WINDOWS).aggregate(rows=Count()))


def test_windows_of_spark_s_are_no_event_time(spark: Any) -> None:
    """They have the mark of the column that they are of."""
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    windows = rate.withWatermark("timestamp", "1 second").select(F.window("timestamp", "1 second"), "timestamp")
    assert EventTimeColumn.of(windows) == EventTimeColumn(1, 1000)
    assert EventTimeColumn.of(windows.select("window")) is None


def test_copies_of_the_column_of_event_time(spark: Any) -> None:
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    copied = rate.withWatermark("timestamp", "1 second").withColumn("copy", F.col("timestamp"))
    assert EventTimeColumn.of(copied) == EventTimeColumn(0, 1000)
    both = rate.withColumn("other", F.expr("timestamp + INTERVAL 1 HOUR")).withWatermark("other", "2 seconds")
    assert EventTimeColumn.of(both.withWatermark("timestamp", "1 second")) == EventTimeColumn(0, 1000)


ROWS = st.lists(
    st.tuples(
        st.sampled_from("ab"), st.none() | st.integers(-9, 9), st.integers(-(10**6), 10**6), st.integers(0, 999)
    ),
    max_size=30,
)


@hypothesis_settings(max_examples=examples(12), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS, size=st.integers(1, 10**5), offset=st.integers(-50, 50), keyed=st.booleans())
def test_panes_in_the_jvm(spark: Any, rows: list[Any], size: int, offset: int, keyed: bool) -> None:
    """Times around 1970 have their panes, to the microsecond."""
    micros = [(key, value, millis * 1000 + rest) for key, value, millis, rest in rows]
    frame = spark.createDataFrame(micros, "k string, v int, t long").repartition(2)
    frame = frame.selectExpr("k", "v", "timestamp_micros(t) AS at")
    column = EventTimeColumn(2, 5)
    wanted = Aggregation(resolve(frame.schema), ("k",) if keyed else (), (("rows", Count()), ("most", Max("v"))))
    plan = plan_to_combine(frame, Combination(wanted, Panes(size, offset % size)), column)
    assert plan is not None
    table = arrow_rows(plan.shape.data_frame(spark, plan.plan.execute())).combine_chunks()
    found = dict[Any, tuple[int, int | None, int]]()
    for batch in table.to_batches():
        combined = plan.columns.read(batch)
        assert combined.newest is not None and combined.times is not None
        columns = [*combined.columns, combined.newest, combined.times]
        for *key, count, most, newest, start in zip(*(each.to_pylist() for each in columns), strict=True):
            counted, greatest, latest = found.get((*key, start), (0, None, newest))
            numbers = [one for one in (most, greatest) if one is not None]
            found[(*key, start)] = counted + count, max(numbers, default=None), max(newest, latest)
    oracle = dict[Any, list[Any]]()
    for key, value, millis, _ in rows:
        start = millis - (millis - offset % size) % size
        oracle.setdefault((key, start) if keyed else (start,), []).append((value, millis))
    assert found == {
        at: (len(some), max((v for v, _ in some if v is not None), default=None), max(m for _, m in some))
        for at, some in oracle.items()
    }


def test_windows_over_a_killed_worker_and_a_killed_driver(tmp_path: Path) -> None:
    """Event time does not go back: what was late before a restore is late behind it."""
    files = 8
    write_input(tmp_path / "in", files)
    run_over_kills(PROGRAM, tmp_path)
    assert sorted(published(tmp_path / "out")) == expected(files)
