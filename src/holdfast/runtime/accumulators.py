"""Accumulators: values that functions add to, and that the job's result has for all subtasks together.

PyFlink can only read accumulators. These are Flink's Java classes, with their methods in snake_case.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter as _Counts
from typing import Any, Generic, Self, TypeVar

from holdfast.runtime.metric_values import number

V = TypeVar("V")
R = TypeVar("R")


class Accumulator(ABC, Generic[V, R]):
    """The base of all accumulators. A function gives one to ``add_accumulator`` of its runtime context in ``open()``,
    keeps it in a field and adds to it.
    """

    @abstractmethod
    def add(self, value: V) -> None: ...

    @abstractmethod
    def get_local_value(self) -> R:
        """What this subtask has added since the attempt began."""

    @abstractmethod
    def reset_local(self) -> None: ...

    @abstractmethod
    def dump(self) -> Any:
        """Everything it holds, in a form that can travel."""

    @abstractmethod
    def load(self, dumped: Any) -> None:
        """Take over what ``dump`` gave."""

    @abstractmethod
    def merge(self, other: Self) -> None:
        """Add what another subtask has."""

    def clone(self) -> Self:
        """Another one with the same value."""
        other = type(self)()
        other.load(self.dump())
        return other

    def __repr__(self) -> str:
        return f"{type(self).__name__} {self.get_local_value()!r}"


class _Sum(Accumulator[Any, Any]):
    """What the three counters share."""

    def __init__(self, value: int | float = 0) -> None:
        self._value = value

    def add(self, value: Any) -> None:
        self._value += value

    def get_local_value(self) -> Any:
        return self._value

    def get_local_value_primitive(self) -> Any:
        return self._value

    def reset_local(self) -> None:
        self._value = 0

    def dump(self) -> int | float:
        return number(self._value)

    def load(self, dumped: int | float) -> None:
        self._value = dumped

    def merge(self, other: _Sum) -> None:
        self._value += other._value


class IntCounter(_Sum):
    """A sum of whole numbers."""


class LongCounter(_Sum):
    """A sum of whole numbers."""


class DoubleCounter(_Sum):
    """A sum of floats."""

    def __init__(self, value: float = 0.0) -> None:
        super().__init__(float(value))

    def reset_local(self) -> None:
        self._value = 0.0


class AverageAccumulator(Accumulator[float, float]):
    """The mean of all values; 0.0 without any."""

    def __init__(self) -> None:
        self.reset_local()

    def add(self, value: float) -> None:
        self._count += 1
        self._sum += value

    def get_local_value(self) -> float:
        return self._sum / self._count if self._count else 0.0

    def reset_local(self) -> None:
        self._count, self._sum = 0, 0.0

    def dump(self) -> tuple[int, float]:
        return self._count, float(self._sum)

    def load(self, dumped: tuple[int, float]) -> None:
        self._count, self._sum = dumped

    def merge(self, other: AverageAccumulator) -> None:
        self._count += other._count
        self._sum += other._sum


class Histogram(Accumulator[int, dict[int, int]]):
    """How often each whole number was added, in order."""

    def __init__(self) -> None:
        self.reset_local()

    def add(self, value: int) -> None:
        self._counts[value] += 1

    def get_local_value(self) -> dict[int, int]:
        return dict(sorted(self._counts.items()))

    def reset_local(self) -> None:
        self._counts: _Counts[int] = _Counts()

    def dump(self) -> dict[int, int]:
        return {int(value): count for value, count in self._counts.items()}

    def load(self, dumped: dict[int, int]) -> None:
        self._counts = _Counts(dumped)

    def merge(self, other: Histogram) -> None:
        self._counts.update(other._counts)


#: All kinds that travel to the driver.
KINDS: dict[str, type[Accumulator[Any, Any]]] = {
    kind.__name__: kind for kind in (IntCounter, LongCounter, DoubleCounter, AverageAccumulator, Histogram)
}
