"""Settings of sessions that Holdfast starts itself."""

from __future__ import annotations

import pytest

from holdfast.spark.session import _takes_our_daemon


@pytest.mark.parametrize(
    ("settings", "takes"),
    [
        ({"spark.master": "local[*]"}, True),
        ({"spark.master": "spark://host:7077"}, False),
        ({"spark.master": "local[2]", "spark.python.worker.killOnIdleTimeout": "true"}, False),
        ({"spark.master": "local[2]", "spark.sql.execution.pyspark.udf.killOnIdleTimeout": "true"}, False),
        ({"spark.master": "local[2]", "spark.sql.execution.pyspark.udf.killOnIdleTimeout": "false"}, True),
    ],
)
def test_who_takes_our_daemon(monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], takes: bool) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    assert _takes_our_daemon(settings) == takes


def test_spark_submit_may_have_holdfast_for_tasks_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert not _takes_our_daemon({"spark.master": "local[*]"})
