"""AsyncDataStream and retry strategies: PyFlink's parameters, and what is refused where the program says it."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import pytest

from holdfast.common import Duration, Time, Types
from holdfast.datastream import (
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryPredicate,
    AsyncRetryStrategy,
    StreamExecutionEnvironment,
    async_retry_predicates,
)
from holdfast.datastream.async_retry_strategies import (
    NO_RETRY_STRATEGY,
    ExponentialBackoffDelayRetryStrategy,
    RetryPredicate,
)
from holdfast.errors import ConfigurationError, ProgramError


class Echo(AsyncFunction[int, int]):
    async def async_invoke(self, value: int) -> list[int]:
        return [value]


class Plain(AsyncFunction[int, int]):
    def async_invoke(self, value: int) -> list[int]:  # type: ignore[override]  # what the test is about
        return [value]


class AsyncTimeout(Echo):
    async def timeout(self, value: int) -> list[int]:  # type: ignore[override]  # what the test is about
        return []


class WithoutPredicate(AsyncRetryStrategy[int]):
    def can_retry(self, current_attempts: int) -> bool:
        return False

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return 1

    def get_retry_predicate(self) -> AsyncRetryPredicate[int]:
        return None  # type: ignore[return-value]  # what the test is about


FIXED = AsyncRetryStrategy.fixed_delay(1, 1, None, async_retry_predicates.has_exception_predicate)


def stream() -> Any:
    return StreamExecutionEnvironment.get_execution_environment().from_collection([1], Types.LONG())


@pytest.mark.parametrize("kind", ["ordered", "unordered"])
def test_parameters_are_those_of_pyflink(kind: str) -> None:
    plain = inspect.signature(getattr(AsyncDataStream, f"{kind}_wait")).parameters
    assert list(plain) == ["data_stream", "async_function", "timeout", "capacity", "output_type"]
    retried = inspect.signature(getattr(AsyncDataStream, f"{kind}_wait_with_retry")).parameters
    names = ["data_stream", "async_function", "timeout", "async_retry_strategy", "capacity", "output_type"]
    assert list(retried) == names
    assert [each["capacity"].default for each in (plain, retried)] == [100, 100]
    assert [each["output_type"].default for each in (plain, retried)] == [None, None]


def test_the_operator_has_the_name_of_pyflink_and_the_declared_type() -> None:
    added = AsyncDataStream.ordered_wait(stream(), Echo(), Time.seconds(1), output_type=Types.STRING())
    assert (added.get_name(), added.get_type()) == ("async wait operator", Types.STRING())
    row = AsyncDataStream.unordered_wait(stream(), Echo(), Time.seconds(1), 5, [Types.STRING(), Types.LONG()])
    assert row.get_type() == Types.ROW([Types.STRING(), Types.LONG()])


def test_behind_a_key_there_is_no_keyed_state() -> None:
    """So nothing of it is opened in an epoch, or stored."""
    keyed = stream().key_by(lambda value: value, Types.LONG())
    assert keyed.map(str)._node.keyed
    assert not AsyncDataStream.ordered_wait(keyed, Echo(), Time.seconds(1))._node.keyed


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"async_function": Plain()}, "takes an AsyncFunction with 'async def async_invoke.*Plain has none"),
        ({"async_function": lambda value: [value]}, "function has none"),
        ({"async_function": AsyncTimeout()}, "AsyncTimeout needs a method timeout"),
        ({"capacity": 0}, "at least 1; got 0"),
        ({"capacity": 2.5}, "got 2.5"),
        ({"async_retry_strategy": None}, "no retry strategy, or it has no predicate"),
        ({"async_retry_strategy": WithoutPredicate()}, "no retry strategy, or it has no predicate"),
        ({"async_retry_strategy": FIXED, "timeout": Time.seconds(0)}, "A timeout of 0 ms is none"),
        ({"data_stream": [1, 2]}, r"takes a stream; got \[1, 2\]"),
    ],
)
@pytest.mark.parametrize("kind", ["ordered", "unordered"])
def test_what_cannot_work_is_refused_in_the_program(kind: str, given: dict[str, Any], said: str) -> None:
    usual = {
        "data_stream": stream(),
        "async_function": Echo(),
        "timeout": Time.seconds(1),
        "async_retry_strategy": NO_RETRY_STRATEGY,
    }
    with pytest.raises(ProgramError, match=said):
        getattr(AsyncDataStream, f"{kind}_wait_with_retry")(**{**usual, **given})


def test_a_timeout_that_is_no_length_of_time_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'1 s' is not a length of time"):
        AsyncDataStream.ordered_wait(stream(), Echo(), "1 s")
    AsyncDataStream.ordered_wait(stream(), Echo(), Duration.of_seconds(1))


def test_pauses_and_attempts() -> None:
    assert AsyncRetryStrategy.no_restart() is NO_RETRY_STRATEGY and not NO_RETRY_STRATEGY.can_retry(1)
    assert [FIXED.can_retry(attempts) for attempts in (1, 2)] == [True, False]
    assert FIXED.get_backoff_time_millis(7) == 1
    growing = AsyncRetryStrategy.exponential_backoff(3, 10, 100, 2.5, None, None)
    assert isinstance(growing, ExponentialBackoffDelayRetryStrategy)
    # In any order: many rows ask.
    assert [growing.get_backoff_time_millis(attempts) for attempts in (4, 1, 3, 2, 90)] == [100, 10, 62, 25, 100]
    assert [growing.can_retry(attempts) for attempts in (3, 4)] == [True, False]


@pytest.mark.parametrize("wrong", ["max_attempts", "initial_delay", "max_retry_delay", "multiplier"])
def test_numbers_of_strategies_are_checked(wrong: str) -> None:
    given = {"max_attempts": 1, "initial_delay": 1, "max_retry_delay": 1, "multiplier": 1.0, wrong: 0}
    with pytest.raises(ProgramError, match=f"{wrong}=0; it must be greater than zero"):
        AsyncRetryStrategy.exponential_backoff(**given, result_predicate=None, exception_predicate=None)
    with pytest.raises(ProgramError, match="backoff_time_millis=-1"):
        AsyncRetryStrategy.fixed_delay(1, -1, None, None)


def test_predicates() -> None:
    assert [async_retry_predicates.empty_result_predicate(rows) for rows in ([], [1])] == [True, False]
    timed_out = partial(async_retry_predicates.exception_type_predicate, expected_error_type=TimeoutError)
    predicate: RetryPredicate[int] = RetryPredicate(None, timed_out)
    assert predicate.result_predicate() is None
    told = predicate.exception_predicate()
    assert told is not None and told(TimeoutError()) and not told(ValueError())
