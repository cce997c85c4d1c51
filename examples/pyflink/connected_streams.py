"""Orders meet the price of their article; those that come before it wait in a list state."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from holdfast.common import Encoder, Types
from holdfast.datastream import KeyedCoProcessFunction, RuntimeContext, StreamExecutionEnvironment
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.state import ListStateDescriptor, ValueStateDescriptor

PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])
Pair = tuple[str, int]


class Price(KeyedCoProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.price = runtime_context.get_state(ValueStateDescriptor("price", Types.LONG()))
        self.waiting = runtime_context.get_list_state(ListStateDescriptor("waiting", Types.LONG()))

    def process_element1(self, value: Pair, ctx: KeyedCoProcessFunction.Context) -> Iterator[Pair]:
        price = self.price.value()
        if price is None:
            self.waiting.add(value[1])
        else:
            yield value[0], value[1] * price

    def process_element2(self, value: Pair, ctx: KeyedCoProcessFunction.Context) -> Iterator[Pair]:
        self.price.update(value[1])
        for quantity in self.waiting.get():
            yield value[0], quantity * value[1]
        self.waiting.clear()


def main(output: str | None = None) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    orders = env.from_collection([("tea", 2), ("milk", 1), ("tea", 5), ("salt", 9), ("milk", 4), ("tea", 1)], PAIR)
    prices = env.from_collection([("milk", 2), ("oil", 7), ("tea", 3)], PAIR)
    priced = (
        orders.connect(prices)
        .key_by(lambda order: order[0], lambda price: price[0], key_type=Types.STRING())
        .process(Price(), PAIR)
    )
    if output is None:
        priced.print()
    else:
        priced.sink_to(FileSink.for_row_format(output, Encoder.simple_string_encoder()).build())
    env.execute("prices")


if __name__ == "__main__":
    main(*sys.argv[1:])
