"""Queries in the plan of a job, and the names by which they read streams. No SQL is run."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import cloudpickle
import pytest

from holdfast.common import Types, WatermarkStrategy
from holdfast.common.watermark_strategy import TimestampAssigner
from holdfast.datastream import DataStream, StreamExecutionEnvironment
from holdfast.datastream.engines import engines_from
from holdfast.errors import ProgramError
from holdfast.graph.job_graph import build_job_graph
from holdfast.graph.planner import plan_job
from holdfast.runtime.plan import JobPlan, TaskOptions
from holdfast.runtime.query import Query, View
from holdfast.state.backends import load_backend
from holdfast.testing.in_process import InProcessEngine
from holdfast.types.information import RowTypeInfo
from holdfast.types.resolve import resolve


class Analysed(InProcessEngine):
    """Believes that a query gives the columns that it lists behind the name of its view."""

    def analyse(self, text: str, views: Any) -> Query:
        name, columns = text.split(": ")
        (view,) = (each for each in views if each.name == name)
        row_type = resolve(columns)
        assert isinstance(row_type, RowTypeInfo)
        return Query(text, view, row_type)


@pytest.fixture
def env() -> Iterator[StreamExecutionEnvironment]:
    with engines_from(lambda graph, settings: Analysed()):
        yield StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)


def numbers(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_collection([1, 2], Types.LONG())


class Itself(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value


def timed(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Itself())
    return numbers(env).assign_timestamps_and_watermarks(strategy)


def planned(env: StreamExecutionEnvironment) -> JobPlan:
    graph = build_job_graph(env.get_stream_graph(), "job", "name", env.job_settings(), 2)
    return plan_job(graph, load_backend("heap", {}), TaskOptions()).plan


def test_a_query_begins_a_task_and_what_follows_is_chained_to_it(env: StreamExecutionEnvironment) -> None:
    env.create_temporary_view("numbers", numbers(env).map(lambda n: n, Types.LONG()))
    env.sql("numbers: n long").map(lambda row: row.n, Types.LONG()).print()
    plan = planned(env)
    chain = plan.queried_at(plan.levels[-1])
    assert chain is not None
    assert chain.query is not None
    assert [operator.name for operator in chain.operators][:2] == ["SQL", "Map"]
    assert chain.inputs
    assert plan.queries == [chain.query]
    assert all(plan.queried_at(level) is None for level in list(plan.levels)[:-1])


def test_each_query_has_a_level_of_its_own(env: StreamExecutionEnvironment) -> None:
    env.create_temporary_view("numbers", numbers(env))
    streams = [env.sql(f"numbers: a{place} long") for place in range(3)]
    for stream in streams:
        stream.print()
    env.create_temporary_view("more", streams[0])
    env.sql("more: b long").print()
    plan = planned(env)
    levels = [chain.level for chain in plan.chains if chain.query is not None]
    assert len(levels) == 4
    assert len(set(levels)) == 4
    assert {plan.queried_at(level).query.text for level in levels} == {  # type: ignore[union-attr]  # of its level
        "numbers: a0 long",
        "numbers: a1 long",
        "numbers: a2 long",
        "more: b long",
    }


def test_a_view_of_a_keyed_stream_has_all_its_rows(env: StreamExecutionEnvironment) -> None:
    env.create_temporary_view("numbers", numbers(env).key_by(lambda n: n))
    env.sql("numbers: n long").print()
    plan = planned(env)
    assert not any(operator.keyed for operator in plan.operators())


def test_rows_have_event_time_where_the_query_passes_the_column_on(env: StreamExecutionEnvironment) -> None:
    env.create_temporary_view("timed", timed(env), event_time_column="at")
    env.create_temporary_view("untimed", timed(env))
    events = {text: env.sql(text)._node.event_time for text in ("timed: n long, at timestamp", "timed: n long")}
    assert list(events.values()) == [True, False]
    assert not env.sql("untimed: n long, at timestamp")._node.event_time


def test_names_of_views(env: StreamExecutionEnvironment) -> None:
    env.create_temporary_view("Numbers", numbers(env))
    with pytest.raises(ProgramError, match="a view 'numbers' already"):
        env.create_temporary_view("numbers", numbers(env))
    assert env.drop_temporary_view("NUMBERS")
    assert not env.drop_temporary_view("numbers")
    env.create_temporary_view("numbers", numbers(env))
    with pytest.raises(ProgramError, match="letters, digits and underscores"):
        env.create_temporary_view("a.b", numbers(env))
    with pytest.raises(ProgramError, match="takes a stream; got list"):
        env.create_temporary_view("list", [1])  # type: ignore[arg-type]  # what the test is about


def test_event_time_columns_that_cannot_be(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(ProgramError, match="has no event time for the column 'at'"):
        env.create_temporary_view("numbers", numbers(env), event_time_column="at")
    with pytest.raises(ProgramError, match="have a column 'f0' themselves"):
        env.create_temporary_view("numbers", timed(env), event_time_column="f0")


def test_the_engine_without_spark_says_that_it_has_no_sql(in_process: InProcessEngine) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.create_temporary_view("numbers", numbers(env))
    with pytest.raises(ProgramError, match="no Spark to run SQL with"):
        env.sql("SELECT f0 FROM numbers")


def test_a_job_with_a_query_is_not_run_without_spark(env: StreamExecutionEnvironment) -> None:
    env.create_temporary_view("numbers", numbers(env))
    env.sql("numbers: n long").print()
    with InProcessEngine().installed(), pytest.raises(Exception, match="no Spark to run SQL with"):
        env.execute()


def test_what_is_done_to_a_data_frame_stays_in_the_driver() -> None:
    """It holds columns and tables of the JVM, which do not travel."""
    row_type = resolve("n long")
    assert isinstance(row_type, RowTypeInfo)
    query = Query("to_data_frame()", View("numbers", Types.LONG()), row_type, threading.Lock().__enter__)
    sent = cloudpickle.loads(cloudpickle.dumps(query))
    assert sent.transformation is None
    assert (sent.text, sent.view, sent.output_type) == (query.text, query.view, query.output_type)


def test_the_engine_of_tests_has_no_data_frames() -> None:
    with engines_from(lambda graph, settings: InProcessEngine()):
        env = StreamExecutionEnvironment.get_execution_environment()
        with pytest.raises(ProgramError, match=r"the query 'to_data_frame\(\)', and the engine of this test"):
            numbers(env).to_data_frame()
