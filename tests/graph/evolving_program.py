"""A program with state of every kind, and what may be changed in it before it is restored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from holdfast.common import Types, WatermarkStrategy
from holdfast.datastream import (
    CheckpointedFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeyedProcessFunction,
    MapFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from holdfast.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from tests.integration.programs import PAIR, Scripted
from tests.runtime.local_job import ListSink

ROWS = [(key, key * 10 + n) for n in range(3) for key in range(40)]
COUNTER, BUFFER, EXTRA = "counter", "buffer", "extra"

Descriptor = ValueStateDescriptor | ListStateDescriptor | MapStateDescriptor


def default_keyed() -> tuple[Descriptor, ...]:
    return (
        ValueStateDescriptor("total", Types.INT()),
        ListStateDescriptor("seen", Types.LONG()),
        MapStateDescriptor("places", Types.LONG(), Types.INT()),
    )


def default_lists() -> tuple[tuple[str, Descriptor], ...]:
    return (
        ("get_list_state", ListStateDescriptor("mine", Types.INT())),
        ("get_union_list_state", ListStateDescriptor("ours", Types.LONG())),
        ("get_broadcast_state", MapStateDescriptor("rules", Types.LONG(), Types.INT())),
    )


class Counter(KeyedProcessFunction):
    """Counts the rows of a key in every state that it declares, and sets a timer for each."""

    def __init__(self, descriptors: Iterable[Descriptor], broken: bool = False) -> None:
        self.descriptors = tuple(descriptors)
        self.broken = broken

    def open(self, runtime_context: RuntimeContext) -> None:
        self.values = [runtime_context.get_state(d) for d in self.descriptors if isinstance(d, ValueStateDescriptor)]
        if self.broken:
            raise ConnectionError("no route to the database")
        self.lists = [runtime_context.get_list_state(d) for d in self.descriptors if isinstance(d, ListStateDescriptor)]
        self.maps = [runtime_context.get_map_state(d) for d in self.descriptors if isinstance(d, MapStateDescriptor)]

    def process_element(self, value: tuple[int, int], ctx: KeyedProcessFunction.Context) -> Iterable[tuple[int, int]]:
        for state in self.values:
            state.update((state.value() or 0) + 1)
        for elements in self.lists:
            elements.add(value[1])
        for entries in self.maps:
            entries.put(value[1], 1)
        ctx.timer_service().register_event_time_timer(value[1])
        yield value[0], self.values[0].value() if self.values else 0


class Buffer(MapFunction, CheckpointedFunction):
    """Has operator state of every mode."""

    def __init__(self, lists: Iterable[tuple[str, Descriptor]]) -> None:
        self.lists = tuple(lists)

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        store = context.get_operator_state_store()
        self.handles = [getattr(store, getter)(descriptor) for getter, descriptor in self.lists]

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        for handle in self.handles:
            if hasattr(handle, "put"):
                handle.put(1, 1)
            else:
                handle.add_all([7, 8, 9])

    def map(self, value: Any) -> Any:
        return value


@dataclass(frozen=True)
class Version:
    """One version of the program: the first one as it stands here, and changes of it."""

    keyed: tuple[Descriptor, ...] = field(default_factory=default_keyed)
    lists: tuple[tuple[str, Descriptor], ...] = field(default_factory=default_lists)
    key_type: Any = field(default_factory=Types.LONG)
    key_by: bool = True
    broken: bool = False
    counter_uid: str | None = COUNTER
    counter_uid_hash: str | None = None
    counter_parallelism: int | None = None
    counter_max_parallelism: int | None = None
    buffer: bool = True
    buffer_parallelism: int | None = None
    chained: bool = True
    extra: bool = False

    def __call__(self, env: StreamExecutionEnvironment) -> None:
        source = env.from_source(
            Scripted([ROWS, [], ROWS], ends=False), WatermarkStrategy.no_watermarks(), "rows", PAIR
        ).uid("source")
        stream = self._counted(source)
        if self.buffer:
            stream = stream.map(Buffer(self.lists), PAIR).name(BUFFER).uid(BUFFER)
            self._set(stream, self.buffer_parallelism, None)
        if self.extra:
            keyed = stream.key_by(lambda row: row[0], Types.LONG())
            stream = keyed.process(Counter([ValueStateDescriptor("more", Types.LONG())]), PAIR).name(EXTRA).uid(EXTRA)
        stream.sink_to(ListSink()).uid("sink")

    def _counted(self, source: Any) -> Any:
        if not self.key_by:
            return source.map(lambda row: row, PAIR).name(COUNTER).uid(COUNTER)
        keyed = source.key_by(lambda row: row[0], self.key_type)
        stream = keyed.process(Counter(self.keyed, self.broken), PAIR).name(COUNTER)
        if self.counter_uid is not None:
            stream.uid(self.counter_uid)
        if self.counter_uid_hash is not None:
            stream.set_uid_hash(self.counter_uid_hash)
        self._set(stream, self.counter_parallelism, self.counter_max_parallelism)
        return stream

    def _set(self, stream: Any, parallelism: int | None, max_parallelism: int | None) -> None:
        if parallelism is not None:
            stream.set_parallelism(parallelism)
        if max_parallelism is not None:
            stream.set_max_parallelism(max_parallelism)
        if not self.chained:
            stream.disable_chaining()
