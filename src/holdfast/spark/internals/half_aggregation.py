"""The first half of an aggregation, which combines the rows of each partition.

Spark plans an aggregation as two halves with an exchange between them. DataFrames cannot ask for one half, so it is
taken out of the plan of the whole. Where rows are partitioned by the key already there is no exchange, and the whole
gives the same columns.
"""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

_AGGREGATES = ("HashAggregateExec", "SortAggregateExec")


def first_half(whole: DataFrame) -> Any | None:
    """The plan of what Spark computes in front of its exchange; of all where there is none. None if that has other
    columns than the results: Spark leaves out what it takes for superfluous, and never adds or moves any.
    """
    first = plan = whole._jdf.queryExecution().executedPlan()
    if _mode(plan) == "Final":
        below = _unwrapped(_unwrapped(plan).child())
        half = below.child() if _kind(below) == "ShuffleExchangeExec" else below
        if _mode(half) != "Partial":
            return None
        first = plan if half is below else half
    elif _mode(plan) != "Complete":
        return None
    found = [field["type"] for field in json.loads(first.schema().json())["fields"]]
    return first if found == [field.dataType.jsonValue() for field in whole.schema] else None


def probe(session: SparkSession) -> str | None:
    found = first_half(session.range(1).groupBy("id").agg(F.expr("count(1)")))
    return None if found is not None else "an aggregation is not planned in two halves"


def _unwrapped(node: Any) -> Any:
    while _kind(node) in ("WholeStageCodegenExec", "InputAdapter"):
        node = node.child()
    return node


def _mode(plan: Any) -> str:
    """Which part of an aggregation the top of a plan is, if it is one."""
    node = _unwrapped(plan)
    return str(node.aggregateExpressions().head().mode().toString()) if _kind(node) in _AGGREGATES else ""


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())
