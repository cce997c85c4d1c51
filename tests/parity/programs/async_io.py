"""Asynchronous calls in a stream."""

import asyncio

from pyflink.common import Time, Types
from pyflink.datastream import AsyncDataStream, AsyncFunction, AsyncRetryStrategy, RuntimeContext
from pyflink.datastream.async_retry_predicates import empty_result_predicate, has_exception_predicate

from tests.parity.case import Order, program


def numbers(env, count=20):
    return env.from_collection(list(range(count)), Types.INT())


class Later(AsyncFunction):
    """Earlier rows take longer; every fourth one gives nothing, every fifth one twice."""

    def open(self, runtime_context: RuntimeContext):
        self.opened = True

    async def async_invoke(self, value):
        assert self.opened
        await asyncio.sleep(0.001 * (20 - value))
        if value % 4 == 3:
            return []
        return [value * 10] * (2 if value % 5 == 0 else 1)


@program(4, order=Order.ALONE)
def ordered(env, out):
    return AsyncDataStream.ordered_wait(numbers(env), Later(), Time.seconds(5), 4, Types.INT())


@program(4)
def unordered(env, out):
    return AsyncDataStream.unordered_wait(numbers(env), Later(), Time.seconds(5), output_type=Types.INT())


class Never(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep(60 if value == 2 else 0)
        return [value]

    def timeout(self, value):
        return [-value]


@program(4)
def timed_out(env, out):
    return AsyncDataStream.ordered_wait(numbers(env, 4), Never(), Time.milliseconds(300), 10, Types.INT())


class Silent(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep(60)
        return [value]


@program(4, fails="TimeoutError", modes=("STREAMING",), parallelisms=(1,))
def timed_out_without_a_value(env, out):
    return AsyncDataStream.ordered_wait(numbers(env, 2), Silent(), Time.milliseconds(200), 10, Types.INT())


class Flaky(AsyncFunction):
    """The first call of a value fails, the second gives nothing."""

    def __init__(self):
        self.calls = {}

    async def async_invoke(self, value):
        calls = self.calls[value] = self.calls.get(value, 0) + 1
        if calls == 1:
            raise ValueError("not yet")
        return [] if calls == 2 else [(value, calls)]


PAIR = Types.TUPLE([Types.INT(), Types.INT()])


@program(4)
def retried(env, out):
    strategy = AsyncRetryStrategy.fixed_delay(4, 5, empty_result_predicate, has_exception_predicate)
    return AsyncDataStream.ordered_wait_with_retry(
        numbers(env, 5), Flaky(), Time.seconds(10), strategy, 10, PAIR
    ).union(
        AsyncDataStream.unordered_wait_with_retry(
            numbers(env, 5),
            Flaky(),
            Time.seconds(10),
            AsyncRetryStrategy.exponential_backoff(4, 1, 10, 2.0, empty_result_predicate, has_exception_predicate),
            10,
            PAIR,
        )
    )


class Fails(AsyncFunction):
    async def async_invoke(self, value):
        raise ValueError("never")


@program(4, fails="ValueError: never", modes=("STREAMING",), parallelisms=(1,))
def failing_call(env, out):
    return AsyncDataStream.unordered_wait(numbers(env, 2), Fails(), Time.seconds(5), 10, Types.INT())


@program(4)
def behind_a_key(env, out):
    """Rows of an asynchronous call are keyed afterwards."""
    called = AsyncDataStream.unordered_wait(numbers(env), Later(), Time.seconds(5), 10, Types.INT())
    keyed = called.key_by(lambda value: value % 3, key_type=Types.INT())
    return keyed.map(lambda value: (value % 3, value), PAIR)
