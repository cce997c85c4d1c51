"""Answers about the driver as a whole, with Flink's field names."""

from __future__ import annotations

import msgspec


class ErrorMessage(msgspec.Struct, frozen=True):
    errors: list[str]


class Features(msgspec.Struct, frozen=True, rename="kebab"):
    web_submit: bool
    web_cancel: bool
    web_rescale: bool
    web_history: bool


class DashboardConfiguration(msgspec.Struct, frozen=True, rename="kebab"):
    refresh_interval: int
    timezone_name: str
    timezone_offset: int
    flink_version: str
    flink_revision: str
    features: Features


class ClusterOverview(msgspec.Struct, frozen=True, rename="kebab"):
    taskmanagers: int
    slots_total: int
    slots_available: int
    jobs_running: int
    jobs_finished: int
    jobs_cancelled: int
    jobs_failed: int
    flink_version: str
    flink_commit: str


class Metric(msgspec.Struct, frozen=True, omit_defaults=True):
    """``value`` is left out where only names are asked for."""

    id: str
    value: str | None = None


class AggregatedMetric(msgspec.Struct, frozen=True, omit_defaults=True):
    """A metric over subtasks. All but the id is left out where only names are asked for. ``skew`` is the mean distance
    from the average in percent of it, 100 at most.
    """

    id: str
    min: float | None = None
    max: float | None = None
    avg: float | None = None
    sum: float | None = None
    skew: float | None = None
