"""Calls that are tried again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from holdfast.runtime.async_io.calls import Invocation


class RetryPredicate(Protocol):
    """What is tried again; without a predicate nothing of that kind is."""

    def result_predicate(self) -> Callable[[Any], bool] | None: ...

    def exception_predicate(self) -> Callable[[Exception], bool] | None: ...


class RetryStrategy(Protocol):
    """How often a call is tried, and after which pause. Attempts of a row count from 1."""

    def can_retry(self, current_attempts: int) -> bool: ...

    def get_backoff_time_millis(self, current_attempts: int) -> int: ...

    def get_retry_predicate(self) -> RetryPredicate: ...


def retried(invoke: Invocation, strategy: RetryStrategy) -> Invocation:
    """The call as its strategy wants it: the same one where nothing is ever tried again."""
    predicate = strategy.get_retry_predicate()
    on_result, on_error = predicate.result_predicate(), predicate.exception_predicate()
    if on_result is None and on_error is None:
        return invoke
    wrong_result, passing_error = on_result or _never, on_error or _never

    async def invoke_again(row: Any) -> Any:
        attempts = 1
        while True:
            try:
                results = await invoke(row)
            except Exception as error:
                if not (passing_error(error) and strategy.can_retry(attempts)):
                    raise
            else:
                # None is no result, and is refused as such.
                if results is None or not (wrong_result(results) and strategy.can_retry(attempts)):
                    return results
            await asyncio.sleep(strategy.get_backoff_time_millis(attempts) / 1000)
            attempts += 1

    return invoke_again


def _never(_: Any) -> bool:
    return False
