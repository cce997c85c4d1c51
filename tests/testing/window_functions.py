"""Window functions of all kinds that give (key, start, end, sum of the values), as the oracle of windows does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holdfast.common import Types
from holdfast.datastream import (
    AggregateFunction,
    KeyedStream,
    ProcessWindowFunction,
    ReduceFunction,
    WindowedStream,
    WindowFunction,
)
from holdfast.datastream.window import CountEvictor
from holdfast.testing import KeyedOperatorHarness

PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])
FIRED = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG(), Types.LONG()])


class SumRows(ProcessWindowFunction):
    def process(
        self, key: str, context: ProcessWindowFunction.Context, elements: Iterable[Any]
    ) -> Iterable[Any]:
        window = context.window()
        yield key, window.start, window.end, sum(value for _, value in elements)


class ApplyRows(WindowFunction):
    def apply(self, key: str, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        return [(key, window.start, window.end, sum(value for _, value in inputs))]


class NameWindow(ProcessWindowFunction):
    def process(
        self, key: str, context: ProcessWindowFunction.Context, elements: Iterable[Any]
    ) -> Iterable[Any]:
        (total,) = elements
        yield key, context.window().start, context.window().end, total


class NameReduced(WindowFunction):
    def apply(self, key: str, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        (row,) = inputs
        return [(key, window.start, window.end, row[1])]


class AddPairs(ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1[0], value1[1] + value2[1]


class SumInPlace(AggregateFunction):
    """A sum whose accumulator is a list that it changes, as programs do."""

    def create_accumulator(self) -> list[int]:
        return [0]

    def add(self, value: Any, accumulator: list[int]) -> list[int]:
        accumulator[0] += value[1]
        return accumulator

    def get_result(self, accumulator: list[int]) -> int:
        return accumulator[0]

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        acc_a[0] += acc_b[0]
        return acc_a


#: By name: from windows to their sums.
KINDS = {
    "process": lambda windows: windows.process(SumRows(), FIRED),
    "apply": lambda windows: windows.apply(ApplyRows(), FIRED),
    "reduce": lambda windows: windows.reduce(AddPairs(), NameReduced(), FIRED),
    "aggregate": lambda windows: windows.aggregate(SumInPlace(), NameWindow(), None, FIRED),
    "evicting": lambda windows: windows.evictor(CountEvictor.of(1_000)).process(SumRows(), FIRED),
    "evicting reduce": lambda windows: windows.evictor(CountEvictor.of(1_000)).reduce(AddPairs(), NameReduced(), FIRED),
    "evicting aggregate": lambda windows: windows.evictor(CountEvictor.of(1_000)).aggregate(
        SumInPlace(), NameWindow(), None, FIRED
    ),
}


def windowed(kind: str, make: Any) -> Any:
    """The ``operation`` of a harness: windows of ``make(stream)`` and the functions of a kind."""

    def operation(stream: KeyedStream, function: Any) -> Any:
        windows: WindowedStream = make(stream)
        return KINDS[kind](windows)

    return operation


def harness(operation: Any, **options: Any) -> KeyedOperatorHarness:
    """A harness of pairs by their first field; ``operation(stream)`` makes the windows."""
    made = {"input_type": PAIR, **options}
    return KeyedOperatorHarness(
        None, lambda row: row[0], Types.STRING(), operation=lambda stream, _: operation(stream), **made
    )
