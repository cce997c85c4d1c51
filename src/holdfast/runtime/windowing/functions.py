"""What a window operator calls when a window fires: ``process(key, context, elements)``, whatever the user gave."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

from holdfast.runtime.contracts import Function, WrappingFunction, call
from holdfast.runtime.windowing.contexts import WindowContext


class WindowProcess(Function):
    """The rows of a key in a window, to any number of rows."""

    @abstractmethod
    def process(self, key: Any, context: WindowContext[Any], elements: list[Any]) -> Iterable[Any] | None: ...

    def clear(self, context: WindowContext[Any]) -> None:
        """The window is gone."""


class GiveOut(WindowProcess):
    """The contents themselves: what was reduced or aggregated."""

    def process(self, key: Any, context: WindowContext[Any], elements: list[Any]) -> Iterable[Any] | None:
        return elements


class WrappingProcess(WrappingFunction, WindowProcess):
    """A window function around the user's function."""

    def clear(self, context: WindowContext[Any]) -> None:
        call(self.wrapped_function, "clear", context)


class CallProcess(WrappingProcess):
    """A ProcessWindowFunction."""

    def process(self, key: Any, context: WindowContext[Any], elements: list[Any]) -> Iterable[Any] | None:
        results: Iterable[Any] | None = self.wrapped_function.process(key, context, elements)
        return results


class CallProcessAll(WrappingProcess):
    """A ProcessAllWindowFunction, which knows no key."""

    def process(self, key: Any, context: WindowContext[Any], elements: list[Any]) -> Iterable[Any] | None:
        results: Iterable[Any] | None = self.wrapped_function.process(context, elements)
        return results


class CallApply(WrappingProcess):
    """A WindowFunction."""

    def process(self, key: Any, context: WindowContext[Any], elements: list[Any]) -> Iterable[Any] | None:
        results: Iterable[Any] | None = self.wrapped_function.apply(key, context.window(), elements)
        return results


class CallApplyAll(WrappingProcess):
    """An AllWindowFunction, which knows no key."""

    def process(self, key: Any, context: WindowContext[Any], elements: list[Any]) -> Iterable[Any] | None:
        results: Iterable[Any] | None = self.wrapped_function.apply(context.window(), elements)
        return results


class ReduceFirst(WrappingProcess):
    """Reduces rows that an evictor has left, for the function behind it."""

    def __init__(self, reduce_function: Callable[[Any, Any], Any], function: WindowProcess) -> None:
        super().__init__(function)
        self._reduce = reduce_function

    def process(self, key: Any, context: WindowContext[Any], elements: list[Any]) -> Iterable[Any] | None:
        if not elements:
            return None
        results: Iterable[Any] | None = self.wrapped_function.process(key, context, [reduce(self._reduce, elements)])
        return results


class AggregateFirst(WrappingProcess):
    """Aggregates rows that an evictor has left, for the function behind it."""

    def __init__(self, agg_function: Any, function: WindowProcess) -> None:
        super().__init__(function)
        self._aggregate = agg_function

    def process(self, key: Any, context: WindowContext[Any], elements: list[Any]) -> Iterable[Any] | None:
        if not elements:
            return None
        accumulator = self._aggregate.create_accumulator()
        for element in elements:
            accumulator = self._aggregate.add(element, accumulator)
        result = self._aggregate.get_result(accumulator)
        results: Iterable[Any] | None = self.wrapped_function.process(key, context, [result])
        return results
