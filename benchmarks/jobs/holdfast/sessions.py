"""How long each session of a user was, and how many clicks it had."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from benchmarks.jobs.holdfast.inputs import Inputs
from holdfast.common import Row, Time, Types
from holdfast.datastream import AggregateFunction, DataStream, ProcessWindowFunction
from holdfast.datastream.window import EventTimeSessionWindows, TimeWindow

SESSION = Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()])


class Count(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Row, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class Length(ProcessWindowFunction[int, tuple[int, int, int], int, TimeWindow]):
    def process(
        self, key: int, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[int]
    ) -> Iterator[tuple[int, int, int]]:
        window = context.window()
        for count in elements:
            yield key, window.end - window.start, count


def sessions(inputs: Inputs) -> DataStream:
    gap = Time.milliseconds(inputs.arguments.gap_ms)
    return (
        inputs.table("clicks")
        .key_by("key")
        .window(EventTimeSessionWindows.with_gap(gap))
        .aggregate(Count(), Length(), Types.LONG(), SESSION)
        .filter(lambda session: session[0] >= 0)
    )
