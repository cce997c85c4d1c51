"""Where the operator under test stands in a program: what a program would write to make it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from holdfast.common.watermark_strategy import WatermarkStrategy
from holdfast.datastream.data_stream import DataStream, DataStreamSink, KeyedStream
from holdfast.datastream.stream_execution_environment import StreamExecutionEnvironment
from holdfast.errors import ProgramError
from holdfast.runtime.sink import TwoPhaseCommitSink
from holdfast.runtime.source import Source
from holdfast.runtime.stream_operator import StreamOperator
from holdfast.testing.options import Setup

#: By the method that a function has.
_OPERATIONS = {
    "map": "map",
    "flat_map": "flat_map",
    "filter": "filter",
    "reduce": "reduce",
    "process_element": "process",
    "process_batch": "process",
}
_WITHOUT_OUTPUT_TYPE = ("filter", "reduce")
_CONNECTED_OPERATIONS = {"map1": "map", "flat_map1": "flat_map", "process_element1": "process"}


@dataclass(frozen=True)
class Place(ABC):
    """``function`` is the function, source or sink under test."""

    function: Any

    @abstractmethod
    def build(self, environment: StreamExecutionEnvironment, setup: Setup) -> DataStream | DataStreamSink:
        """Put the operator into a program."""


@dataclass(frozen=True)
class Key:
    """The arguments of ``key_by``."""

    selector: Any
    key_type: Any = None

    def of(self, stream: DataStream) -> KeyedStream:
        return stream.key_by(self.selector, self.key_type)


@dataclass(frozen=True)
class OnStream(Place):
    """The place of an operator behind one stream, which may be keyed, and connected to a broadcast one."""

    key: Key | None = None

    def build(self, environment: StreamExecutionEnvironment, setup: Setup) -> DataStream:
        stream: DataStream = environment.from_collection([], setup.input_type)
        # What is built on it may ask for event times.
        stream._node.event_time = setup.event_time
        if self.key is not None:
            stream = self.key.of(stream)
        function = self.function
        if setup.broadcast_states:
            first, *others = setup.broadcast_states
            broadcast = environment.from_collection([], setup.second_input_type).broadcast(first, *others)
            return stream.connect(broadcast).process(function, setup.output_type)
        if isinstance(function, StreamOperator):
            return stream.transform("Operator", setup.output_type, function)
        operation = setup.operation or _operation_of(function, _OPERATIONS)
        if callable(operation):
            made: DataStream = operation(stream, function)
            return made
        arguments = [function] if operation in _WITHOUT_OUTPUT_TYPE else [function, setup.output_type]
        result: DataStream = getattr(stream, operation)(*arguments)
        return result


@dataclass(frozen=True)
class OnTwoStreams(Place):
    """The place of an operator behind two streams that are connected or joined. Both may be keyed."""

    keys: tuple[Key, Key] | None = None

    def build(self, environment: StreamExecutionEnvironment, setup: Setup) -> DataStream:
        types = (setup.input_type, setup.second_input_type)
        first, second = (environment.from_collection([], type_info) for type_info in types)
        if self.keys is not None:
            first, second = (key.of(stream) for key, stream in zip(self.keys, (first, second), strict=True))
        operation = setup.operation or _operation_of(self.function, _CONNECTED_OPERATIONS)
        if callable(operation):
            made: DataStream = operation(first, second, self.function)
            return made
        result: DataStream = getattr(first.connect(second), operation)(self.function, setup.output_type)
        return result


@dataclass(frozen=True)
class AsSource(Place):
    """At the beginning of a program."""

    def build(self, environment: StreamExecutionEnvironment, setup: Setup) -> DataStream:
        if isinstance(self.function, Source):
            strategy = WatermarkStrategy.no_watermarks()
            return environment.from_source(self.function, strategy, "Source", setup.output_type)
        return environment.add_source(self.function, type_info=setup.output_type)


@dataclass(frozen=True)
class AsSink(Place):
    """At the end of a program."""

    def build(self, environment: StreamExecutionEnvironment, setup: Setup) -> DataStreamSink:
        stream = environment.from_collection([], setup.input_type)
        if isinstance(self.function, TwoPhaseCommitSink):
            return stream.sink_to(self.function)
        return stream.add_sink(self.function)


def _operation_of(function: Any, operations: dict[str, str]) -> str:
    for method, operation in operations.items():
        if callable(getattr(function, method, None)):
            return operation
    raise ProgramError(
        f"{function!r} has none of the methods {', '.join(operations)}. Say what a plain function is for with "
        f"operation=..., one of {', '.join(dict.fromkeys(operations.values()))}."
    )
