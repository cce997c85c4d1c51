"""In which order results and watermarks leave the operator behind AsyncDataStream, and how many calls overlap."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import cloudpickle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.common import Types
from holdfast.datastream import AsyncFunction
from holdfast.datastream.async_retry_strategies import NO_RETRY_STRATEGY
from holdfast.runtime.async_io.operator import AsyncWait, AsyncWaitOperator
from holdfast.runtime.batch import Batch
from holdfast.runtime.environment import OperatorEnvironment
from holdfast.runtime.operator import MAX_WATERMARK, Operator
from holdfast.runtime.plan import OperatorSpec

KINDS = ["ordered", "unordered"]


class Follower(Operator):
    """What comes out: rows with their watermarks, and ``("watermark", time)``."""

    def __init__(self) -> None:
        self.rows_in = 0
        self.seen: list[Any] = []

    def process(self, batch: Batch, input_index: int) -> None:
        self.seen += batch.values if batch.watermarks is None else zip(batch.values, batch.watermarks, strict=True)

    def process_watermark(self, watermark: int) -> None:
        self.seen.append(("watermark", watermark))


class Driven:
    """The operator, driven call by call."""

    def __init__(self, function: Any, kind: str, capacity: int = 100, event_time: bool = False) -> None:
        wait = AsyncWait(function, 20.0, capacity, NO_RETRY_STRATEGY, kind == "ordered")
        body = cloudpickle.dumps(wait)
        spec = OperatorSpec("id", "asks", AsyncWaitOperator, body, 1, 1, Types.LONG(), event_time=event_time)
        self.operator = AsyncWaitOperator(spec)
        no_state: Any = None
        self.operator.setup(OperatorEnvironment(spec, "job", "job", 0, 1, no_state))
        self.operator.bind_state()
        self.operator.open()
        self.follower = Follower()
        self.operator.output.add_operator(self.follower)

    def __enter__(self) -> Driven:
        return self

    def __exit__(self, *_: Any) -> None:
        self.operator.let_go()

    def push(self, values: Sequence[int], watermarks: Sequence[int] | None = None) -> None:
        times = None if watermarks is None else list(values)
        self.operator.process(Batch(list(values), times, watermarks), 0)

    def end(self) -> list[Any]:
        """What came out in this epoch."""
        self.operator.end_rows()
        seen, self.follower.seen = self.follower.seen, []
        return seen


class Reversed(AsyncFunction[int, int]):
    """Each call waits for the one after it, up to the next multiple of ``size``."""

    def __init__(self, size: int) -> None:
        self.size = size

    def open(self, runtime_context: Any) -> None:
        self.over: dict[int, asyncio.Event] = {}

    async def async_invoke(self, value: int) -> list[int]:
        if (value + 1) % self.size:
            await self.over.setdefault(value + 1, asyncio.Event()).wait()
        self.over.setdefault(value, asyncio.Event()).set()
        return [value]


@pytest.mark.parametrize(("kind", "expected"), [("ordered", range(6)), ("unordered", range(5, -1, -1))])
def test_results_come_in_the_order_of_their_rows_or_of_their_ends(kind: str, expected: range) -> None:
    with Driven(Reversed(6), kind) as driven:
        # Calls of one batch wait for those of the next one.
        driven.push(range(2))
        driven.push(range(2, 6))
        assert driven.end() == list(expected)


class Held(AsyncFunction[int, int]):
    """Rows below ten wait for the call of row 12 to be over."""

    def open(self, runtime_context: Any) -> None:
        self.last_over = asyncio.Event()

    async def async_invoke(self, value: int) -> list[int]:
        if value < 10:
            await self.last_over.wait()
        if value == 12:
            self.last_over.set()
        return [value]


@pytest.mark.parametrize("kind", KINDS)
def test_results_and_watermarks_do_not_pass_each_other(kind: str) -> None:
    with Driven(Held(), kind, event_time=True) as driven:
        driven.push([0, 1], [-1, -1])
        driven.operator.process_watermark(5)
        driven.push([10, 11, 12], [5, 5, 5])
        driven.operator.process_watermark(8)
        assert driven.operator.watermark == 8
        rows = [(0, -1), (1, -1), ("watermark", 5), (10, 5), (11, 5), (12, 5), ("watermark", 8)]
        assert driven.end() == rows


@pytest.mark.parametrize("kind", KINDS)
def test_results_do_not_pass_the_watermark_that_a_row_brings(kind: str) -> None:
    with Driven(Held(), kind, event_time=True) as driven:
        driven.push([0, 1, 10, 11, 12], [0, 0, 1, 1, 2])
        assert driven.end() == [(0, 0), (1, 0), (10, 1), (11, 1), (12, 2)]


@pytest.mark.parametrize("kind", KINDS)
def test_without_calls_under_way_a_watermark_goes_on_at_once(kind: str) -> None:
    with Driven(Held(), kind, event_time=True) as driven:
        driven.operator.process_watermark(5)
        driven.operator.process_watermark(4)
        assert driven.follower.seen == [("watermark", 5)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_end_of_event_time_waits_for_all_calls(kind: str) -> None:
    """Operators behind hear of it from the chain as soon as this operator returns."""
    with Driven(Reversed(4), kind, event_time=True) as driven:
        driven.push(range(4), [0] * 4)
        driven.operator.process_watermark(MAX_WATERMARK)
        assert sorted(driven.follower.seen[:4]) == [(value, 0) for value in range(4)]
        assert driven.follower.seen[4:] == [("watermark", MAX_WATERMARK)]


class Shaken(AsyncFunction[int, int]):
    """Calls end in an order of their own; row n has n % 3 results."""

    def __init__(self, pauses: list[int]) -> None:
        self.pauses = pauses

    async def async_invoke(self, value: int) -> list[int]:
        for _ in range(self.pauses[value % len(self.pauses)]):
            await asyncio.sleep(0)
        return [value] * (value % 3)


@given(
    kind=st.sampled_from(KINDS),
    capacity=st.integers(1, 7),
    pauses=st.lists(st.integers(0, 9), min_size=1),
    steps=st.lists(st.integers(0, 5), min_size=1, max_size=12),
)
def test_any_rows_and_watermarks(kind: str, capacity: int, pauses: list[int], steps: list[int]) -> None:
    """A step is a batch of so many rows, none for a watermark. Between two watermarks there are the same results."""
    expected: list[Any] = []
    count = watermark = 0
    with Driven(Shaken(pauses), kind, capacity, event_time=True) as driven:
        for rows in steps:
            if rows:
                driven.push(range(count, count + rows), [watermark] * rows)
                expected += [(value, watermark) for value in range(count, count + rows) for _ in range(value % 3)]
                count += rows
            else:
                watermark = count + 1 if count >= watermark else watermark + 1
                driven.operator.process_watermark(watermark)
                expected.append(("watermark", watermark))
        found = driven.end()
    if kind == "unordered":
        found, expected = list(sorted_between_watermarks(found)), list(sorted_between_watermarks(expected))
    assert found == expected


def sorted_between_watermarks(seen: list[Any]) -> Iterator[Any]:
    rows: list[Any] = []
    for each in [*seen, ("watermark", None)]:
        if each[0] == "watermark":
            yield from sorted(rows)
            yield each
            rows = []
        else:
            rows.append(each)


class Crowd(AsyncFunction[int, int]):
    """Nobody goes on before ``size`` calls are under way."""

    def __init__(self, size: int) -> None:
        self.size = size

    def open(self, runtime_context: Any) -> None:
        self.barrier = asyncio.Barrier(self.size)
        self.running = self.most = 0

    async def async_invoke(self, value: int) -> list[int]:
        self.running += 1
        self.most = max(self.most, self.running)
        await self.barrier.wait()
        self.running -= 1
        return [value]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch", [1000, 150, 7])
def test_a_thousand_calls_take_as_long_as_ten(kind: str, batch: int) -> None:
    """A hundred at a time, whatever the batches, and never more than that."""
    with Driven(Crowd(100), kind, capacity=100) as driven:
        for start in range(0, 1000, batch):
            driven.push(range(start, min(1000, start + batch)))
        assert sorted(driven.end()) == list(range(1000))
        assert driven.operator.function.most == 100


def test_a_capacity_of_one_is_one_call_after_the_other() -> None:
    with Driven(Crowd(1), "unordered", capacity=1) as driven:
        driven.push(range(5))
        assert driven.end() == list(range(5))
        assert driven.operator.function.most == 1


class Counted(AsyncFunction[int, int]):
    def open(self, runtime_context: Any) -> None:
        self.running = self.most = 0

    async def async_invoke(self, value: int) -> list[int]:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0.02)
        self.running -= 1
        return [value]


@pytest.mark.parametrize("capacity", [2, 3])
def test_no_more_calls_than_the_capacity(capacity: int) -> None:
    with Driven(Counted(), "unordered", capacity) as driven:
        driven.push(range(3 * capacity))
        assert sorted(driven.end()) == list(range(3 * capacity))
        assert driven.operator.function.most == capacity


@pytest.mark.parametrize("kind", KINDS)
def test_results_leave_while_others_are_under_way(kind: str) -> None:
    """So that calls of a function that is chained to it can begin."""
    with Driven(Shaken([0]), kind, capacity=2) as driven:
        driven.push([1] * 20)
        assert len(driven.follower.seen) >= 10
        assert driven.end() == [1] * 20
