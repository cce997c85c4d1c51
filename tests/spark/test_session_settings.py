"""Settings that jobs change in the session of a user."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from pyspark.sql import SparkSession

from holdfast.spark.session_settings import changed_settings

PARTITIONS, ADAPTIVE = "spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled"


@pytest.fixture
def session(holdfast_spark: SparkSession) -> SparkSession:
    return holdfast_spark.newSession()


def test_they_are_put_back(session: SparkSession) -> None:
    before = session.conf.get(PARTITIONS)
    with changed_settings(session, {PARTITIONS: "7", "some.thing": "new"}):
        assert (session.conf.get(PARTITIONS), session.conf.get("some.thing")) == ("7", "new")
    assert (session.conf.get(PARTITIONS), session.conf.get("some.thing", None)) == (before, None)


def test_one_that_cannot_be_set_leaves_the_others_as_they_were(session: SparkSession) -> None:
    before = session.conf.get(PARTITIONS)
    with pytest.raises(Exception, match="many"), changed_settings(session, {PARTITIONS: "7", ADAPTIVE: "many"}):
        raise AssertionError("it was set")
    assert session.conf.get(PARTITIONS) == before


def test_a_job_that_ends_leaves_what_another_one_still_needs(session: SparkSession) -> None:
    session.conf.set(ADAPTIVE, "true")
    first, second = ExitStack(), ExitStack()
    first.enter_context(changed_settings(session, {ADAPTIVE: "false", PARTITIONS: "3"}))
    second.enter_context(changed_settings(session, {ADAPTIVE: "false", PARTITIONS: "5"}))
    first.close()
    assert (session.conf.get(ADAPTIVE), session.conf.get(PARTITIONS)) == ("false", "5")
    second.close()
    assert session.conf.get(ADAPTIVE) == "true"


def test_in_whatever_order_they_end(session: SparkSession) -> None:
    before = session.conf.get(PARTITIONS)
    with changed_settings(session, {PARTITIONS: "3"}):
        with changed_settings(session, {PARTITIONS: "5"}):
            assert session.conf.get(PARTITIONS) == "5"
        assert session.conf.get(PARTITIONS) == "3"
    assert session.conf.get(PARTITIONS) == before
