"""The metrics that a function keeps, and the groups that name them: PyFlink's ``pyflink.metrics``.

A handle lives as long as the attempt, in a field of the function: it goes from worker process to worker process with
the function's other fields, and its value with it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from holdfast.runtime.metric_values import DistributionValue, Plain, Scope, number, plain

if TYPE_CHECKING:
    from holdfast.runtime.metric_registry import MetricRegistry


class Metric(ABC):
    """The base of counters, meters and distributions."""

    __slots__ = ()

    #: What it is called in reports.
    kind: ClassVar[str]

    @property
    def seconds(self) -> int:
        """The span of time of a meter's rate; 0 for others."""
        return 0

    @abstractmethod
    def reported(self) -> Plain | DistributionValue:
        """The value since the attempt began."""

    @abstractmethod
    def dump(self) -> Any:
        """The value for the next epoch's process."""

    @abstractmethod
    def load(self, dumped: Any) -> None:
        """Take over what ``dump`` gave."""


class _Counting(Metric):
    """What counters and meters share: one count."""

    __slots__ = ("_count",)

    def __init__(self) -> None:
        self._count = 0

    def get_count(self) -> int:
        """The count since the attempt began."""
        return self._count

    def reported(self) -> Plain:
        return number(self._count)

    def dump(self) -> int:
        return self._count

    def load(self, dumped: int) -> None:
        self._count = dumped


class Counter(_Counting):
    """A count that goes up and down."""

    __slots__ = ()

    kind = "counter"

    def inc(self, n: int = 1) -> None:
        self._count += n

    def dec(self, n: int = 1) -> None:
        self._count -= n


class Meter(_Counting):
    """A count of events, whose rate per second over a span of time is shown."""

    __slots__ = ("_seconds",)

    kind = "meter"

    def __init__(self, time_span_in_seconds: int = 60) -> None:
        super().__init__()
        self._seconds = time_span_in_seconds

    @property
    def seconds(self) -> int:
        return self._seconds

    def mark_event(self, value: int = 1) -> None:
        """So many events have happened."""
        self._count += value


class Distribution(Metric):
    """How many values there were, their sum, the least and the greatest."""

    __slots__ = ("_count", "_max", "_min", "_sum")

    kind = "distribution"

    def __init__(self) -> None:
        self._count = 0
        self._sum: int | float = 0
        self._min: int | float = 0
        self._max: int | float = 0

    def update(self, value: int | float) -> None:
        """One more value."""
        self._sum += value
        if not self._count or value < self._min:
            self._min = value
        if not self._count or value > self._max:
            self._max = value
        self._count += 1

    def reported(self) -> DistributionValue:
        return DistributionValue(self._count, number(self._sum), number(self._min), number(self._max))

    def dump(self) -> tuple[int, Any, Any, Any]:
        return self._count, self._sum, self._min, self._max

    def load(self, dumped: tuple[int, Any, Any, Any]) -> None:
        self._count, self._sum, self._min, self._max = dumped


def sampled(gauge: Callable[[], Any]) -> Plain:
    """What a gauge says now."""
    return plain(gauge())


class MetricGroup:
    """A named place for metrics and further groups. The same name gives the same metric again."""

    def __init__(self, registry: MetricRegistry, scope: Scope = ()) -> None:
        self._registry = registry
        self._scope = scope

    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """A group inside of this one. With ``extra`` the name is a key and ``extra`` its value: Prometheus gets them as
        a label.
        """
        self._registry.check_name(name, "metric group")
        if extra is not None:
            self._registry.check_name(extra, "metric group")
        return MetricGroup(self._registry, (*self._scope, (name, extra)))

    @property
    def scope(self) -> Scope:
        """The groups around what is in it."""
        return self._scope

    def counter(self, name: str) -> Counter:
        return self._registry.metric(self._scope, name, Counter)

    def gauge(self, name: str, obj: Callable[[], Any]) -> None:
        """``obj`` is called at the end of every epoch, in the function's process. A gauge of this name that there was
        is replaced.
        """
        self._registry.gauge(self._scope, name, obj)

    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        return self._registry.metric(self._scope, name, Meter, time_span_in_seconds)

    def distribution(self, name: str) -> Distribution:
        return self._registry.metric(self._scope, name, Distribution)
