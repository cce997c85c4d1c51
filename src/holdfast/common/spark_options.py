"""Options of how a job uses Spark."""

from __future__ import annotations

from typing import Any

from holdfast.common.option_types import DURATION, TEXT, Option, choice

SPARK_INTERNALS: Option[bool] = Option(
    "holdfast.spark.internals",
    choice({"auto": True, "off": False}),
    True,
    "Whether accelerations may reach behind Spark's public API: `auto` uses those that the running Spark has, `off` "
    "none. Results are the same. The log says at the start of a job which are on, and why others are not.",
    default_text="`auto`",
)
SPARK_INTERNALS_WITHOUT: Option[str] = Option(
    "holdfast.spark.internals.without",
    TEXT,
    "",
    "Single accelerations to leave out, with commas between them: `kept-plans`, `half-aggregations`, `file-manager`, "
    "`executor-ids`. For a build of Spark on which one of them misbehaves.",
    default_text="none",
)
EXECUTOR_WAIT: Option[int] = Option(
    "holdfast.spark.executor-wait",
    DURATION,
    5_000,
    "How long an attempt waits for executors in the place of lost ones before it begins with those that are there. An "
    "executor that comes later gets its share of slots behind the next checkpoint. No longer than a standalone cluster "
    "may still give one.",
)
SPARK: tuple[Option[Any], ...] = (SPARK_INTERNALS, SPARK_INTERNALS_WITHOUT, EXECUTOR_WAIT)
