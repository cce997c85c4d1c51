"""Values multiplied by the factor of their rule, which every subtask has in broadcast state."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.jobs.holdfast.inputs import Inputs
from benchmarks.oracle import RULES, rule
from holdfast.common import Row, Types
from holdfast.datastream import BroadcastProcessFunction, DataStream
from holdfast.datastream.state import MapStateDescriptor

PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
FACTORS = MapStateDescriptor("factors", Types.LONG(), Types.LONG())


class Enrich(BroadcastProcessFunction):
    def process_broadcast_element(self, value: tuple[int, int], ctx: BroadcastProcessFunction.Context) -> None:
        ctx.get_broadcast_state(FACTORS).put(value[0], value[1])

    def process_element(
        self, value: Row, ctx: BroadcastProcessFunction.ReadOnlyContext
    ) -> Iterator[tuple[int, int]]:
        factor = ctx.get_broadcast_state(FACTORS).get(value[0] % RULES)
        if factor is not None:
            yield value[0], value[1] * factor


def enrichment(inputs: Inputs) -> DataStream:
    rules = inputs.env.from_collection([(number, rule(number)) for number in range(RULES)], PAIR)
    return inputs.table("events").connect(rules.broadcast(FACTORS)).process(Enrich(), PAIR)
