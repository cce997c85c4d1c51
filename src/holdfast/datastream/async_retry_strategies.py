"""What is done about calls of an AsyncFunction that fail, or give what is of no use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from holdfast.errors import ProgramError

__all__ = [
    "ExponentialBackoffDelayRetryStrategy",
    "FixedDelayRetryStrategy",
    "NoRetryStrategy",
    "RetryPredicate",
]

OUT = TypeVar("OUT")

ResultPredicate = Callable[[list[Any]], bool] | None
ExceptionPredicate = Callable[[Exception], bool] | None


class AsyncRetryPredicate(ABC, Generic[OUT]):
    """Which outcomes of a call are a reason to try again. The module ``async_retry_predicates`` has some."""

    @abstractmethod
    def result_predicate(self) -> Callable[[list[OUT]], bool] | None:
        """A function that is true of results to try again for, or None: all results count."""

    @abstractmethod
    def exception_predicate(self) -> Callable[[Exception], bool] | None:
        """A function that is true of errors to try again after, or None: every error fails the job."""


class AsyncRetryStrategy(ABC, Generic[OUT]):
    """How often the call for a row is tried again, and after which pauses.

    The timeout covers all attempts and pauses of a row. The count is forgotten when the job restarts: its rows come
    again, and their calls begin anew. One strategy serves all rows of a subtask, whose attempts overlap, so a strategy
    of your own goes by ``current_attempts`` and keeps nothing of single rows.
    """

    @abstractmethod
    def can_retry(self, current_attempts: int) -> bool:
        """Whether one more attempt follows that many."""

    @abstractmethod
    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """The pause behind that many attempts."""

    @abstractmethod
    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """What is tried again."""

    @staticmethod
    def no_restart() -> AsyncRetryStrategy[Any]:
        """One attempt for each row."""
        return NO_RETRY_STRATEGY

    @staticmethod
    def fixed_delay(
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultPredicate,
        exception_predicate: ExceptionPredicate,
    ) -> AsyncRetryStrategy[Any]:
        """Up to ``max_attempts`` more attempts, each after the same pause."""
        return FixedDelayRetryStrategy(max_attempts, backoff_time_millis, result_predicate, exception_predicate)

    @staticmethod
    def exponential_backoff(
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: ResultPredicate,
        exception_predicate: ExceptionPredicate,
    ) -> AsyncRetryStrategy[Any]:
        """Up to ``max_attempts`` more attempts, after pauses that grow by ``multiplier``. Times are in milliseconds."""
        return ExponentialBackoffDelayRetryStrategy(
            max_attempts, initial_delay, max_retry_delay, multiplier, result_predicate, exception_predicate
        )


class RetryPredicate(AsyncRetryPredicate[OUT]):
    """Two functions."""

    def __init__(self, result_predicate: ResultPredicate, exception_predicate: ExceptionPredicate) -> None:
        self._result_predicate = result_predicate
        self._exception_predicate = exception_predicate

    def result_predicate(self) -> ResultPredicate:
        return self._result_predicate

    def exception_predicate(self) -> ExceptionPredicate:
        return self._exception_predicate


class NoRetryStrategy(AsyncRetryStrategy[OUT]):
    """One attempt for each row."""

    def can_retry(self, current_attempts: int) -> bool:
        return False

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return -1

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        return RetryPredicate(None, None)


class FixedDelayRetryStrategy(AsyncRetryStrategy[OUT]):
    """One pause, before each attempt but the first."""

    def __init__(
        self,
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultPredicate,
        exception_predicate: ExceptionPredicate,
    ) -> None:
        _check_positive(max_attempts=max_attempts, backoff_time_millis=backoff_time_millis)
        self._max_attempts = max_attempts
        self._backoff_time_millis = backoff_time_millis
        self._predicate: RetryPredicate[OUT] = RetryPredicate(result_predicate, exception_predicate)

    def can_retry(self, current_attempts: int) -> bool:
        return current_attempts <= self._max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return self._backoff_time_millis

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        return self._predicate


class ExponentialBackoffDelayRetryStrategy(AsyncRetryStrategy[OUT]):
    """Pauses that grow from one attempt to the next, up to a limit."""

    def __init__(
        self,
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: ResultPredicate,
        exception_predicate: ExceptionPredicate,
    ) -> None:
        _check_positive(
            max_attempts=max_attempts,
            initial_delay=initial_delay,
            max_retry_delay=max_retry_delay,
            multiplier=multiplier,
        )
        self._max_attempts = max_attempts
        self._initial_delay = initial_delay
        self._max_retry_delay = max_retry_delay
        self._multiplier = multiplier
        self._predicate: RetryPredicate[OUT] = RetryPredicate(result_predicate, exception_predicate)

    def can_retry(self, current_attempts: int) -> bool:
        return current_attempts <= self._max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        # Computed anew: the attempts of many rows ask in turns.
        delay = self._initial_delay
        for _ in range(current_attempts - 1):
            longer = int(min(delay * self._multiplier, self._max_retry_delay))
            if longer == delay:
                break
            delay = longer
        return delay

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        return self._predicate


def _check_positive(**given: float) -> None:
    for name, value in given.items():
        if value <= 0:
            raise ProgramError(f"The retry strategy has {name}={value!r}; it must be greater than zero.")


NO_RETRY_STRATEGY: AsyncRetryStrategy[Any] = NoRetryStrategy()
