"""Values of metrics and accumulators on their way from a task to the driver."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, NamedTuple

import msgspec

#: The groups around a metric, the outer one first: a name alone, or a key with its value.
Scope = tuple[tuple[str, str | None], ...]
Plain = int | float | bool | str

_LONGEST_TEXT = 1_000


class MetricId(NamedTuple):
    """Which metric of a subtask."""

    scope: Scope
    name: str

    def __str__(self) -> str:
        groups = (part for group in self.scope for part in group if part is not None)
        return ".".join((*groups, self.name))


class DistributionValue(msgspec.Struct, frozen=True, array_like=True):
    """What a distribution knows of the values that it was given; all 0 before the first."""

    count: int = 0
    sum: int | float = 0
    min: int | float = 0
    max: int | float = 0

    @property
    def mean(self) -> float:
        return self.sum / self.count if self.count else 0.0


class MetricValue(msgspec.Struct, frozen=True, array_like=True):
    """A metric at the end of an epoch. The value is that since the attempt began."""

    scope: Scope
    name: str
    #: "counter", "meter", "gauge" or "distribution".
    kind: str
    value: Plain | DistributionValue
    #: Of a meter: the seconds that its rate is of.
    seconds: int = 0

    @property
    def metric_id(self) -> MetricId:
        return MetricId(self.scope, self.name)


class AccumulatorValue(msgspec.Struct, frozen=True, array_like=True):
    """An accumulator of a subtask at the end of an epoch, since the attempt began."""

    name: str
    #: The name of its class.
    kind: str
    state: Any


class OperatorMetrics(msgspec.Struct, frozen=True, array_like=True):
    """What has changed in an epoch of the metrics and accumulators of one operator's subtask."""

    operator_id: str
    subtask: int
    metrics: tuple[MetricValue, ...] = ()
    accumulators: tuple[AccumulatorValue, ...] = ()


def plain(value: Any) -> Plain:
    """A value that can travel and be shown: numbers of any library as Python's, anything else as its text."""
    if isinstance(value, bool):
        return value
    try:
        if isinstance(value, Integral):
            whole = int(value)
            return whole if -(1 << 63) <= whole < 1 << 63 else float(whole)
        if isinstance(value, Real):
            return float(value)
    except OverflowError:
        pass
    return str(value)[:_LONGEST_TEXT]


def number(value: Any) -> int | float:
    """A number that can travel."""
    found = plain(value)
    return found if isinstance(found, int | float) else float(value)
