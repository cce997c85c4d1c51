"""Functions under test, as a user of PyFlink would write them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.common import Types
from holdfast.datastream import (
    AggregateFunction,
    CheckpointedFunction,
    FlatMapFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeyedProcessFunction,
    MapFunction,
    ReduceFunction,
    RuntimeContext,
    TimeDomain,
)
from holdfast.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)

SUM = ValueStateDescriptor("sum", Types.TUPLE([Types.LONG(), Types.LONG()]))


class CountWithKeyedState(FlatMapFunction):
    """The average of every three values of a key, by integer division."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.sum = runtime_context.get_state(SUM)

    def flat_map(self, value: tuple[str, int]) -> Iterator[tuple[str, int]]:
        current = self.sum.value()
        if current is None:
            current = (0, 0)
        current = (current[0] + 1, current[1] + value[1])
        self.sum.update(current)
        if current[0] >= 3:
            self.sum.clear()
            yield value[0], current[1] // current[0]


class Larger(ReduceFunction):
    def reduce(self, value1: int, value2: int) -> int:
        return max(value1, value2)


class Mean(AggregateFunction):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + 1, accumulator[1] + value

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[1] / accumulator[0]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


VALUE = ValueStateDescriptor("value", Types.LONG())
LIST = ListStateDescriptor("list", Types.LONG())
MAP = MapStateDescriptor("map", Types.STRING(), Types.LONG())
REDUCING = ReducingStateDescriptor("reducing", Larger(), Types.LONG())
AGGREGATING = AggregatingStateDescriptor("aggregating", Mean(), Types.TUPLE([Types.LONG(), Types.LONG()]))


class Everything(KeyedProcessFunction):
    """Does what its rows (key, operation, number) say with every kind of state, and with timers."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.value = runtime_context.get_state(VALUE)
        self.list = runtime_context.get_list_state(LIST)
        self.map = runtime_context.get_map_state(MAP)
        self.reducing = runtime_context.get_reducing_state(REDUCING)
        self.aggregating = runtime_context.get_aggregating_state(AGGREGATING)

    def process_element(self, value: tuple[str, str, int], ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        key, operation, number = value
        timers = ctx.timer_service()
        if operation == "set":
            self.value.update(number)
        elif operation == "add":
            self.list.add(number)
        elif operation == "put":
            self.map.put(str(number % 5), number)
        elif operation == "remove":
            self.map.remove(str(number % 5))
        elif operation == "reduce":
            self.reducing.add(number)
        elif operation == "aggregate":
            self.aggregating.add(number)
        elif operation == "event":
            timers.register_event_time_timer(number)
        elif operation == "processing":
            timers.register_processing_time_timer(number)
        elif operation == "cancel":
            timers.delete_event_time_timer(number)
            timers.delete_processing_time_timer(number)
        elif operation == "clear":
            for state in (self.value, self.list, self.map, self.reducing, self.aggregating):
                state.clear()
        elif operation == "fail":
            raise ValueError("asked to")
        yield key, operation, ctx.get_current_key(), self.value.value()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        domain = "event" if ctx.time_domain() is TimeDomain.EVENT_TIME else "processing"
        self.list.add(timestamp)
        yield domain, timestamp, ctx.get_current_key()


class Connection:
    """Cannot be pickled, as a connection cannot."""

    def __init__(self) -> None:
        self.made_by_open = True

    def __reduce__(self) -> Any:
        raise TypeError("a connection cannot be pickled")


class Counter(MapFunction):
    """A counter in a field, beside a field that cannot be pickled."""

    def __init__(self) -> None:
        self.count = 0
        self.opened = 0

    def open(self, runtime_context: RuntimeContext) -> None:
        self.opened += 1
        self.connection = Connection()

    def map(self, value: int) -> tuple[int, int]:
        assert self.connection.made_by_open
        self.count += 1
        return value, self.count


class Buffering(FlatMapFunction, CheckpointedFunction):
    """Keeps rows until there are three of them; what waits is operator state."""

    def __init__(self) -> None:
        self.waiting: list[int] = []
        self.told: list[Any] = []

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        self.stored = context.get_operator_state_store().get_list_state(ListStateDescriptor("waiting", Types.LONG()))
        self.waiting = list(self.stored.get())
        self.told.append(context.is_restored())

    def flat_map(self, value: int) -> list[int]:
        self.waiting.append(value)
        if len(self.waiting) < 3:
            return []
        out, self.waiting = self.waiting, []
        return out

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.stored.update(self.waiting)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.told.append(("complete", checkpoint_id))

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.told.append(("aborted", checkpoint_id))
