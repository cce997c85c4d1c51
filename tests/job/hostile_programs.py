"""Programs with an object in their state that leaves a trace wherever it is unpickled: one for every place that is
pickled where the program declares no type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from holdfast.common import Time, Types, WatermarkStrategy
from holdfast.connectors.discard import DiscardSink
from holdfast.datastream import (
    BroadcastProcessFunction,
    CheckpointedFunction,
    DataStream,
    KeyedProcessFunction,
    MapFunction,
    ProcessWindowFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from holdfast.datastream.functions import AggregateFunction, Checkpointed, ListCheckpointed
from holdfast.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from holdfast.datastream.window import TumblingProcessingTimeWindows
from holdfast.runtime.source import ReaderContext, SourceReader
from holdfast.testing import TestSource
from tests.integration.programs import Scripted

ROWS = [1, 2, 3]


class Trace:
    """Leaves a file behind where it is unpickled. Programs hold the path alone: they themselves are unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return leave_trace, (self.path,)


def leave_trace(path: str) -> Trace:
    Path(path).touch()
    return Trace(path)


class Keyed(KeyedProcessFunction):
    def __init__(self, kind: str, trace: str) -> None:
        self.kind, self.trace = kind, trace

    def open(self, runtime_context: RuntimeContext) -> None:
        context = runtime_context
        if self.kind == "value":
            self.state = context.get_state(ValueStateDescriptor("place"))
        elif self.kind == "part of a value":
            self.state = context.get_state(ValueStateDescriptor("place", Types.TUPLE([Types.LONG(), _OPEN])))
        elif self.kind == "list":
            self.state = context.get_list_state(ListStateDescriptor("place"))
        elif self.kind == "map":
            self.state = context.get_map_state(MapStateDescriptor("place", Types.LONG(), Types.LIST(_OPEN)))
        elif self.kind == "reducing":
            self.state = context.get_reducing_state(ReducingStateDescriptor("place", lambda a, b: a))
        else:
            self.state = context.get_aggregating_state(AggregatingStateDescriptor("place", Newest()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[int]:
        if self.kind == "value":
            self.state.update(Trace(self.trace))
        elif self.kind == "part of a value":
            self.state.update((1, Trace(self.trace)))
        elif self.kind == "map":
            self.state.put(1, [Trace(self.trace)])
        else:
            self.state.add(Trace(self.trace))
        yield value


class Newest(AggregateFunction):
    def create_accumulator(self) -> Any:
        return None

    def add(self, value: Any, accumulator: Any) -> Any:
        return value

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_b


class Listed(MapFunction, CheckpointedFunction):
    def __init__(self, union: bool, trace: str) -> None:
        self.union, self.trace = union, trace

    def initialize_state(self, context: Any) -> None:
        store, descriptor = context.get_operator_state_store(), ListStateDescriptor("place")
        self.state = store.get_union_list_state(descriptor) if self.union else store.get_list_state(descriptor)
        self.state.get()

    def snapshot_state(self, context: Any) -> None:
        self.state.update([Trace(self.trace)])

    def map(self, value: int) -> int:
        return value


class OldList(MapFunction, ListCheckpointed):
    def __init__(self, trace: str) -> None:
        self.trace = trace

    def snapshot_state(self, checkpoint_id: int, timestamp: int) -> list[Any]:
        return [Trace(self.trace)]

    def restore_state(self, state: list[Any]) -> None:
        pass

    def map(self, value: int) -> int:
        return value


class OldValue(MapFunction, Checkpointed):
    def __init__(self, trace: str) -> None:
        self.trace = trace

    def snapshot_state(self, checkpoint_id: int, checkpoint_timestamp: int) -> Any:
        return Trace(self.trace)

    def restore_state(self, state: Any) -> None:
        pass

    def map(self, value: int) -> int:
        return value


class Broadcasting(BroadcastProcessFunction):
    def __init__(self, trace: str) -> None:
        self.trace = trace

    def process_element(self, value: int, ctx: Any) -> Iterator[int]:
        yield value

    def process_broadcast_element(self, value: int, ctx: Any) -> Iterator[int]:
        ctx.get_broadcast_state(BROADCAST).put(Trace(self.trace), Trace(self.trace))
        yield value


class OpenPositions(Scripted):
    """A source that declares no type of its positions."""

    def __init__(self, trace: str) -> None:
        super().__init__([ROWS], ends=False)
        self.trace = trace

    def position_type(self) -> Any:
        return None

    def create_reader(self, context: ReaderContext) -> SourceReader:
        reader = Scripted.create_reader(self, ReaderContext(0, 1, None))
        trace = self.trace
        reader.positions = lambda: [Trace(trace)]  # type: ignore[method-assign]  # of this reader alone
        return reader


class Contents(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Iterator[int]:
        yield 1


_OPEN = Types.PICKLED_BYTE_ARRAY()
BROADCAST = MapStateDescriptor("place")


def _rows(env: StreamExecutionEnvironment, uid: str = "source") -> DataStream:
    source = TestSource(ROWS, Types.LONG())
    return env.from_source(source, WatermarkStrategy.no_watermarks(), uid).uid(uid)


def _keyed(kind: str) -> Callable[[StreamExecutionEnvironment, str], DataStream]:
    def build(env: StreamExecutionEnvironment, trace: str) -> DataStream:
        keyed = _rows(env).key_by(lambda row: row, Types.LONG())
        return keyed.process(Keyed(kind, trace), output_type=Types.LONG()).uid("hostile")

    return build


def _broadcast(env: StreamExecutionEnvironment, trace: str) -> DataStream:
    connected = _rows(env).connect(_rows(env, "rules").broadcast(BROADCAST))
    return connected.process(Broadcasting(trace), output_type=Types.LONG()).uid("hostile")


def _of_traces(env: StreamExecutionEnvironment, trace: str) -> Any:
    """A keyed stream of rows whose type nobody declares."""
    return _rows(env).map(lambda row: Trace(trace)).key_by(lambda row: 1, Types.LONG())


def _window(env: StreamExecutionEnvironment, trace: str) -> DataStream:
    windows = _of_traces(env, trace).window(TumblingProcessingTimeWindows.of(Time.days(1000)))
    return windows.process(Contents(), output_type=Types.LONG()).uid("hostile")


def _reduce(env: StreamExecutionEnvironment, trace: str) -> DataStream:
    return _of_traces(env, trace).reduce(lambda a, b: a).uid("hostile")


def _positions(env: StreamExecutionEnvironment, trace: str) -> DataStream:
    return env.from_source(OpenPositions(trace), WatermarkStrategy.no_watermarks(), "open").uid("hostile")


#: By the place of the object: the program up to its sink, and how the state is named.
PLACES: dict[str, tuple[Callable[[StreamExecutionEnvironment, str], DataStream], str]] = {
    **{
        kind: (_keyed(kind), f"{kind.rsplit(' ', maxsplit=1)[-1]} state 'place'")
        for kind in ("value", "part of a value", "list", "map", "reducing", "aggregating")
    },
    "split list": (lambda env, it: _rows(env).map(Listed(False, it)).uid("hostile"), "operator list 'place'"),
    "union list": (lambda env, it: _rows(env).map(Listed(True, it)).uid("hostile"), "operator union list 'place'"),
    "ListCheckpointed": (lambda env, it: _rows(env).map(OldList(it)).uid("hostile"), "operator list '_default_'"),
    "Checkpointed": (lambda env, it: _rows(env).map(OldValue(it)).uid("hostile"), "operator list '_default_'"),
    "broadcast": (_broadcast, "broadcast map 'place' of PICKLED_BYTE_ARRAY and PICKLED_BYTE_ARRAY"),
    "window": (_window, "list state 'window-contents'"),
    "reduce": (_reduce, "value state '_reduce'"),
    "positions": (_positions, "operator union list '_positions'"),
}


def build(env: StreamExecutionEnvironment, place: str, trace: str) -> None:
    PLACES[place][0](env, trace).sink_to(DiscardSink()).uid("sink")
