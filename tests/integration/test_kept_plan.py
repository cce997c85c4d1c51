"""A plan of Spark's that is kept, and run over other rows each time: what it needs, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import SparkSession as Spark

from holdfast.spark.internals.kept_plan import KeptPlan
from holdfast.spark.internals.planned_rows import PlannedRows
from holdfast.spark.session import changed_settings

pytestmark = pytest.mark.slow

NO_ADAPTION = {"spark.sql.adaptive.enabled": "false"}


def rows(spark: Spark, first: int, end: int) -> PlannedRows:
    return PlannedRows.of(spark.range(first, end, 1, 2))


def plan_of(spark: Spark, frame: DataFrame) -> Any:
    with changed_settings(spark, NO_ADAPTION):
        return frame._jdf.queryExecution().executedPlan()


def kept(spark: Spark) -> KeptPlan:
    return KeptPlan(spark, plan_of(spark, rows(spark, 0, 1).shape.empty(spark).where("id % 2 = 0")))


@contextmanager
def at_hand(spark: Spark, session: Any) -> Iterator[Any]:
    """The JVM's active session of this thread, for a while."""
    java: Any = spark._jvm
    sessions = java.SparkSession
    before = sessions.getActiveSession()
    try:
        sessions.clearActiveSession() if session is None else sessions.setActiveSession(session._jsparkSession)
        yield sessions
    finally:
        sessions.setActiveSession(before.get()) if before.isDefined() else sessions.clearActiveSession()


def test_each_copy_is_over_the_rows_that_it_is_given(spark: Spark) -> None:
    plan = kept(spark)
    assert [plan.over([rows(spark, 0, end).rdd]).execute().count() for end in (10, 0, 7)] == [5, 0, 4]


def test_a_copy_is_of_the_session_of_the_plan(spark: Spark) -> None:
    plan, other = kept(spark), spark.newSession()
    with at_hand(spark, other) as sessions:
        assert plan.over([rows(spark, 0, 1).rdd]).session().equals(spark._jsparkSession)
        assert sessions.getActiveSession().get().equals(other._jsparkSession)
        with pytest.raises(Exception, match="copy"):
            plan.over(["no RDD"])
        assert sessions.getActiveSession().get().equals(other._jsparkSession)
    with at_hand(spark, None) as sessions:
        plan.over([rows(spark, 0, 1).rdd])
        assert not sessions.getActiveSession().isDefined()


def test_as_many_rdds_are_given_as_the_plan_reads(spark: Spark) -> None:
    rdd = rows(spark, 0, 1).rdd
    for given in ([], [rdd, rdd]):
        with pytest.raises(ValueError, match=f"reads 1 RDDs and was given {len(given)}"):
            kept(spark).over(given)


def test_an_exchange_that_would_run_once_is_refused(spark: Spark) -> None:
    frame = rows(spark, 0, 1).shape.empty(spark).union(spark.range(9).repartition(3, "id"))
    with pytest.raises(ValueError, match="An exchange is over none of the plan's RDDs"):
        KeptPlan(spark, plan_of(spark, frame))
