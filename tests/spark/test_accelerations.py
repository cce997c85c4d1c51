"""Which accelerations are on, and what is said of those that are not."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from py4j.java_gateway import JavaClass, JavaPackage
from py4j.protocol import Py4JError

from holdfast.common import Configuration, Types
from holdfast.datastream import StreamExecutionEnvironment
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
    assert "TypeError: copy() takes 7" in found.missing[Acceleration.KEPT_PLANS]


def test_a_spark_without_the_plain_file_manager(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.spark.internals.file_manager._PLACES", ("org.example.NoSuchClass",))
    found = Accelerations.of(spark, SparkSettings())
    assert "there is no class" in found.missing[Acceleration.FILE_MANAGER]


class Without:
    """A JVM, or a part of it, in which a name does not exist. py4j notices when it is used."""

    def __init__(self, part: Any, lacking: str) -> None:
        self._part = part
        self._lacking = lacking

    def __getattr__(self, name: str) -> Any:
        if name == self._lacking:
            raise Py4JError(f"{name} does not exist in the JVM")
        found = getattr(self._part, name)
        return Without(found, self._lacking) if isinstance(found, (JavaClass, JavaPackage)) else found

    def __call__(self, *arguments: Any) -> Any:
        return self._part(*arguments)


def totals_by_key(spark: Any) -> dict[int, int]:
    """The results of a job that reads a DataFrame and adds up."""
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    env.set_parallelism(2)
    frame = spark.range(0, 100, 1, 2).selectExpr("id % 3 AS key", "id AS value")
    rows = env.from_data_frame(frame).map(tuple, Types.TUPLE([Types.LONG(), Types.LONG()]))
    totals = rows.key_by(lambda row: row[0], Types.LONG()).reduce(lambda one, other: (one[0], one[1] + other[1]))
    with totals.execute_and_collect("totals") as found:
        # A total only grows: the last one of a key is its greatest.
        return dict(sorted(found))


EXPECTED = {key: sum(range(key, 100, 3)) for key in range(3)}


def switched_off(spark: Any, caplog: pytest.LogCaptureFixture, acceleration: Acceleration, reason: str) -> None:
    """The probe notices, a job runs all the same, and says in a warning what is off."""
    found = Accelerations.of(spark, SparkSettings())
    assert reason in found.missing[acceleration]
    assert acceleration in found.lacking
    with caplog.at_level(logging.WARNING, "holdfast.spark.engine"):
        assert totals_by_key(spark) == EXPECTED
    assert [record.levelname for record in caplog.records if acceleration.title in record.message] == ["WARNING"]


@pytest.mark.parametrize("name", ["collectAndServe", "SQLExecutionRDD"])
def test_a_jvm_without_what_runs_kept_plans(
    spark: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    monkeypatch.setattr(spark.sparkContext, "_jvm", Without(spark.sparkContext._jvm, name))
    switched_off(spark, caplog, Acceleration.KEPT_PLANS, f"{name} does not exist")


@pytest.mark.parametrize(
    ("acceleration", "names"),
    [
        (Acceleration.KEPT_PLANS, ["repeated_plan._load_from_socket"]),
        (Acceleration.KEPT_PLANS, ["repeated_plan.rows_of_query", "planned_rows.rows_of_query"]),
        (Acceleration.KEPT_PLANS, ["repeated_plan.RepeatedPlan._with_settings"]),
        (Acceleration.HALF_AGGREGATIONS, ["half_aggregation.first_half"]),
        (Acceleration.EXECUTOR_IDS, ["executor_ids.holders_of"]),
    ],
)
def test_a_private_method_of_another_form(
    spark: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    acceleration: Acceleration,
    names: list[str],
) -> None:
    for name in names:
        monkeypatch.setattr(f"holdfast.spark.internals.{name}", broken)
    switched_off(spark, caplog, acceleration, "TypeError: copy() takes 7")


def test_a_file_manager_that_is_made_otherwise(
    spark: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("holdfast.spark.internals.file_manager._PLACES", ("java.lang.Object",))
    switched_off(spark, caplog, Acceleration.FILE_MANAGER, "Constructor java.lang.Object")


def test_a_daemon_whose_task_is_begun_otherwise(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.spark.internals.worker_process.run_task", lambda sock: 0)
    reason = Accelerations.of(spark, SparkSettings()).missing[Acceleration.WORKER_DAEMON]
    assert "too many positional arguments" in reason


def test_what_the_user_left_out_is_no_warning(spark: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert not Accelerations.of(spark, SparkSettings(internals=False)).lacking
    without = frozenset({"kept-plans", "executor-ids"})
    assert not Accelerations.of(spark, SparkSettings(without=without)).lacking
