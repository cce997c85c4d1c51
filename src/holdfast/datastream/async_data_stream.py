"""Rows through an AsyncFunction."""

from __future__ import annotations

from dataclasses import replace
from inspect import iscoroutinefunction
from typing import Any

from holdfast.datastream.async_retry_strategies import NO_RETRY_STRATEGY
from holdfast.datastream.data_stream import DataStream, KeyedStream
from holdfast.datastream.functions import AsyncFunction, AsyncRetryStrategy
from holdfast.errors import ProgramError
from holdfast.runtime.async_io.operator import AsyncWait, AsyncWaitOperator
from holdfast.types.durations import offset_of
from holdfast.types.typeinfo import Types

__all__ = ["AsyncDataStream"]


class AsyncDataStream:
    """Four ways to send a stream through an ``AsyncFunction``, whose calls overlap.

    ``capacity`` is how many calls of one subtask run at a time. A call that takes longer than ``timeout``, all its
    attempts together, is cancelled, and ``AsyncFunction.timeout`` gives the result. An epoch, and with it a checkpoint,
    ends when all calls of its rows are over. On a keyed stream rows go to the subtask of their key; the function has no
    keyed state, and gets pairs of key and row, ``value.f0`` and ``value.f1``, as in PyFlink.
    """

    @staticmethod
    def unordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Any,
        capacity: int = 100,
        output_type: Any = None,
    ) -> DataStream:
        """Results in the order in which they come; none passes a watermark."""
        return AsyncDataStream.unordered_wait_with_retry(
            data_stream, async_function, timeout, NO_RETRY_STRATEGY, capacity, output_type
        )

    @staticmethod
    def unordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Any,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: Any = None,
    ) -> DataStream:
        """Results in the order in which they come, with calls that are tried again."""
        wait = _checked(async_function, timeout, async_retry_strategy, capacity)
        return _added(data_stream, replace(wait, ordered=False), output_type)

    @staticmethod
    def ordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Any,
        capacity: int = 100,
        output_type: Any = None,
    ) -> DataStream:
        """Results in the order of their rows."""
        return AsyncDataStream.ordered_wait_with_retry(
            data_stream, async_function, timeout, NO_RETRY_STRATEGY, capacity, output_type
        )

    @staticmethod
    def ordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Any,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: Any = None,
    ) -> DataStream:
        """Results in the order of their rows, with calls that are tried again."""
        wait = _checked(async_function, timeout, async_retry_strategy, capacity)
        return _added(data_stream, wait, output_type)


def _added(data_stream: DataStream, wait: AsyncWait, output_type: Any) -> DataStream:
    if not isinstance(data_stream, DataStream):
        raise ProgramError(f"AsyncDataStream takes a stream; got {data_stream!r}.")
    declared = Types.ROW(output_type) if isinstance(output_type, list) else output_type
    placed = replace(wait, with_keys=isinstance(data_stream, KeyedStream))
    return data_stream._add_stateless("async wait operator", AsyncWaitOperator, placed, declared)


def _checked(function: Any, timeout: Any, strategy: Any, capacity: Any) -> AsyncWait:
    name = type(function).__name__
    if not iscoroutinefunction(getattr(function, "async_invoke", None)):
        raise ProgramError(
            f"AsyncDataStream takes an AsyncFunction with 'async def async_invoke(self, value)'; {name} has none."
        )
    on_timeout = getattr(function, "timeout", None)
    if not callable(on_timeout) or iscoroutinefunction(on_timeout):
        raise ProgramError(f"{name} needs a method timeout(value) that is no 'async def', as AsyncFunction has it.")
    if not isinstance(capacity, int) or isinstance(capacity, bool) or capacity < 1:
        raise ProgramError(f"The capacity is how many calls run at a time, at least 1; got {capacity!r}.")
    if strategy is None or strategy.get_retry_predicate() is None:
        raise ProgramError("There is no retry strategy, or it has no predicate. Use AsyncRetryStrategy.no_restart().")
    millis = offset_of(timeout)
    if millis <= 0 and strategy is not NO_RETRY_STRATEGY:
        raise ProgramError(
            f"A timeout of {millis} ms is none, and calls that are tried again need one: give the time that all "
            "attempts of a row may take together."
        )
    return AsyncWait(function, millis / 1000 if millis > 0 else None, capacity, strategy)
