"""Edges that send one row for several, with several senders whose event times differ."""

from __future__ import annotations

import tempfile
from collections import Counter as Multiset
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.common import Configuration, Duration, Row, Types, WatermarkStrategy
from holdfast.common.watermark_strategy import TimestampAssigner
from holdfast.datastream import StreamExecutionEnvironment
from holdfast.datastream.aggregates import Average, Count, Max, Min, Sum
from holdfast.datastream.window import SlidingEventTimeWindows, TumblingProcessingTimeWindows
from holdfast.runtime import live_task
from holdfast.runtime.epoch import Acknowledgement
from holdfast.runtime.plan import JobPlan
from holdfast.runtime.row_path import RowPath
from tests.graph.programs import Program
from tests.kit.properties import examples
from tests.runtime.local_job import ListSink, LocalJob, plan_of, rows_of

EVENT = Types.ROW_NAMED(["key", "value", "time"], [Types.STRING(), Types.INT(), Types.LONG()])
PARALLELISM = 3


class TimeOf(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[2])


def program(
    directory: Path, rows: list[Row], by_key: bool, bound: int = 3, idle: bool = False, combine: bool = True
) -> JobPlan:
    """Rows are dealt out to three subtasks, which give them their times: each knows of its own rows alone."""
    env = StreamExecutionEnvironment(Configuration())
    env.row_path = RowPath(combine=combine, least_rows=4, least_timers=2)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound))
    if idle:
        strategy = strategy.with_idleness(Duration.of_millis(5))
    timed = (
        env.from_collection(rows, EVENT)
        .rebalance()
        .map(lambda row: row, EVENT)
        .assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(TimeOf()))
    )
    assigner = SlidingEventTimeWindows.of(20, 8)
    windows: Any = timed.key_by("key").window(assigner) if by_key else timed.window_all(assigner)
    figures = windows.aggregate(
        rows=Count(), values=Count("value"), total=Sum("value"), least=Min("value"), mean=Average("value")
    )
    figures.sink_to(ListSink())
    return planned(env, directory)


def planned(env: StreamExecutionEnvironment, directory: Path, parallelism: int = PARALLELISM) -> JobPlan:
    made = Program()
    made.graph = env.get_stream_graph()
    return plan_of(made, directory, "heap", parallelism)


def results(plan: JobPlan, epoch_rows: int, epochs: int) -> Multiset[str]:
    now = [0]
    job = LocalJob(plan, rows_per_subtask=epoch_rows, clock=lambda: now[0])
    out: list[Any] = []
    for _ in range(epochs):
        out += rows_of(job.run_epoch())
        now[0] += 3
    live_task.forget_live_tasks("job")
    return Multiset(map(repr, out))


EVENTS = st.lists(
    st.builds(Row, st.sampled_from("ab"), st.none() | st.integers(-9, 9), st.integers(0, 60)), min_size=1, max_size=60
)


@settings(max_examples=examples(60), deadline=None)
@given(EVENTS, st.booleans(), st.integers(1, 20), st.booleans(), st.booleans())
def test_several_senders(rows: list[Row], by_key: bool, epoch_rows: int, few_wait: bool, idle: bool) -> None:
    """A row that is late for whoever sends it is in time where another sender is behind, and must count there."""
    epochs = len(rows) // epoch_rows + 2
    with tempfile.TemporaryDirectory() as found:
        directory = Path(found)
        plan = program(directory / "combined", rows, by_key, idle=idle)
        if few_wait:
            plan = replace(plan, options=replace(plan.options, combining_rows=3))
        combined = results(plan, epoch_rows, epochs)
        each = results(program(directory / "each", rows, by_key, idle=idle, combine=False), epoch_rows, epochs)
    assert combined == each


def sent(acknowledgements: list[Acknowledgement], plan: JobPlan, name: str) -> tuple[int, int]:
    """The rows that one operator gave, and that the next one got."""
    names = {operator.operator_id: operator.name for operator in plan.operators()}
    found = [(names[p.operator_id], p) for a in acknowledgements for p in a.progress]
    given_out = sum(p.rows_out for which, p in found if which == name)
    return given_out, sum(p.rows_in for which, p in found if which == "Window Aggregate")


def test_one_row_is_sent_for_each_key_and_pane(tmp_path: Path) -> None:
    rows = [Row(key, 1, time) for time in range(8) for key in ("a", "b", "a", "a")]
    plan = program(tmp_path, rows, by_key=True, bound=100)
    job = LocalJob(plan, rows_per_subtask=1000)
    acknowledgements = job.run_epoch()
    # Three senders, two keys, times of two panes of four milliseconds.
    assert sent(acknowledgements, plan, "Timestamps/Watermarks") == (32, 3 * 2 * 2)


def test_windows_by_the_clock_get_one_row_for_each_key(tmp_path: Path) -> None:
    env = StreamExecutionEnvironment(Configuration())
    rows = [Row(key, value, 0) for value in range(10) for key in ("a", "b")]
    windows = env.from_collection(rows, EVENT).key_by("key").window(TumblingProcessingTimeWindows.of(10))
    windows.aggregate(rows=Count(), total=Sum("value"), most=Max("value")).sink_to(ListSink())
    now = [1]
    plan = planned(env, tmp_path, 1)
    job = LocalJob(plan, rows_per_subtask=10, clock=lambda: now[0])
    assert sent(job.run_epoch(), plan, plan.chains[0].operators[-1].name) == (10, 2)
    now[0] = 20
    assert sorted(map(tuple, rows_of(job.run_epoch()))) == [("a", 0, 10, 5, 10, 4), ("b", 0, 10, 5, 10, 4)]
