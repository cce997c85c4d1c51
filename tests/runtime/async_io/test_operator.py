"""Functions behind AsyncDataStream: their results, timeouts, errors and retries, and the ends of epochs and threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from holdfast.common import Row, Time, Types
from holdfast.datastream import AsyncDataStream, AsyncFunction, AsyncRetryStrategy, DataStream, OutputTag
from holdfast.datastream.functions import CheckpointedFunction
from holdfast.datastream.state import ListStateDescriptor, ValueStateDescriptor
from holdfast.errors import CallTimeoutError, FunctionError, StateAccessError
from holdfast.testing import KeyedOperatorHarness, OperatorHarness

#: Long enough for whatever is waited for; a test that needs it has failed.
LONG = Time.seconds(20)
KINDS = ["ordered", "unordered"]


def waiting(
    kind: str = "ordered",
    capacity: int = 100,
    timeout: Any = LONG,
    retry: Any = None,
) -> Callable[..., DataStream]:
    """What puts a function into a program."""

    def operation(stream: DataStream, function: Any) -> DataStream:
        if retry is None:
            added: DataStream = getattr(AsyncDataStream, f"{kind}_wait")(stream, function, timeout, capacity)
        else:
            wait = getattr(AsyncDataStream, f"{kind}_wait_with_retry")
            added = wait(stream, function, timeout, retry, capacity)
        return added

    return operation


def harness(function: Any, event_time: bool = True, **how: Any) -> OperatorHarness:
    return OperatorHarness(function, operation=waiting(**how), event_time=event_time)


class Repeated(AsyncFunction[int, str]):
    async def async_invoke(self, value: int) -> list[str]:
        return [f"{value}.{number}" for number in range(value)]


@pytest.mark.parametrize("kind", KINDS)
def test_any_number_of_results_with_the_time_of_their_row(kind: str) -> None:
    with harness(Repeated(), kind=kind) as tested:
        tested.push_all([2, 0, 1], [20, 10, None]).end_epoch()
        expected = [("2.0", 20), ("2.1", 20), ("1.0", None)]
        assert tested.timestamped_output() == expected


class Never(AsyncFunction[int, str]):
    """Odd rows have no answer."""

    def open(self, runtime_context: Any) -> None:
        self.cancelled: list[int] = []

    async def async_invoke(self, value: int) -> list[str]:
        try:
            if value % 2:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.append(value)
            raise
        return [f"{value}"]


class Instead(Never):
    def timeout(self, value: int) -> list[str]:
        return [f"{value} took too long", "really"]


@pytest.mark.parametrize("kind", KINDS)
def test_timeout_gives_the_results_of_calls_that_take_too_long(kind: str) -> None:
    """Also where they fill the capacity, and the call is cancelled."""
    with harness(Instead(), kind=kind, timeout=Time.milliseconds(20), capacity=2) as tested:
        tested.push_all(range(6), range(6)).end_epoch()
        late = [(text, value) for value in (1, 3, 5) for text in (f"{value} took too long", "really")]
        expected = [("0", 0), ("2", 2), ("4", 4), *late]
        assert sorted(tested.timestamped_output()) == sorted(expected)
        assert sorted(tested.function.cancelled) == [1, 3, 5]


@pytest.mark.parametrize("kind", KINDS)
def test_without_timeout_method_a_long_call_fails_the_job_with_its_row(kind: str) -> None:
    tested = harness(Never(), kind=kind, timeout=Time.milliseconds(20))
    with pytest.raises(CallTimeoutError, match=r"'async wait operator'.*no result within the timeout.*; the row was 7"):
        tested.push_all([6, 7, 8]).end_epoch()


class Deaf(AsyncFunction[int, int]):
    """Calls that swallow their cancellation."""

    async def async_invoke(self, value: int) -> list[int]:
        while True:
            try:
                await asyncio.sleep(0.3)
            except asyncio.CancelledError:
                continue
            return [value]

    def timeout(self, value: int) -> list[int]:
        return [-value]


def test_a_call_that_ignores_its_end_holds_up_nobody() -> None:
    with harness(Deaf(), capacity=1, timeout=Time.milliseconds(10)) as tested:
        tested.push_all([1, 2, 3]).end_epoch()
        assert tested.output() == [-1, -2, -3]


class HeardLater(AsyncFunction[int, int]):
    """Row 1 has its answer while row 2 is asked for, after it was timed out. The calls of later rows are counted."""

    def open(self, runtime_context: Any) -> None:
        self.asked, self.answered = asyncio.Event(), asyncio.Event()
        self.running = self.most = 0

    async def async_invoke(self, value: int) -> list[int]:
        if value == 1:
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            await self.asked.wait()
            self.answered.set()
        else:
            self.running += 1
            self.most = max(self.most, self.running)
            self.asked.set()
            await self.answered.wait()
            await asyncio.sleep(0.01)
            self.running -= 1
        return [value]

    def timeout(self, value: int) -> list[int]:
        return [-value]


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_behind_the_timeout_does_not_count(kind: str) -> None:
    """Neither as a result, nor as the end of one more call."""
    with harness(HeardLater(), kind=kind, timeout=Time.seconds(1), capacity=1) as tested:
        tested.push(1).push(2).push_all([3, 4, 5]).end_epoch()
        assert tested.output() == [-1, 2, 3, 4, 5]
        assert tested.function.most == 1


@pytest.mark.parametrize("timeout", [Time.seconds(0), -1])
def test_a_timeout_of_nothing_is_none(timeout: Any) -> None:
    with harness(Pausing(), timeout=timeout) as tested:
        tested.push(1).end_epoch()
        assert tested.output() == [1]


class Pausing(AsyncFunction[int, int]):
    async def async_invoke(self, value: int) -> list[int]:
        await asyncio.sleep(0.01)
        return [value]


class Failing(AsyncFunction[int, int]):
    """Row 3 fails, while all others are under way and the task waits for one of them."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    async def async_invoke(self, value: int) -> list[int]:
        if value == 3:
            await asyncio.sleep(0.02)
            raise self.error
        await asyncio.Event().wait()
        return [value]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("error", [ValueError("no such account"), SystemExit(1), KeyboardInterrupt(), GeneratorExit()])
def test_an_error_fails_the_job_at_once_and_names_row_and_operator(kind: str, error: BaseException) -> None:
    tested = harness(Failing(error), kind=kind, timeout=Time.seconds(0), capacity=5)
    with pytest.raises(FunctionError) as raised:
        tested.push_all(range(100)).end_epoch()
    message = str(raised.value)
    assert "operator 'async wait operator'" in message and "subtask 1/1" in message
    assert f"{type(error).__name__}: {error}" in message and message.endswith("; the row was 3")
    assert raised.value.__cause__ is not None and type(raised.value.__cause__) is type(error)


class Gives(AsyncFunction[Any, Any]):
    def __init__(self, result: Any) -> None:
        self.result = result

    async def async_invoke(self, value: Any) -> Any:
        return self.result


@pytest.mark.parametrize("result", [None, 7, "text", b"bytes", {"a": 1}, Row(1, 2), Types])
def test_what_is_no_list_of_rows_is_refused(result: Any) -> None:
    with pytest.raises(FunctionError, match=r"async_invoke\(\) gives a list of rows, \[row\] for one .* row was 1"):
        harness(Gives(result)).push(1).end_epoch()


class Generated(AsyncFunction[Any, Any]):
    async def async_invoke(self, value: Any) -> Any:
        return (number for number in (1, 2))


@pytest.mark.parametrize("function", [Gives([1, 2]), Gives((1, 2)), Gives(range(1, 3)), Generated()])
def test_whatever_holds_rows_is_taken(function: Any) -> None:
    with harness(function) as tested:
        tested.push(1).end_epoch()
        assert tested.output() == [1, 2]


class OneObject(AsyncFunction[int, list[int]]):
    """Gives one list for every row, changed in between."""

    def open(self, runtime_context: Any) -> None:
        self.row: list[int] = []

    async def async_invoke(self, value: int) -> list[list[int]]:
        self.row.append(value)
        return [self.row]


def test_results_stay_as_they_were_when_they_were_given() -> None:
    with harness(OneObject()) as tested:
        tested.push_all([1, 2, 3]).end_epoch()
        assert tested.output() == [[1], [1, 2], [1, 2, 3]]


SIDE = OutputTag("side", Types.LONG())


class Tagged(AsyncFunction[int, Any]):
    async def async_invoke(self, value: int) -> list[Any]:
        return [value, (SIDE, -value)]


def test_results_go_to_side_outputs() -> None:
    with OperatorHarness(Tagged(), operation=waiting(), side_outputs=[SIDE]) as tested:
        tested.push_all([1, 2]).end_epoch()
        assert (tested.output(), tested.side_output(SIDE)) == ([1, 2], [-1, -2])


# -- state


class AsksForState(Pausing):
    def open(self, runtime_context: Any) -> None:
        runtime_context.get_state(ValueStateDescriptor("balance", Types.LONG()))


class AsksForStateInACall(AsyncFunction[Any, Any]):
    def open(self, runtime_context: Any) -> None:
        self.context = runtime_context

    async def async_invoke(self, value: Any) -> list[Any]:
        self.context.get_map_state(ValueStateDescriptor("balance", Types.LONG()))
        return [value]


@pytest.mark.parametrize("function", [AsksForState(), AsksForStateInACall()])
def test_keyed_state_is_refused_by_name(function: Any) -> None:
    tested = KeyedOperatorHarness(function, lambda row: row % 2, Types.LONG(), operation=waiting())
    with pytest.raises(StateAccessError, match=r"'async wait operator'.* asked for the state 'balance': an AsyncFunc"):
        tested.push(1).end_epoch()


class AsksLater(AsksForStateInACall):
    async def async_invoke(self, value: Any) -> list[Any]:
        return [value.f1] if value.f1 == 1 else await super().async_invoke(value)


def test_keyed_state_is_refused_in_another_process_too() -> None:
    tested = KeyedOperatorHarness(AsksLater(), lambda row: row, Types.LONG(), operation=waiting())
    tested.push(1).end_epoch().forget_live_objects()
    with pytest.raises(StateAccessError, match="asked for the state 'balance': an AsyncFunction"):
        tested.push(2).end_epoch()


class Counting(AsyncFunction[int, int], CheckpointedFunction):
    """Operator state counts the rows of the subtask."""

    async def async_invoke(self, value: int) -> list[int]:
        await asyncio.sleep(0)
        self.count += 1
        return [self.count]

    def initialize_state(self, context: Any) -> None:
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("count", Types.LONG()))
        self.count = sum(self.state.get())

    def snapshot_state(self, context: Any) -> None:
        self.state.update([self.count])


def test_a_snapshot_has_all_rows_before_it_and_none_behind() -> None:
    tested = harness(Counting()).push_all(range(5))
    tested = tested.restored().push_all(range(3)).end_epoch()
    assert sorted(tested.output()) == [6, 7, 8]
    # What no snapshot has is undone with its epoch.
    again = tested.push(9).fail().push_all(range(2)).end_epoch()
    assert sorted(again.output())[-2:] == [9, 10]
    again.close()


class AsksForKeyedStore(Counting):
    def initialize_state(self, context: Any) -> None:
        context.get_keyed_state_store()


def test_the_keyed_store_is_refused() -> None:
    tested = KeyedOperatorHarness(AsksForKeyedStore(), lambda row: row, Types.LONG(), operation=waiting())
    with pytest.raises(StateAccessError, match="asked for its keyed state: an AsyncFunction"):
        tested.push(1)


# -- life


class Client:
    """Belongs to a loop, and cannot be pickled."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()

    async def ask(self, value: int) -> int:
        assert asyncio.get_running_loop() is self.loop
        await asyncio.sleep(0)
        return value

    async def aclose(self) -> None:
        assert asyncio.get_running_loop() is self.loop
        Connected.closed += 1


class Connected(AsyncFunction[int, int]):
    closed = 0

    def open(self, runtime_context: Any) -> None:
        self.client: Client | None = None

    async def async_invoke(self, value: int) -> list[int]:
        self.client = self.client or Client()
        return [await self.client.ask(value)]

    def close(self) -> None:
        if self.client is not None:
            asyncio.run_coroutine_threadsafe(self.client.aclose(), self.client.loop).result()


def threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("async calls of")]


def test_the_loop_outlives_epochs_and_ends_behind_close() -> None:
    Connected.closed = 0
    with harness(Connected()) as tested:
        tested.push(1).end_epoch()
        client = tested.function.client
        tested.push(2).end_epoch()
        assert tested.function.client is client and len(threads()) == 1
    assert Connected.closed == 1 and not threads()


def test_another_process_has_a_loop_and_a_client_of_its_own() -> None:
    with harness(Connected()) as tested:
        tested.push(1)
        client = tested.end_epoch().function.client
        tested.end_epoch().forget_live_objects()
        assert not threads()
        tested.push(2).end_epoch()
        assert tested.function.client is not client
        assert tested.output() == [1, 2]


class Stuck(AsyncFunction[int, int]):
    """Row 1 never has an answer; what ends with the loop is counted."""

    ended = 0

    async def async_invoke(self, value: int) -> list[int]:
        if value == 2:
            raise ValueError("2")
        try:
            await asyncio.Event().wait()
        finally:
            Stuck.ended += 1
        return []


def test_a_failed_task_cancels_its_calls_and_ends_its_thread() -> None:
    Stuck.ended = 0
    tested = harness(Stuck())
    with pytest.raises(FunctionError):
        tested.push_all([1, 1, 2]).end_epoch()
    assert Stuck.ended == 2 and not threads()


# -- retries


class Flaky(AsyncFunction[int, int]):
    """Row n fails n times, or gives nothing n times."""

    def __init__(self, empty: bool = False) -> None:
        self.empty = empty

    def open(self, runtime_context: Any) -> None:
        self.tries: dict[int, int] = {}

    async def async_invoke(self, value: int) -> list[int]:
        self.tries[value] = self.tries.get(value, 0) + 1
        await asyncio.sleep(0)
        if self.tries[value] <= value:
            if self.empty:
                return []
            raise OSError(f"try {self.tries[value]}")
        return [value]

    def timeout(self, value: int) -> list[int]:
        return [-value]


def passing(error: Exception) -> bool:
    return isinstance(error, OSError)


def nothing(results: list[Any]) -> bool:
    return not results


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "retry",
    [
        AsyncRetryStrategy.fixed_delay(3, 1, None, passing),
        AsyncRetryStrategy.exponential_backoff(3, 1, 4, 2.0, None, passing),
    ],
)
def test_calls_are_tried_again(kind: str, retry: Any) -> None:
    with harness(Flaky(), kind=kind, retry=retry) as tested:
        tested.push_all([3, 0, 1]).end_epoch()
        assert sorted(tested.output()) == [0, 1, 3]
        assert tested.function.tries == {3: 4, 0: 1, 1: 2}
        assert kind == "unordered" or tested.output() == [3, 0, 1]


def test_the_last_error_fails_the_job_when_no_attempt_is_left() -> None:
    tested = harness(Flaky(), retry=AsyncRetryStrategy.fixed_delay(2, 1, None, passing))
    with pytest.raises(FunctionError, match="OSError: try 3; the row was 3"):
        tested.push_all([1, 3]).end_epoch()


def test_the_last_result_counts_when_no_attempt_is_left() -> None:
    with harness(Flaky(empty=True), retry=AsyncRetryStrategy.fixed_delay(2, 1, nothing, None)) as tested:
        tested.push_all([3, 2]).end_epoch()
        assert tested.output() == [2]
        assert tested.function.tries == {3: 3, 2: 3}


def test_other_errors_are_not_tried_again() -> None:
    retry = AsyncRetryStrategy.fixed_delay(2, 1, nothing, lambda error: isinstance(error, KeyError))
    with pytest.raises(FunctionError, match="OSError: try 1; the row was 3"):
        harness(Flaky(), retry=retry).push(3).end_epoch()


def test_the_timeout_counts_all_attempts_and_pauses() -> None:
    retry = AsyncRetryStrategy.fixed_delay(1000, 15, None, passing)
    with harness(Flaky(), retry=retry, timeout=Time.milliseconds(100)) as tested:
        tested.push(1000).end_epoch()
        assert tested.output() == [-1000]
        tries = tested.function.tries[1000]
        tested.push(4).end_epoch()
        # It was cancelled in a pause, and not tried again while the other one was.
        assert 1 <= tries <= 7 and tested.function.tries[1000] == tries


class Pairs(AsyncFunction[Row, Any]):
    async def async_invoke(self, value: Row) -> list[Any]:
        return [(value.f0, value.f1, str(value))]


def test_rows_of_a_keyed_stream_come_with_their_keys() -> None:
    """As PyFlink 2.3.0 gives them."""
    with KeyedOperatorHarness(Pairs(), lambda row: row[1], Types.LONG(), operation=waiting()) as tested:
        tested.push((2, 0)).push((3, 1)).end_epoch()
        assert tested.output() == [(0, (2, 0), "Row(f0=0, f1=(2, 0))"), (1, (3, 1), "Row(f0=1, f1=(3, 1))")]
