"""Metrics of functions, under the name of PyFlink's module."""

from __future__ import annotations

from holdfast.runtime.metrics import Counter, Distribution, Meter, Metric, MetricGroup

__all__ = ["Counter", "Distribution", "Meter", "Metric", "MetricGroup"]
