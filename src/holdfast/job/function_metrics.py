"""What functions of the present attempt have reported: the last value of every metric and accumulator, of accepted
epochs alone.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from typing import Any

from holdfast.errors import ProgramError
from holdfast.runtime.accumulators import KINDS, Accumulator
from holdfast.runtime.epoch import Acknowledgement
from holdfast.runtime.metric_values import AccumulatorValue, DistributionValue, MetricId, MetricValue, Plain, Scope
from holdfast.types.clock import wall_clock

#: Counts that are less apart are one for a rate, as in Flink.
_RATE_STEP_MS = 5_000

_Subtask = tuple[str, int]


@dataclass(frozen=True)
class Reading:
    """One metric as it is shown. ``values`` are by what comes behind its name; most metrics have one, without."""

    scope: Scope
    name: str
    values: dict[str, Plain]


class FunctionMetrics:
    """Written by the thread that runs the job and read by anybody. Another attempt begins with nothing."""

    def __init__(self, clock: Callable[[], int] = wall_clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._values: dict[_Subtask, dict[MetricId, MetricValue]] = {}
        self._rates: dict[tuple[_Subtask, MetricId], _Rate] = {}
        self._accumulators: dict[_Subtask, dict[str, AccumulatorValue]] = {}

    def begin_attempt(self) -> None:
        with self._lock:
            self._values, self._rates, self._accumulators = {}, {}, {}

    def take_in(self, acknowledgements: Iterable[Acknowledgement]) -> None:
        """What the tasks of an accepted epoch told."""
        told = [report for each in acknowledgements for report in each.metrics]
        if not told:
            return
        now = self._clock()
        with self._lock:
            for report in told:
                subtask = report.operator_id, report.subtask
                self._values.setdefault(subtask, {}).update((value.metric_id, value) for value in report.metrics)
                self._accumulators.setdefault(subtask, {}).update((value.name, value) for value in report.accumulators)
                for value in report.metrics:
                    if value.kind == "meter":
                        rate = self._rates.setdefault((subtask, value.metric_id), _Rate(value.seconds))
                        rate.count(now, value.value)

    def of_subtask(self, operator_id: str, subtask: int) -> list[Reading]:
        """All metrics of an operator's subtask."""
        key, now = (operator_id, subtask), self._clock()
        with self._lock:
            return [
                Reading(*metric_id, self._shown(key, value, now))
                for metric_id, value in self._values.get(key, {}).items()
            ]

    def _shown(self, subtask: _Subtask, told: MetricValue, now: int) -> dict[str, Plain]:
        value = told.value
        if isinstance(value, DistributionValue):
            return {
                "_count": value.count,
                "_sum": value.sum,
                "_min": value.min,
                "_max": value.max,
                "_mean": value.mean,
            }
        if told.kind == "meter":
            return {"": self._rates[subtask, told.metric_id].per_second(now), "_count": value}
        return {"": value}

    def accumulators(self) -> dict[str, Accumulator[Any, Any]]:
        """Accumulators by name, of all subtasks merged. ProgramError where two operators gave a name to two kinds."""
        merged: dict[str, Accumulator[Any, Any]] = {}
        with self._lock:
            told = [value for of_subtask in self._accumulators.values() for value in of_subtask.values()]
        for value in told:
            accumulator = KINDS[value.kind]()
            accumulator.load(value.state)
            known = merged.setdefault(value.name, accumulator)
            if type(known) is not type(accumulator):
                raise ProgramError(
                    f"The accumulator '{value.name}' is of two kinds, {type(known).__name__} and {value.kind}: give "
                    "one of them another name."
                )
            if known is not accumulator:
                known.merge(accumulator)
        return merged

    def accumulator_results(self) -> dict[str, Any]:
        """The values of all accumulators."""
        return {name: accumulator.get_local_value() for name, accumulator in self.accumulators().items()}


class _Rate:
    """Events per second over a span of time, as Flink's MeterView has it: what came in it, divided by all of it."""

    def __init__(self, seconds: int) -> None:
        self._span = max(seconds - seconds % 5, 5) * 1_000
        #: Times, and the counts from then on, the first one from the beginning of the span or before it.
        self._counts: deque[tuple[float, float]] = deque([(-inf, 0)])

    def count(self, now: int, count: Plain | DistributionValue) -> None:
        assert isinstance(count, int | float)
        began = self._counts[-1][0]
        if now - began < _RATE_STEP_MS:
            self._counts[-1] = began, count
        else:
            self._counts.append((now, count))
        self._forget(now)

    def per_second(self, now: int) -> float:
        self._forget(now)
        return (self._counts[-1][1] - self._counts[0][1]) * 1_000 / self._span

    def _forget(self, now: int) -> None:
        while len(self._counts) > 1 and self._counts[1][0] <= now - self._span:
            self._counts.popleft()
