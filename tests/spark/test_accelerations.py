"""Which accelerations are on, and what is said of those that are not."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import ConfigurationError
from holdfast.spark import accelerations
from holdfast.spark.accelerations import Acceleration, Accelerations
from holdfast.types.settings import SparkSettings


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test probes anew."""
    monkeypatch.setattr(accelerations, "_known", {})


def test_the_running_spark_has_all_of_them(spark: Any) -> None:
    found = Accelerations.of(spark, SparkSettings())
    assert found.missing == {}
    assert found.describe().endswith("off: none")


def test_off_leaves_the_daemon_that_the_application_was_started_with(spark: Any) -> None:
    found = Accelerations.of(spark, SparkSettings(internals=False))
    assert found.missing.keys() >= set(Acceleration) - {Acceleration.WORKER_DAEMON}
    assert "holdfast.spark.internals is off: every epoch is planned anew" in found.describe()


def test_one_of_them_is_left_out_and_what_leans_on_it_with_it(spark: Any) -> None:
    found = Accelerations.of(spark, SparkSettings(without=frozenset({"kept-plans"})))
    assert not found.has(Acceleration.KEPT_PLANS)
    assert not found.has(Acceleration.HALF_AGGREGATIONS)
    assert "it needs kept plans" in found.describe()


def test_a_name_that_is_none_of_theirs(spark: Any) -> None:
    with pytest.raises(ConfigurationError, match="'plans'; expected some of kept-plans, half-aggregations"):
        Accelerations.of(spark, SparkSettings(without=frozenset({"plans"})))


def broken(*_: Any) -> None:
    raise TypeError("copy() takes 7 positional arguments but 8 were given")


def test_what_a_build_of_spark_does_not_have_switches_itself_off(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe really tries it: a plan whose nodes cannot be copied."""
    monkeypatch.setattr("holdfast.spark.internals.kept_plan._Node.over", broken)
    found = Accelerations.of(spark, SparkSettings())
    assert "a plan cannot be kept: copy() takes 7" in found.missing[Acceleration.KEPT_PLANS]


def test_a_spark_without_the_plain_file_manager(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.spark.internals.file_manager._PLACES", ("org.example.NoSuchClass",))
    found = Accelerations.of(spark, SparkSettings())
    assert "there is no class" in found.missing[Acceleration.FILE_MANAGER]
