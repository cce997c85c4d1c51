"""Accumulators of functions, under the name of Flink's Java package."""

from __future__ import annotations

from holdfast.runtime.accumulators import (
    Accumulator,
    AverageAccumulator,
    DoubleCounter,
    Histogram,
    IntCounter,
    LongCounter,
)

__all__ = ["Accumulator", "AverageAccumulator", "DoubleCounter", "Histogram", "IntCounter", "LongCounter"]
