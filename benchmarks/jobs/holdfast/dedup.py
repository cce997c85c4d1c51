"""The first event of each key; keys are forgotten an hour after it."""

from __future__ import annotations

from benchmarks.jobs.holdfast.inputs import Inputs
from holdfast.common import Row, Time, Types
from holdfast.datastream import DataStream, FilterFunction, RuntimeContext
from holdfast.datastream.state import StateTtlConfig, ValueStateDescriptor


class First(FilterFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        seen = ValueStateDescriptor("seen", Types.BOOLEAN())
        seen.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
        self.seen = runtime_context.get_state(seen)

    def filter(self, value: Row) -> bool:
        if self.seen.value():
            return False
        self.seen.update(True)
        return True


def dedup(inputs: Inputs) -> DataStream:
    return inputs.table("events").key_by("key").filter(First())
