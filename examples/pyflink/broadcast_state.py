"""Pairs of shapes of one colour, by rules that all subtasks know: the first shape, then the second."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from holdfast.common import Encoder, Types
from holdfast.datastream import KeyedBroadcastProcessFunction, RuntimeContext, StreamExecutionEnvironment
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.state import MapStateDescriptor

RULES = MapStateDescriptor("rules", Types.STRING(), Types.TUPLE([Types.STRING(), Types.STRING()]))
FIRSTS = MapStateDescriptor("firsts", Types.STRING(), Types.LONG())
Rule = tuple[str, str, str]
Item = tuple[str, str]


class Match(KeyedBroadcastProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.firsts = runtime_context.get_map_state(FIRSTS)

    def process_broadcast_element(self, value: Rule, ctx: KeyedBroadcastProcessFunction.Context) -> None:
        name, first, second = value
        ctx.get_broadcast_state(RULES).put(name, (first, second))

    def process_element(
        self, value: Item, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext
    ) -> Iterator[tuple[str, str]]:
        _, shape = value
        for name, (first, second) in ctx.get_broadcast_state(RULES).items():
            waiting = self.firsts.get(name) or 0
            if shape == second and waiting:
                self.firsts.put(name, waiting - 1)
                yield ctx.get_current_key(), name
            if shape == first:
                self.firsts.put(name, (self.firsts.get(name) or 0) + 1)


def main(output: str | None = None) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    rules = env.from_collection(
        [("square then circle", "square", "circle")], Types.TUPLE([Types.STRING(), Types.STRING(), Types.STRING()])
    ).broadcast(RULES)
    items = env.from_collection(
        [
            ("red", "square"),
            ("blue", "circle"),
            ("red", "circle"),
            ("blue", "square"),
            ("red", "circle"),
            ("blue", "triangle"),
            ("blue", "circle"),
        ],
        Types.TUPLE([Types.STRING(), Types.STRING()]),
    )
    matches = items.key_by(lambda item: item[0], key_type=Types.STRING()).connect(rules).process(Match())
    if output is None:
        matches.print()
    else:
        matches.sink_to(FileSink.for_row_format(output, Encoder.simple_string_encoder()).build())
    env.execute("matches")


if __name__ == "__main__":
    main(*sys.argv[1:])
