"""Queries in whole jobs without Spark, with a function of Arrow in the place of SQL: failures, restores, and tasks that
run twice. Rows leave their envelopes and come back as in a task of Spark's.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from copy import copy
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from holdfast.common import Instant, Row, Time, TimestampColumn, Types, WatermarkStrategy
from holdfast.datastream import DataStream, ProcessFunction, ProcessWindowFunction, StreamExecutionEnvironment
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.window import TumblingEventTimeWindows
from holdfast.errors import JobExecutionError, ProgramError
from holdfast.runtime.envelope import COORDINATOR_EDGE, Envelope
from holdfast.runtime.epoch import Acknowledgement, EpochSpec, RestoredJob, senders_of
from holdfast.runtime.operator import MIN_WATERMARK
from holdfast.runtime.plan import JobPlan
from holdfast.runtime.query import Query
from holdfast.runtime.set_aside import SetAside
from holdfast.runtime.task import TaskRun, read_acknowledgement
from holdfast.spark.failures import FailedBefore, TaskFailure
from holdfast.spark.query_task import past_query, rows_in_front
from holdfast.testing import in_process as in_process_module
from holdfast.testing.chaos.processes import wait_until
from holdfast.testing.in_process import InProcessEngine
from holdfast.types.information import RowTypeInfo
from holdfast.types.resolve import resolve
from tests.integration.programs import Scripted, environment, published

ORDER = Types.ROW_NAMED(["id", "user", "millis"], [Types.LONG(), Types.STRING(), Types.LONG()])
EPOCHS, ROWS = 6, 10


def dear(rows: pa.RecordBatch) -> pa.RecordBatch:
    """SELECT id, user FROM orders WHERE id % 3 <> 0"""
    kept = rows.filter(pc.not_equal(pc.subtract(rows["id"], pc.multiply(pc.divide(rows["id"], 3), 3)), 0))
    return kept.select(["id", "user"])


def twice(rows: pa.RecordBatch) -> pa.RecordBatch:
    """SELECT user, at, explode(array(1, 2)) AS place FROM orders"""
    places = pa.array([1, 2] * len(rows), pa.int64())
    twice = rows.take(pa.array([place for place in range(len(rows)) for _ in range(2)], pa.int64()))
    return pa.RecordBatch.from_arrays([twice["user"], twice["at"], places], names=["user", "at", "place"])


#: What comes of a query, and the columns that it has.
QUERIES: dict[str, tuple[Callable[[pa.RecordBatch], pa.RecordBatch], str]] = {
    "dear": (dear, "id long, user string"),
    "twice": (twice, "user string, at timestamp, place long"),
    "all": (lambda rows: rows.select(["id", "user"]), "id long, user string"),
}


class QueryingEngine(InProcessEngine):
    def analyse(self, text: str, views: Any) -> Query:
        row_type = resolve(QUERIES[text][1])
        assert isinstance(row_type, RowTypeInfo)
        return Query(text, views[-1], row_type)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    numbers = itertools.count()

    def run_tasks(
        plan: JobPlan,
        spec: EpochSpec,
        restored: RestoredJob | None,
        clock: Callable[[], int],
        extra: Sequence[Envelope] = (),
        repeated: Collection[tuple[int, int]] = (),
    ) -> list[Acknowledgement]:
        """As that of ``holdfast.testing``, with queries in front of their levels."""
        arriving: list[Envelope] = []
        for level in plan.levels:
            leaving: list[Envelope] = []
            random.Random(level).shuffle(arriving)
            senders = senders_of(level, plan.levels, plan.slots, spec.partitions)
            for slot in range(plan.slots):
                mine = sorted((e for e in arriving if e.slot == slot), key=lambda e: (e.edge, e.channel, e.number))
                for _ in range(2 if (level, slot) in repeated else 1):
                    task, envelopes = TaskRun(plan, level, slot, spec, lambda: restored, clock), map(copy, mine)
                    chain = plan.queried_at(level)
                    if chain is None or chain.query is None:
                        sent = list(task.run(envelopes, senders))
                        continue
                    path = tmp_path / f"aside-{next(numbers)}"
                    with SetAside(path, plan.options.secret) as aside:
                        given = list(rows_in_front(envelopes, plan, level, slot, aside))
                    results = [QUERIES[chain.query.text][0](rows) for rows in given]
                    past = past_query(path, plan.options.secret)
                    try:
                        sent = list(task.run(past, senders, filter(len, results)))
                    except FailedBefore as failed:
                        # What the driver makes of it when it has come through the exchange.
                        raise TaskFailure.decode(str(failed)).restored() from None
                leaving += sent
            arriving = leaving
        return [read_acknowledgement(bytes(memoryview(e.payload))) for e in arriving if e.edge == COORDINATOR_EDGE]

    monkeypatch.setattr(in_process_module, "run_tasks", run_tasks)
    with QueryingEngine().installed() as engine:
        yield engine


def orders() -> list[list[Row]]:
    make = Row.factory(["id", "user", "millis"])
    return [
        [make([n, "abc"[n % 3], n * 1_000]) for n in range(epoch * ROWS, epoch * ROWS + ROWS)]
        for epoch in range(EPOCHS)
    ]


def order_stream(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_source(Scripted(orders()), WatermarkStrategy.no_watermarks(), "orders", ORDER)


def checkpointed(tmp_path: Path, **changes: str) -> StreamExecutionEnvironment:
    return environment(
        **{
            "holdfast.job-id": "queries",
            "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
            "execution.checkpointing.interval": "10 ms",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "9",
            "restart-strategy.fixed-delay.delay": "1 ms",
            **changes,
        }
    )


def failing_in(*epochs: int) -> Callable[[EpochSpec], None]:
    """Once in each: the tasks are done, and the driver never hears of it."""
    left = set(epochs)

    def fail(spec: EpochSpec) -> None:
        if spec.epoch in left:
            left.remove(spec.epoch)
            raise RuntimeError(f"lost epoch {spec.epoch}")

    return fail


def count_of_user(row: Row, seen: int | None) -> tuple[Row, int]:
    seen = (seen or 0) + 1
    return Row.factory(["user", "n"])([row.user, seen]), seen


def test_counts_behind_a_query_over_failures(engine: QueryingEngine, tmp_path: Path) -> None:
    """And rows of another edge, which cross the query's level."""
    engine.after_epoch = failing_in(2, 4)
    engine.before_epoch = failing_in(3)
    engine.repeated = lambda spec: [(1, 0), (1, 1)] if spec.epoch % 2 else []
    env = checkpointed(tmp_path)
    stream = order_stream(env)
    env.create_temporary_view("orders", stream.rebalance())
    counted_type = Types.ROW_NAMED(["user", "n"], [Types.STRING(), Types.LONG()])
    counts = env.sql("dear").key_by(lambda row: row.user, Types.STRING())
    counts.map_with_state(count_of_user, state_type=int, output_type=counted_type).sink_to(
        FileSink.json(str(tmp_path / "counts"))
    )
    env.create_temporary_view("again", stream.rebalance())
    negated = stream.map(lambda row: Row(id=-row.id), "id long")
    both = env.sql("all").map(lambda row: Row(id=row.id), "id long").union(negated)
    both.rebalance().sink_to(FileSink.json(str(tmp_path / "both")))
    history = env.execute("queries").get_history()
    assert history.restarts == 3
    kept = Counter(row.user for epoch in orders() for row in epoch if row.id % 3)
    assert published(tmp_path / "counts") == sorted((user, n + 1) for user in kept for n in range(kept[user]))
    numbers = range(EPOCHS * ROWS)
    assert published(tmp_path / "both") == sorted([(n,) for n in numbers] + [(-n,) for n in numbers])


NANOSECONDS = Types.ROW_NAMED(["id", "user", "at"], [Types.LONG(), Types.STRING(), Types.INSTANT()])


def test_a_row_that_sql_cannot_take_ends_the_job_at_once_as_what_it_is(engine: QueryingEngine, tmp_path: Path) -> None:
    """Rows of the same task are through the query by then."""
    env = checkpointed(tmp_path)
    instants = order_stream(env).map(
        lambda row: Row(id=row.id, user=row.user, at=Instant(row.id, row.id // 25)), NANOSECONDS
    )
    env.create_temporary_view("orders", instants.rebalance())
    env.sql("all").print()
    client = env.execute_async("instants")
    with pytest.raises(JobExecutionError) as caught:
        client.get_job_execution_result().result(60)
    failure = caught.value.__cause__
    assert type(failure) is ProgramError and client.get_history().attempt == 1
    assert "view 'orders' is not one of Spark's" in str(failure) and "{" not in str(caught.value)


class CountRows(ProcessWindowFunction):
    def process(self, key: str, context: Any, elements: Any) -> Any:
        yield Row.factory(["user", "n", "at"])([key, len(list(elements)), context.window().start])


@pytest.mark.parametrize("failing", [(), (3, 5)])
def test_windows_behind_a_query_close_with_the_watermark_in_front_of_it(
    engine: QueryingEngine, tmp_path: Path, failing: tuple[int, ...]
) -> None:
    engine.after_epoch = failing_in(*failing)
    env = checkpointed(tmp_path)
    count_in_windows(env, order_stream(env), tmp_path)
    history = env.execute("windows").get_history()
    assert history.restarts == len(failing)
    assert published(tmp_path / "counts") == counts_in_windows()


def count_in_windows(env: StreamExecutionEnvironment, stream: DataStream, tmp_path: Path) -> None:
    """Windows behind a query, in whose task the watermark in front of it waits for the next epoch."""
    in_order = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(TimestampColumn("millis"))
    timed = stream.uid("orders").assign_timestamps_and_watermarks(in_order).uid("times").rebalance()
    env.create_temporary_view("orders", timed, event_time_column="at")
    rows = env.sql("twice").uid("twice")
    windows = rows.key_by(lambda row: row.user, Types.STRING()).window(TumblingEventTimeWindows.of(Time.seconds(5)))
    counted_type = Types.ROW_NAMED(["user", "n", "at"], [Types.STRING(), Types.LONG(), Types.LONG()])
    counts = windows.process(CountRows(), counted_type).uid("counts")
    counts.sink_to(FileSink.json(str(tmp_path / "counts"))).uid("out")


def counts_in_windows() -> list[tuple[str, int, int]]:
    """What ``count_in_windows`` must publish."""
    rows = Counter((row.user, row.millis // 5_000 * 5_000) for epoch in orders() for row in epoch for _ in range(2))
    return sorted((user, n, at) for (user, at), n in rows.items())


@pytest.mark.parametrize("parallelism", [1, 2, 5])
@pytest.mark.parametrize("stopped", [False, True], ids=["failed", "stopped-with-a-savepoint"])
def test_a_job_with_a_query_goes_on_at_another_parallelism(
    engine: QueryingEngine, tmp_path: Path, parallelism: int, stopped: bool
) -> None:
    """In the middle of windows, and with the watermark of rows that went through the query."""
    settings = {"restart-strategy.type": "none", "execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints")}
    env = checkpointed(tmp_path, **settings)
    engine.before_epoch = lambda spec: (
        None if stopped or spec.epoch < 5 else (_ for _ in ()).throw(ProgramError("to be corrected"))
    )
    given = env.from_source(Scripted(orders()[:3], ends=False), WatermarkStrategy.no_watermarks(), "orders", ORDER)
    count_in_windows(env, given, tmp_path)
    client = env.execute_async("first")
    changes = {}
    if stopped:
        wait_until(lambda: len(engine.epochs) >= 4 or None, 30, "all rows of the first run")
        changes["execution.state-recovery.path"] = client.stop_with_savepoint(False).result(30)
    with nullcontext() if stopped else pytest.raises(JobExecutionError, match="to be corrected"):
        client.get_job_execution_result().result(30)
    before = published(tmp_path / "counts")
    assert before and len(before) < len(counts_in_windows())

    engine.before_epoch = lambda spec: None
    env = checkpointed(tmp_path, **settings, **changes).set_parallelism(parallelism)
    count_in_windows(env, order_stream(env), tmp_path)
    env.execute("second")
    assert published(tmp_path / "counts") == counts_in_windows()


@pytest.mark.parametrize("query", ["twice", "dear"])
def test_the_watermark_behind_a_query_is_that_of_the_epochs_before(engine: QueryingEngine, query: str) -> None:
    """Where the query passes the column on. Without it rows have no event time, and no watermark but at the end."""
    env = environment()
    in_order = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(TimestampColumn("millis"))
    timed = order_stream(env).assign_timestamps_and_watermarks(in_order).rebalance()
    env.create_temporary_view("orders", timed, event_time_column="at")
    stream = env.sql(query).rebalance().process(Seen(), Types.TUPLE([Types.LONG(), Types.BOOLEAN()]))
    with stream.execute_and_collect() as rows:
        seen = set(rows)
    # Two subtasks give rows their times in turn, and the one with the older newest row is what counts.
    ends = [(epoch * ROWS - 2) * 1_000 - 1 for epoch in range(1, EPOCHS)]
    timed_query = query == "twice"
    assert seen == {(mark, timed_query) for mark in [MIN_WATERMARK, *(ends if timed_query else ())]}


class Seen(ProcessFunction):
    """The watermark that each row finds, and whether it has a time."""

    def process_element(self, value: Row, ctx: Any) -> Any:
        yield ctx.timer_service().current_watermark(), ctx.timestamp() is not None
