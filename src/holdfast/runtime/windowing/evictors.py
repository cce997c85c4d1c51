"""Evictors: which rows of a window are removed when it fires, before or after the function has seen them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Self

from holdfast.errors import ProgramError
from holdfast.types.durations import milliseconds_of


class TimestampedValue(NamedTuple):
    """A row of a window, and its event time, or None where it has none."""

    value: Any
    timestamp: int | None


class EvictorContext(ABC):
    """The context of evictors."""

    @abstractmethod
    def get_current_processing_time(self) -> int: ...

    @abstractmethod
    def get_current_watermark(self) -> int: ...


class Evictor(ABC):
    """Removes rows from a window that fires, by deleting them from ``elements``."""

    @abstractmethod
    def evict_before(
        self, elements: list[TimestampedValue], size: int, window: Any, evictor_context: EvictorContext
    ) -> None:
        """Called before the window's function. ``elements`` are in the order in which they came."""

    @abstractmethod
    def evict_after(
        self, elements: list[TimestampedValue], size: int, window: Any, evictor_context: EvictorContext
    ) -> None:
        """Called after the window's function."""


class _OnOneSide(Evictor):
    """Evicts before the function, or after it."""

    def __init__(self, do_evict_after: bool) -> None:
        self._after = do_evict_after

    @abstractmethod
    def evict(self, elements: list[TimestampedValue]) -> None: ...

    def evict_before(
        self, elements: list[TimestampedValue], size: int, window: Any, evictor_context: EvictorContext
    ) -> None:
        if not self._after:
            self.evict(elements)

    def evict_after(
        self, elements: list[TimestampedValue], size: int, window: Any, evictor_context: EvictorContext
    ) -> None:
        if self._after:
            self.evict(elements)


class CountEvictor(_OnOneSide):
    """Keeps the last rows, so many of them."""

    def __init__(self, max_count: int, do_evict_after: bool = False) -> None:
        if max_count < 0:
            raise ProgramError(f"CountEvictor was given {max_count} rows to keep; it must not be negative.")
        super().__init__(do_evict_after)
        self._max_count = max_count

    @classmethod
    def of(cls, max_count: int, do_evict_after: bool = False) -> Self:
        return cls(max_count, do_evict_after)

    def evict(self, elements: list[TimestampedValue]) -> None:
        del elements[: max(0, len(elements) - self._max_count)]


class TimeEvictor(_OnOneSide):
    """Keeps the rows that are not older than the newest one by more than a length of time."""

    def __init__(self, window_size: int, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        self._window_size = window_size

    @classmethod
    def of(cls, window_size: Any, do_evict_after: bool = False) -> Self:
        return cls(milliseconds_of(window_size), do_evict_after)

    def evict(self, elements: list[TimestampedValue]) -> None:
        times = [element.timestamp for element in elements if element.timestamp is not None]
        # Rows without times stay, as in Flink.
        if len(times) == len(elements) and times:
            oldest = max(times) - self._window_size
            elements[:] = [e for e in elements if e.timestamp is not None and e.timestamp > oldest]


class DeltaEvictor(_OnOneSide):
    """Removes the rows that are away from the last one by a threshold or more."""

    def __init__(self, threshold: float, delta_function: Any, do_evict_after: bool = False) -> None:
        delta = getattr(delta_function, "get_delta", delta_function)
        if not callable(delta):
            raise ProgramError(f"DeltaEvictor takes a function of two rows; got {delta_function!r}.")
        super().__init__(do_evict_after)
        self._threshold = threshold
        self._delta: Callable[[Any, Any], float] = delta

    @classmethod
    def of(cls, threshold: float, delta_function: Any, do_evict_after: bool = False) -> Self:
        """``delta_function(row, last row)`` says how far they are apart."""
        return cls(threshold, delta_function, do_evict_after)

    def evict(self, elements: list[TimestampedValue]) -> None:
        if elements:
            last = elements[-1].value
            elements[:] = [e for e in elements if self._delta(e.value, last) < self._threshold]
