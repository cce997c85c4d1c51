"""The metrics and accumulators of one operator's subtask, for an attempt.

Their values travel with the operator to the process of the next epoch, under the stamp that its state has: what an
execution counted that the coordinator did not accept is not in them. What has changed since the epoch before is in the
acknowledgement, as values since the attempt began, so the driver has no more to do than to keep the last ones.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

from holdfast.errors import ProgramError
from holdfast.runtime.accumulators import KINDS, Accumulator
from holdfast.runtime.metric_values import (
    AccumulatorValue,
    MetricId,
    MetricValue,
    OperatorMetrics,
    Plain,
    Scope,
)
from holdfast.runtime.metrics import Counter, Distribution, Meter, Metric, MetricGroup, sampled

M = TypeVar("M", bound=Metric)

_log = logging.getLogger(__name__)

#: Kinds of handles that a function may hold in its fields.
METRIC, ACCUMULATOR = "metric", "accumulator"
#: So many metrics are kept for one operator's subtask unless told.
DEFAULT_LIMIT = 200

_METRICS: dict[str, type[Metric]] = {kind.kind: kind for kind in (Counter, Meter, Distribution)}
_GAUGE = "gauge"


class MetricRegistry:
    """Knows every metric by its groups and its name. ``bindings`` learns the handles that functions are given."""

    def __init__(self, where: str, bindings: dict[int, tuple[Any, ...]], limit: int = DEFAULT_LIMIT) -> None:
        self._where = where
        self._bindings = bindings
        self._limit = limit
        self._metrics: dict[MetricId, Metric] = {}
        self._gauges: dict[MetricId, Callable[[], Any]] = {}
        #: What gauges said at the end of the epoch.
        self._samples: dict[MetricId, Plain] = {}
        self._accumulators: dict[str, Accumulator[Any, Any]] = {}
        #: What the driver knows.
        self._told: dict[MetricId | str, MetricValue | AccumulatorValue] = {}
        self._warned: set[MetricId | None] = set()
        self._warnings: list[str] = []

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"the metrics of {self._where} cannot be pickled")

    # -- for functions

    def group(self, scope: Scope = ()) -> MetricGroup:
        return MetricGroup(self, scope)

    def metric(self, scope: Scope, name: str, kind: type[M], *arguments: Any) -> M:
        """The metric of that name. One that is not reported works as others do, as a plain value of its function."""
        self.check_name(name, kind.kind)
        metric_id = MetricId(scope, name)
        found = self._metrics.get(metric_id)
        if isinstance(found, kind):
            return found
        made = kind(*arguments)
        if self._takes(metric_id, kind.kind):
            self._metrics[metric_id] = made
            self._bindings[id(made)] = (METRIC, kind.kind, metric_id, arguments)
        return made

    def gauge(self, scope: Scope, name: str, function: Callable[[], Any]) -> None:
        self.check_name(name, _GAUGE)
        if not callable(function):
            raise ProgramError(
                f"The gauge '{name}' was given {function!r}; expected a function without parameters that gives the "
                "value."
            )
        metric_id = MetricId(scope, name)
        if metric_id in self._gauges or self._takes(metric_id, _GAUGE):
            self._gauges[metric_id] = function

    def add_accumulator(self, name: str, accumulator: Accumulator[Any, Any]) -> None:
        self.check_name(name, ACCUMULATOR)
        if type(accumulator) not in KINDS.values():
            raise ProgramError(
                f"The accumulator '{name}' is {accumulator!r}; expected one of {', '.join(KINDS)}, of "
                "holdfast.common.accumulators."
            )
        if name in self._accumulators:
            raise ProgramError(f"The accumulator '{name}' already exists and cannot be added again.")
        if len(self._accumulators) >= self._limit:
            raise ProgramError(
                f"The subtask has {self._limit} accumulators, and cannot add '{name}'. A name for every key or row is "
                "no accumulator: write such counts to a sink. holdfast.metrics.max-per-subtask raises the limit."
            )
        self._accumulators[name] = accumulator
        self._bindings[id(accumulator)] = (ACCUMULATOR, name)

    def added(self) -> Mapping[str, Accumulator[Any, Any]]:
        """All accumulators."""
        return self._accumulators

    def bind_again(self, kind: str, *handle: Any) -> Any:
        """The handle that a function held, in a process that has just taken the operator up."""
        if kind == ACCUMULATOR:
            return self._accumulators[handle[0]]
        metric, (scope, name), arguments = handle
        return self.metric(scope, name, _METRICS[metric], *arguments)

    def _takes(self, metric_id: MetricId, kind: str) -> bool:
        """Whether a metric of that name is reported. A warning says why not."""
        other = self._metrics.get(metric_id)
        if other is not None or metric_id in self._gauges:
            there = _GAUGE if other is None else other.kind
            self._warn(metric_id, f"the {kind} '{metric_id}' is not reported, since there is a {there} of that name")
            return False
        if len(self._metrics) + len(self._gauges) < self._limit:
            return True
        self._warn(
            None,
            f"the {kind} '{metric_id}' and all that come behind it are not reported, since a subtask has {self._limit} "
            "metrics already. A name for every key or row is no metric: write such counts to a sink. "
            "holdfast.metrics.max-per-subtask raises the limit",
        )
        return False

    def check_name(self, name: object, what: str) -> None:
        """ProgramError for what cannot be a name."""
        if not isinstance(name, str) or not name:
            raise ProgramError(f"The name of a {what} is {name!r}; expected a text that is not empty.")

    def _warn(self, about: MetricId | None, text: str) -> None:
        """Once for each metric, however often it happens."""
        if about not in self._warned:
            self._warned.add(about)
            self._warnings.append(f"{self._where}: {text}.")

    def take_warnings(self) -> list[str]:
        warnings, self._warnings = self._warnings, []
        return warnings

    # -- the end of an epoch

    def sample_gauges(self) -> None:
        """Ask all gauges. One that raises has no new value, and stops nothing."""
        for metric_id, function in self._gauges.items():
            try:
                self._samples[metric_id] = sampled(function)
            except Exception as error:
                _log.warning("%s: the gauge '%s' raised", self._where, metric_id, exc_info=True)
                kind = type(error).__name__
                self._warn(metric_id, f"the gauge '{metric_id}' raised {kind}, as the executor's log shows in full")

    def values(self) -> dict[MetricId, MetricValue]:
        """All metrics, gauges as they were sampled last."""
        found = {
            metric_id: MetricValue(*metric_id, metric.kind, metric.reported(), metric.seconds)
            for metric_id, metric in self._metrics.items()
        }
        return found | {
            metric_id: MetricValue(*metric_id, _GAUGE, sample) for metric_id, sample in self._samples.items()
        }

    def accumulators(self) -> dict[str, AccumulatorValue]:
        return {
            name: AccumulatorValue(name, type(accumulator).__name__, accumulator.dump())
            for name, accumulator in self._accumulators.items()
        }

    def report(self, operator_id: str, subtask: int) -> OperatorMetrics | None:
        """What the driver does not know yet; None where that is nothing."""
        if not (self._metrics or self._gauges or self._accumulators):
            return None
        metrics = tuple(v for key, v in self.values().items() if self._told.get(key) != v)
        accumulators = tuple(v for key, v in self.accumulators().items() if self._told.get(key) != v)
        self._told.update((v.metric_id, v) for v in metrics)
        self._told.update((v.name, v) for v in accumulators)
        return OperatorMetrics(operator_id, subtask, metrics, accumulators) if metrics or accumulators else None

    # -- between epochs

    def dump(self) -> dict[str, Any] | None:
        """What the next epoch's process must know, but for gauges: those travel with the fields of their function."""
        if not (self._metrics or self._accumulators):
            return None
        return {
            "metrics": {
                metric_id: (self._bindings[id(metric)], metric.dump()) for metric_id, metric in self._metrics.items()
            },
            "accumulators": {
                name: (type(accumulator).__name__, accumulator.dump())
                for name, accumulator in self._accumulators.items()
            },
        }

    def load(self, dumped: dict[str, Any] | None) -> None:
        """Take over what ``dump`` gave, in the handles that there are. The driver knows it: it has accepted the epoch
        that it is of.
        """
        if dumped is None:
            return
        for binding, value in dumped["metrics"].values():
            self.bind_again(*binding).load(value)
        for name, (kind, value) in dumped["accumulators"].items():
            if name not in self._accumulators:
                self.add_accumulator(name, KINDS[kind]())
            self._accumulators[name].load(value)
        self._told.update((metric_id, value) for metric_id, value in self.values().items())
        self._told.update((name, value) for name, value in self.accumulators().items())

    def gauge_fields(self) -> dict[str, Any]:
        """Gauges as fields of their function, under what a message calls them."""
        fields: dict[str, list[tuple[MetricId, Callable[[], Any]]]] = {}
        for metric_id, function in self._gauges.items():
            fields.setdefault(f"{_GAUGE} '{metric_id}'", []).append((metric_id, function))
        return fields

    def adopt_gauges(self, fields: dict[str, Any]) -> None:
        """Take the gauges out of what came of ``gauge_fields`` among fields."""
        for name in [name for name in fields if name.startswith(f"{_GAUGE} '")]:
            self._gauges |= fields.pop(name)
