"""The average of every three values per key, written as for PyFlink."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.jobs.holdfast.inputs import Inputs
from holdfast.common import Row, Types
from holdfast.datastream import DataStream, FlatMapFunction, RuntimeContext
from holdfast.datastream.state import ValueStateDescriptor


class CountWithKeyedState(FlatMapFunction):
    """State (sum, count); every third value of a key emits ``sum // count`` and clears it."""

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("average", Types.TUPLE([Types.LONG(), Types.LONG()]))
        self.sum = runtime_context.get_state(descriptor)

    def flat_map(self, value: Row) -> Iterator[tuple[int, int]]:
        current = self.sum.value()
        if current is None:
            current = (0, 0)
        current = (current[0] + value[1], current[1] + 1)
        if current[1] >= 3:
            self.sum.clear()
            yield value[0], current[0] // current[1]
        else:
            self.sum.update(current)


def average(inputs: Inputs) -> DataStream:
    return (
        inputs.table("events")
        .key_by("key")
        .flat_map(CountWithKeyedState(), output_type=Types.TUPLE([Types.LONG(), Types.LONG()]))
        .uid("average")
    )
